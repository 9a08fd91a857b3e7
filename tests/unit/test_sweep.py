"""Long runs in steps (tools/steps.py): which steps are left, and what the ledger keeps."""

from __future__ import annotations

import csv
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from tools import release
from tools import steps as sweep

STEPS = [sweep.Step(name, ["-c", "pass"]) for name in ("old", "new", "never", "failed")]


def entry(step: str, commit: str, outcome: str = sweep.PASSED) -> sweep.Entry:
    """Of a run."""
    return sweep.Entry("2026-01-01", "nightly", step, commit, "m", outcome, "1 passed", "1")


def test_the_longest_neglected_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """What never passed first; then the oldest; what passed with this code not at all."""
    monkeypatch.setattr(sweep, "changed", lambda commit: commit != "same")
    entries = [entry("old", "a"), entry("new", "b"), entry("failed", "same", "exit code 1")]
    left = [step.name for step in sweep.in_turn(STEPS, entries)]
    assert left == ["never", "failed", "old", "new"]
    entries.append(entry("old", "same"))
    assert [step.name for step in sweep.in_turn(STEPS, entries)] == ["never", "failed", "new"]


def test_steps_are_entered_whatever_they_come_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A step that fails does not keep the next one from running, and both are in the ledger."""
    monkeypatch.setattr(sweep, "LEDGER", tmp_path / "ledger.csv")
    monkeypatch.setattr(sweep, "PAGE", tmp_path / "ledger.md")
    monkeypatch.setattr(sys, "argv", ["nightly.py"])
    steps = [
        sweep.Step("breaks", ["-c", "raise SystemExit(3)"]),
        sweep.Step("not prepared", ["-c", "pass"], before=["-c", "raise SystemExit(4)"]),
        sweep.Step("counts", ["-c", "print('7 passed, 1 skipped in 2.00s')"]),
    ]
    with pytest.raises(SystemExit, match="failed: breaks, not prepared"):
        sweep.sweep("nightly", steps)
    outcomes = {one.step: (one.outcome, one.figures) for one in sweep.read()}
    assert outcomes == {
        "breaks": ("exit code 3", ""),
        "not prepared": ("exit code 4", ""),
        "counts": ("passed", "7 passed, 1 skipped"),
    }
    assert all(float(one.processor) >= 0 for one in sweep.read())
    assert "| counts | passed | 7 passed, 1 skipped |" in sweep.PAGE.read_text()


def test_the_ledger_that_there_is_can_be_read_and_added_to() -> None:
    with sweep.LEDGER.open() as opened:
        lines = list(csv.reader(opened))
    assert lines[0] == [one.name for one in fields(sweep.Entry)]
    assert {len(line) for line in lines} == {len(lines[0])}


def test_a_release_takes_the_larger_of_two_steps() -> None:
    """And does what it says: of worlds the number in its name."""
    steps = {step.name: step for step in release.STEPS}
    assert len(steps) == len(release.STEPS), "two of one name"
    assert not steps.keys() & release.LARGER.keys()
    assert {step.name for larger in release.LARGER.values() for step in larger} <= steps.keys()
    for name, step in steps.items():
        number = name.replace(",", "").split()[0]
        words = step.command
        if words[0] == "tools/sweep" and number.isdigit():
            (tool,) = (sweep.ROOT / words[0]).rglob(f"{words[1]}.py")
            default = re.search(r"^    worlds=([\d_]+),", tool.read_text(), re.MULTILINE)
            if default is None:
                continue  # no sweep over worlds
            said = words[words.index("--worlds") + 1] if "--worlds" in words else default[1]
            assert int(said) == int(number), name
