"""The launcher's own reports, as plug-ins of the life-cycle hooks. Imports pluggy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ompy.mca.hookspecs import hookimpl
from ompy.mca.reporting import Finding, Reporter
from ompy.runtime.rails.rail_report import healed_line, line


class FindingReport:
    """Says what was found."""

    def __init__(self, say: Callable[[str], object], reporter: Reporter) -> None:
        self._say = say
        self._reporter = reporter

    @hookimpl
    def ompy_finding(self, finding: Finding) -> None:
        """Write it, if it has anything for people."""
        lines = self._reporter.lines(finding)
        if lines:
            self._say(lines)


class RailReport:
    """Says at once what becomes of rails."""

    def __init__(self, say: Callable[[str], object], reporter: Reporter) -> None:
        self._say = say
        self._reporter = reporter

    @hookimpl
    def ompy_rail_lost(self, event: Mapping[str, Any]) -> None:
        """Write a line."""
        self._tell("rail lost", line(event), "warning", event)

    @hookimpl
    def ompy_rail_healed(self, event: Mapping[str, Any]) -> None:
        """Write a line."""
        self._tell("rail healed", healed_line(event), "info", event)

    def _tell(self, name: str, text: str, level: str, event: Mapping[str, Any]) -> None:
        self._say(self._reporter.lines(Finding(name, f"ompy-run: {text}\n", level, event)))
