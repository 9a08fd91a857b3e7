"""What ranks tell of faults, paths and rails, as the launcher's machine keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ompy.frameworks.job import Job
from ompy.mca.reporting import Finding
from ompy.net.faults.fault_rules import FaultRule
from ompy.runtime.connections.control import Kind
from ompy.runtime.faults.fault_report import FaultTally
from ompy.runtime.launching.count_report import table_of_counts
from ompy.runtime.machines.acts import Act, Find, TellRail, Watched
from ompy.runtime.machines.events import Event
from ompy.runtime.rails.comm_methods import LostPaths
from ompy.runtime.rails.rail_report import HEALED, LOST, RailTally


class JobNews:
    """Kept until the end of the job.

    Attributes:
        faults: how often each has struck.
        counted: values of performance variables, by rank.
        rails: what became of them.
        carried: what each has carried, as `Carried`, by rank, peer and rail; where it is counted.
        alone: ranks whose end was no consequence of another.
    """

    def __init__(self, faults: Iterable[Any] = ()) -> None:
        self.faults = FaultTally([FaultRule.from_dict(dict(rule)) for rule in faults])
        self.counted: dict[int, dict[str, int]] = {}
        self.rails = RailTally()
        self.carried: dict[tuple[int, int, str], list[Any]] = {}
        self.alone: set[int] = set()
        self._paths = LostPaths()

    def rail(self, event: Event) -> list[Act]:
        """A rank tells of a rail, or what its rails carried."""
        assert event.kind is not None
        watched = Watched(event.kind, event.header, event.body)
        if event.kind is Kind.CARRIED:
            for row in json.loads(event.body or b"[]"):
                self.carried[event.header["rank"], row[0], row[1]] = row
            return [watched]
        became, rail = self.rails.told(event.header)
        acts: list[Act] = [watched]
        if became in (LOST, HEALED):
            acts.append(TellRail(became == HEALED, rail))
        return acts

    def bound(self, header: Mapping[str, Any], job: Job) -> list[Act]:
        """A rank has started; its place is told if somebody wants to know."""
        if "bound" not in header:
            return []
        rank, text = header["rank"], header["bound"]
        host = job.hosts[job.placements[rank].node]
        return said(
            "rank bound", [f"rank {rank} on {host} {text}"], rank=rank, where=host, bound=text
        )

    def path(self, event: Event) -> bool:
        """A rank has lost a path. True for the first: the table is due soon."""
        return self._paths.add(event.header["rank"], dict(event.header), json.loads(event.body))

    def lost_paths(self, *, quiet: bool = False) -> list[Act]:
        """Once, with what both ends have said."""
        text = self._paths.text(frozenset(self.alone))
        return [Find(Finding("path lost", text, "warning"))] if text and not quiet else []

    def delivered(self, *, strict: bool, quiet: bool) -> list[Act]:
        """How often faults have struck."""
        lines = self.faults.lines(strict=strict)
        if quiet and not (strict and self.faults.silent):
            return []
        return said("faults delivered", lines, delivered=self.faults.by_text())

    def performance(self) -> list[Act]:
        """What performance variables say, where the job has asked for them."""
        lines = [f"  {line}" for line in table_of_counts(self.counted)]
        values = {str(rank): self.counted[rank] for rank in sorted(self.counted)}
        heading = f"performance variables of {len(values)} rank(s):"
        if self.counted and not lines:
            heading = "there is no performance variable of this name: see ompy-info --pvars"
        elif not lines:
            return []
        return said("performance variables", [heading, *lines], values=values)


def said(name: str, sentences: Sequence[str], level: str = "info", **fields: Any) -> list[Act]:
    """The launcher's sentences, if there are any."""
    text = "".join(f"ompy-run: {sentence}\n" for sentence in sentences if sentence)
    return [Find(Finding(name, text, level, fields))] if text else []
