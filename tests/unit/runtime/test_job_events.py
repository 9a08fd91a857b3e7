"""Who is told of what happens to a job: our own reports and packages."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

from ompy.mca.hooks import HookCaller
from ompy.mca.reporting import Finding, Reporter
from ompy.runtime.launching.job_events import JobEvents
from ompy.runtime.rails.rail_report import FIELDS

EVENT = dict.fromkeys(FIELDS, 0) | {"rail": "tcp lo", "cause": "the cable was pulled", "rank": 1}


class Listener(HookCaller):
    """Keeps what packages would be told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def _call(self, hook: str, **arguments: object) -> None:
        self.told.append((hook, arguments))


def test_rails_are_said_live_and_packages_told() -> None:
    said: list[str] = []
    packages = Listener()
    events = JobEvents(said.append, Reporter(), packages, live_rails=True)
    events.rail_lost(EVENT)
    events.rail_healed({**EVENT, "healed_ns": 5_000_000})
    assert [line.partition(":")[0] for line in said] == ["ompy-run", "ompy-run"]
    assert "the cable was pulled" in said[0]
    assert "healed at 5.0 ms" in said[1]
    assert [hook for hook, _ in packages.told] == ["ompy_rail_lost", "ompy_rail_healed"]


def test_rails_that_are_not_to_be_said_are_told_to_packages_all_the_same() -> None:
    said: list[str] = []
    packages = Listener()
    events = JobEvents(said.append, Reporter(), packages, live_rails=False)
    events.rail_lost(EVENT)
    assert said == []
    assert packages.told == [("ompy_rail_lost", {"event": EVENT})]


def test_a_finding_without_a_text_is_for_packages_only() -> None:
    said: list[str] = []
    packages = Listener()
    events = JobEvents(said.append, Reporter(), packages, live_rails=True)
    quiet = Finding("job failed", "", "error", {"exit_code": 3})
    events.found(quiet)
    events.found(Finding("faults delivered", "ompy-run: 3\n"))
    assert said == ["ompy-run: 3\n"]
    assert packages.told[0] == ("ompy_finding", {"finding": quiet})


def test_a_launcher_with_nothing_to_tell_imports_neither_pluggy_nor_structlog() -> None:
    script = (
        "import sys; from ompy.runtime.launching.job_events import SILENT, JobEvents;"
        "JobEvents(print, *SILENT, live_rails=True);"
        "print([name for name in ('pluggy', 'structlog') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
