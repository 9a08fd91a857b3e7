"""`ompy conformance`: the card, for people and for programs, and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from ompy.cli import conformance
from ompy.cli.main import main
from ompy.conformance.card import Card
from ompy.conformance.plugin import EXPECTED, FAILED, PASSED, SKIPPED, Outcome
from ompy_components.btl.sm.component import COMPONENT as SM

from tests.conformance.mutants import LosesOne, Mutant

OUTCOMES = [
    Outcome("test_names", "identity", PASSED, "", "", None),
    Outcome("test_entry_point", "identity", SKIPPED, "it is not installed", "", None),
    Outcome("test_put", "remote memory", SKIPPED, "capability off: put", "", None),
    Outcome("test_get", "remote memory", SKIPPED, "capability off: get", "", None),
    Outcome("test_order[seed3]", "delivery", FAILED, "arrival 4 is late", "all of it", 3),
    Outcome("test_every_size[alloc]", "delivery", EXPECTED, "no room for 0 bytes", "", None),
]
CARD = Card(SM, {"btl_sm_ring_slots": 2}, OUTCOMES)


def test_for_people() -> None:
    import click

    text = click.unstyle("\n".join(CARD.lines()))
    assert text.splitlines()[1:] == [
        "reach host, wire memory, ordered, reliable, no checksum, virtual",
        "",
        "suite              passed  failed  skipped  expected",
        "identity                1       .        1         .   it is not installed",
        "remote memory           .       .        2         .   off: put, get",
        "delivery                .       1        .         1",
        "",
        "expected failures:",
        "  test_every_size[alloc]: no room for 0 bytes",
        "",
        "failed:",
        "  test_order[seed3]: arrival 4 is late",
        "",
        "to run one of them again:",
        "  ompy conformance btl sm --mca btl_sm_ring_slots '2' --seed 3 --test 'test_order[seed3]'",
        "",
        "does not conform: 1 passed, 1 failed, 3 skipped, 1 expected failure",
    ]


def test_for_programs() -> None:
    found = json.loads(json.dumps(CARD.document()))
    assert found["component"] == "sm"
    assert found["conforms"] is False
    assert found["capabilities"]["reach"] == "host"
    assert found["settings"] == {"btl_sm_ring_slots": "2"}
    assert found["suites"][2] == {
        "suite": "delivery",
        "passed": 0,
        "failed": 1,
        "skipped": 0,
        "expected_failure": 1,
    }
    assert found["failed"][0]["test"] == "test_order[seed3]"
    assert found["failed"][0]["repeat"].endswith("--test 'test_order[seed3]'")
    assert found["skipped"][1] == {"test": "test_put", "reason": "capability off: put"}
    assert found["expected_failures"] == [
        {"test": "test_every_size[alloc]", "reason": "no room for 0 bytes"}
    ]
    assert found["badge"]["message"] == "1 failed"
    good = Card(SM, {}, OUTCOMES[:2]).document()
    assert good["conforms"] is True
    assert good["badge"] == {
        "schemaVersion": 1,
        "label": "ompy btl conformance",
        "message": "1 passed",
        "color": "brightgreen",
    }


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["conformance", "btl", *arguments])


def test_conforms() -> None:
    done = run("sm", "--test", "test_order", "--test", "test_names", "--seed", "5")
    assert done.exit_code == 0, done.output
    assert "conforms: 2 passed\n" in done.output
    assert "\x1b" not in done.output


def test_does_not_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conformance, "_installed", lambda *_: Mutant(LosesOne))
    done = run("reference", "--test", "test_order", "--seed", "2", "-v")
    assert done.exit_code == 1
    again = "ompy conformance btl reference --seed 2 --test 'test_order[seed2]'"
    assert again in done.output
    assert "have not arrived at rank" in done.output, "in full with -v"
    found = json.loads(run("reference", "--test", "test_order", "--seed", "2", "--json").output)
    assert found["failed"][0]["repeat"] == again


def test_what_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("tpc")
    assert done.exit_code == 2
    assert "there is no btl component tpc; did you mean tcp?" in done.stderr
    done = run("sm", "--test", "test_nothing")
    assert done.exit_code == 2
    assert "the kit has no test test_nothing" in done.stderr
    done = run("sm", "--mca", "btl_sm_ring_slts", "3")
    assert done.exit_code == 2
    assert "did you mean btl_sm_ring_slots?" in done.stderr
    found = conformance.importlib.util.find_spec
    without = lambda name: None if name == "pytest" else found(name)  # noqa: E731
    monkeypatch.setattr(conformance.importlib.util, "find_spec", without)
    done = run("sm")
    assert done.exit_code == 2
    assert done.stderr == (
        "ompy conformance: error: the conformance kit needs pytest: "
        "pip install 'ompy[conformance]'\n"
    )


def test_without_pytest() -> None:
    """Without pytest the package can be imported, and what needs pytest says so."""
    script = (
        "import sys; sys.modules['pytest'] = None\n"
        "import ompy.conformance\n"
        "try: from ompy.conformance import BtlConformance\n"
        "except ImportError as problem: print(problem)\n"
        "from ompy.cli.main import main\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == ("the conformance kit needs pytest: pip install 'ompy[conformance]'\n"), (
        done.stderr
    )


@pytest.mark.proc
def test_as_a_command() -> None:
    """In a process of its own, in a pipe: plain, and with the exit code."""
    command = str(Path(sysconfig.get_path("scripts"), "ompy"))
    arguments = ["conformance", "btl", "self", "--test", "test_order"]
    done = subprocess.run([command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "conforms: 2 passed"
    assert done.stderr == ""
