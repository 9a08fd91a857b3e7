"""What components print while they are imported or opened."""

from __future__ import annotations

import sys
import threading

import pytest
from ompy.mca.plugins.component_records import ComponentRecord
from ompy.mca.plugins.diversion import Diversion

CHATTY = """
import sys, fake_events
print("hello", end=" ")
sys.stdout.writelines(["wor", "ld\\n"])
fake_events.kept = sys.stdout
{more}
from ompy.mca.component import Component
class Chatty(Component):
    framework, name, version, api = "wire", "chatty", "1.0", (3, 0)
    def open(self, values):
        print("good morning")
COMPONENT = Chatty()
"""


@pytest.fixture
def chatty(site):
    def make(more: str = ""):
        site.broken("chatty", CHATTY.format(more=more))
        return site.registry()

    return make


def test_what_an_import_prints_becomes_a_remark(chatty, capsys: pytest.CaptureFixture[str]) -> None:
    registry = chatty()
    (record,) = registry.load("wire")
    assert record.state.value == "loaded"
    assert record.remark == "its import wrote to standard output: 'hello world'"
    assert registry.warnings() == [f"wire:chatty of ompy-wire-chatty 1.0: {record.remark}"]
    registry.open("wire")
    assert record.remark.startswith("its import"), "the first is enough"
    assert capsys.readouterr().out == ""


def test_so_does_what_open_prints(chatty, capsys: pytest.CaptureFixture[str]) -> None:
    registry = chatty()
    (record,) = registry.load("wire")
    record.remark = ""
    registry.open("wire")
    assert record.remark == "its open wrote to standard output: 'good morning'"
    assert capsys.readouterr().out == ""


def test_a_stream_that_was_kept_writes_on_afterwards(
    chatty, capsys: pytest.CaptureFixture[str]
) -> None:
    chatty().load("wire")
    import fake_events

    fake_events.kept.write("later\n")
    fake_events.kept.writelines(["and ", "later\n"])
    fake_events.kept.flush()
    assert capsys.readouterr().out == "later\nand later\n"
    assert sys.stdout is not fake_events.kept


def test_an_import_that_fails_gives_the_stream_back(chatty) -> None:
    before = sys.stdout
    (record,) = chatty("raise ValueError").load("wire")
    assert sys.stdout is before
    assert (record.state.value, record.remark[:10]) == ("broken", "its import")
    assert record.warning.endswith("broken (ValueError)")


def test_an_import_that_replaces_the_stream_keeps_its_own(
    chatty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", sys.stdout)
    chatty("import io; sys.stdout = fake_events.own = io.StringIO()").load("wire")
    import fake_events

    assert sys.stdout is fake_events.own


def test_other_threads_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    with Diversion() as diversion:
        thread = threading.Thread(target=print, args=("from elsewhere",))
        thread.start()
        thread.join()
        print("from here")
    assert capsys.readouterr().out == "from elsewhere\n"
    record = ComponentRecord("wire", "tcp", "ompy", "1", "m:C")
    diversion.remark(record, "it")
    assert record.remark == "it wrote to standard output: 'from here'"


def test_much_is_cut_and_nothing_is_nothing() -> None:
    record = ComponentRecord("wire", "tcp", "ompy", "1", "m:C")
    with Diversion() as silent:
        print()
    silent.remark(record, "it")
    assert record.remark == ""
    with Diversion() as loud:
        print("x" * 1000)
    loud.remark(record, "it")
    assert record.remark == f"it wrote to standard output: '{'x' * 60}...'"


def test_without_a_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with Diversion():
        print("to nobody")
    assert sys.stdout is None
