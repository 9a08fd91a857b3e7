"""The tools around bfo: what they answer, and how they answer what they do not understand."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.bench.plots import plot_rails
from tools.lab import pull_the_cable
from tools.package import bfo_overrides, ob1_changed
from tools.sweep.transports import cable_cuts

ROOT = Path(__file__).resolve().parents[3]

CUT = {
    "program": "transfer",
    "kind": "link",
    "seed": 0,
    "messages": 1,
    "bytes": 100,
    "noticed": 0.003,
    "pause": 0.02,
    "silence": 0.008,
    "back": 0.2,
    "goodput": [1e8],
    "date": "2026-01-02",
    "load": [0.1, 0.2, 0.3],
}


def _replaced(name: str, before: str) -> bfo_overrides.Override:
    return bfo_overrides.Override("Sending", "BfoSending", name, False, before, "")


def test_a_change_of_ob1_is_seen() -> None:
    one, two = "def f(self):\n    return 1", "def f(self):\n    return 2"
    before = ob1_changed.state([_replaced("a", one), _replaced("b", one), _replaced("c", one)])
    assert not ob1_changed.differences(before, before)
    now = ob1_changed.state([_replaced("a", two), _replaced("b", one), _replaced("d", one)])
    lines = ob1_changed.differences(before, now)
    assert lines == ["changed: Sending.a", "gone: Sending.c", "new: Sending.d"]


def test_what_is_said_of_a_method_is_no_change() -> None:
    plain = "    def f(self):\n        return 1"
    said = '    def f(self):\n        """One."""\n        return 1  # as ever'
    assert ob1_changed.digest(plain) == ob1_changed.digest(said)


def test_what_bfo_only_adds_to_is_mended_with_ob1() -> None:
    watched = ob1_changed.state()
    assert "Sending.unknown" in watched
    assert "Sending.fail_peer" not in watched


def test_bfo_was_reviewed_since_ob1_changed() -> None:
    """If not: read the diff of `tools/package bfo_overrides NAME`, then accept."""
    assert not ob1_changed.differences(ob1_changed.reviewed(), ob1_changed.state())


def test_a_change_that_was_looked_at_is_noted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(ob1_changed, "REVIEWED", tmp_path / "reviewed.json")
    (tmp_path / "reviewed.json").write_text('{"A.b": "1"}')
    monkeypatch.setattr(ob1_changed, "state", lambda: {"A.b": "2"})
    for words, code, said in (
        ([], 1, "changed: A.b"),
        (["--accept"], 0, "1 methods of ob1 are those"),
        ([], 0, "ob1 is as it was"),
    ):
        monkeypatch.setattr(sys, "argv", ["ob1_changed.py", *words])
        ended = 0
        try:
            ob1_changed.main()
        except SystemExit as exited:
            ended = int(exited.code or 0)
        assert ended == code
        assert said in capsys.readouterr().out


def test_what_bfo_makes_otherwise() -> None:
    found = {one.name: one for one in bfo_overrides.overrides()}
    assert not found["Sending.unknown"].adds
    assert found["Receiving.rndv_arrived"].adds
    assert found["Gets.completed"].derived == "BfoGets"
    assert "self._ob1.unknown" in found["Sending.unknown"].before


def test_a_method_is_shown_as_a_difference() -> None:
    words = [sys.executable, str(ROOT / "tools" / "package"), "bfo_overrides", "Sending.unknown"]
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "--- ob1 Sending.unknown" in shown
    assert "+++ bfo BfoSending.unknown" in shown
    assert "-        self._ob1.unknown(" in shown


def test_a_method_that_there_is_not_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bfo_overrides.py", "nonsense"])
    with pytest.raises(SystemExit) as ended:
        bfo_overrides.main()
    assert ended.value.code == 2
    assert "'nonsense'" in (text := capsys.readouterr().err)
    assert "Sending.unknown" in text


def test_cuts_with_other_options_are_other_cuts() -> None:
    """Those of a longer run with the same options go on from the same record."""
    more = (
        [],
        ["--program", "transfer"],
        ["--kind", "link,hole"],
        ["--name", "x"],
        ["--size", "9"],
    )
    kept = {cable_cuts.record(cable_cuts.parser().parse_args(words), "abc") for words in more}
    assert len(kept) == len(more)
    assert cable_cuts.record(cable_cuts.parser().parse_args(["--cuts", "3"]), "abc") in kept


@pytest.mark.parametrize("words", [["--kind", "link,lnk"], ["--program", "lnk"]])
def test_a_kind_of_cut_that_there_is_not(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cable_cuts.parser().parse_args(words)
    assert "there is no 'lnk'; choose from" in capsys.readouterr().err


def test_the_page_of_cuts_says_how_and_when_they_were_made() -> None:
    text = cable_cuts.report([CUT], [1e8], "abc", "python tools/sweep cable_cuts --cuts 1")
    assert "    python tools/sweep cable_cuts --cuts 1\n" in text
    assert "2026-01-02" in text
    assert "load averages at the end 0.1, 0.2, 0.3." in text
    line = cable_cuts.progress([CUT], 7)
    assert line == ("1 of 7: transfer, link: noticed 3 ms, pause 20 ms, silence 8 ms, back 200 ms")


def test_a_promise_that_is_not_kept_is_told() -> None:
    quick = {**CUT, "kind": "hole", "pause": 0.4, "back": 0.3, "goodput": [0.96e8]}
    assert all(promise.kept for promise in cable_cuts.promises([CUT, quick], [1e8]))
    for slow in (
        {**CUT, "pause": 0.06},
        {**quick, "pause": 0.6},
        {**CUT, "back": 1.2},
        {**CUT, "goodput": [0.9e8]},
    ):
        broken = [one for one in cable_cuts.promises([slow], [1e8]) if not one.kept]
        assert len(broken) == 1
        assert cable_cuts.judged(broken)[-1].endswith("| **no** |")


def test_a_parameter_of_the_user_stands_in_place_of_the_tools() -> None:
    include = ["--mca", "btl_tcp_if_include", "rail1,rail2"]
    for btls, more in (("self,usnic", []), ("self,openib,tcp", include)):
        words = ["--mca", "btl", btls, "--tag-output"]
        assert pull_the_cable.parameters(words) == ["--mca", "pml", "bfo", *more]
    ours = ["--mca", "btl", "self,tcp", *include]
    assert pull_the_cable.parameters(["--mca", "pml", "ob1"]) == ours
    assert pull_the_cable.parameters([])[:6] == ["--mca", "pml", "bfo", "--mca", "btl", "self,tcp"]


def test_an_option_that_is_misspelt_is_answered() -> None:
    own = pull_the_cable.parser()
    assert pull_the_cable.misspelt(own, ["--afer", "2"]) == "there is no --afer; is --after meant?"
    fine = ["--record-rails", "rails.jsonl", "--mca", "btl", "self,usnic", "--timeout", "9"]
    assert not pull_the_cable.misspelt(own, fine)


def test_a_picture_without_matplotlib_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    record = ROOT / "docs" / "figures" / "pull-the-cable.jsonl"
    monkeypatch.setattr(sys, "argv", ["plot_rails.py", str(record), str(tmp_path / "a.svg")])
    assert plot_rails.main() == 1
    assert "pip install -e '.[plots]'" in capsys.readouterr().err
