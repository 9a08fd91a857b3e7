"""Hosts of a job that are guests': ranks of another launcher which have joined it.

As long as no rank of a guest has met others, what becomes of it is its own affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ompy.frameworks.job import App, Job, JobWorld, Placement
from ompy.runtime.connections.control import Kind
from ompy.runtime.machines.acts import Send
from ompy.runtime.machines.stages import Stage


class Guests:
    """Those of one job.

    Attributes:
        nodes: indices of their hosts.
        alone: of these, the ones whose ranks have met nobody else.
    """

    def __init__(self) -> None:
        """There is none."""
        self.nodes: set[int] = set()
        self.alone: set[int] = set()
        self._ending: set[int] = set()

    def missed(self, node: int, ended: Iterable[int]) -> Iterator[Send]:
        """What the agent of a new guest has to be told that others know.

        Args:
            node: index of its host.
            ended: the ranks that have ended.
        """
        for rank in sorted(set(ended)):
            told = {"rank": rank, "finalized": True, "dead": False}
            yield Send(node, Kind.DEPARTED, told, b"ended before this program joined the job")

    def added_to(self, job: Job, host: str, apps: Sequence[App]) -> tuple[Job, JobWorld]:
        """The job with a guest, which has a host of its own."""
        node, first = len(job.hosts), len(job.placements)
        placements = placed_together(apps, node, first, len(job.apps))
        world = JobWorld(first, len(placements), len(job.apps))
        self.nodes.add(node)
        self.alone.add(node)
        return job.grown(apps, placements, world, [host]), world

    def met(self, job: Job, groups: Iterable[Sequence[int]]) -> None:
        """Two groups of ranks meet: those of guests stand and fall with the job from now on."""
        nodes = {job.placements[rank].node for group in groups for rank in group}
        if len(nodes) > 1:
            self.alone -= nodes

    def ends_alone(self, node: int) -> bool:
        """Whether what happens to the ranks of a host is their own affair."""
        return node in self.alone

    def end_once(self, node: int, grace_ms: int) -> list[Send]:
        """Have a guest's ranks ended, as one of them has failed."""
        if node in self._ending:
            return []
        self._ending.add(node)
        return [Send(node, Kind.END, {"grace_ms": grace_ms})]


def placed_together(
    apps: Sequence[App], node: int, first: int = 0, first_app: int = 0
) -> list[Placement]:
    """All ranks of some programs on one host that has no others.

    Args:
        apps: the programs.
        node: index of the host.
        first: the number of the first rank.
        first_app: the index of the first program.
    """
    numbers = [number for number, app in enumerate(apps, first_app) for _ in range(app.ranks)]
    return [Placement(first + place, app, node, place) for place, app in enumerate(numbers)]


def has_failed(header: Mapping[str, Any]) -> bool:
    """Whether an end is a failure: by the header of EXITED."""
    return bool(header["status"]) or header["stage"] == Stage.INITIALIZED
