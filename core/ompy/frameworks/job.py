"""What a job is: programs, ranks and hosts; handed from the launcher to the agents."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

# context ids that no agreement takes: by one of these the leaders of two groups meet that have
# no communicator yet (`JobWorld.bridge`). Arbitrary: a sixteenth of the 16 bits of a header
FIRST_BRIDGE: Final = 0xF000
LAST_BRIDGE: Final = 0xFFFF


class App(NamedTuple):
    """One program of a job (MPMD jobs have several, separated by `:`).

    Attributes:
        argv: program and arguments.
        ranks: how many processes run it.
        environment: variables set for it, beside the launcher's own.
        directory: working directory, empty for the launcher's.
    """

    argv: tuple[str, ...]
    ranks: int
    environment: tuple[tuple[str, str], ...] = ()
    directory: str = ""


class Placement(NamedTuple):
    """Where one rank runs.

    Attributes:
        rank: in the job.
        app: index of its program.
        node: index of its host.
        local_rank: among all ranks that its host has had.
    """

    rank: int
    app: int
    node: int
    local_rank: int


class JobWorld(NamedTuple):
    """Ranks that have one COMM_WORLD: those a job begins with, or those of one `Spawn`.

    Attributes:
        first: the job's number of its rank 0; the others follow.
        size: how many ranks.
        app: index of its first program.
        parents: the ranks that have spawned it, in their order; none for the first world and
            for guests (`ompy.runtime.guests`).
        root: the one of these that asked for it; -1 for the first world.
        bridge: the context id by which that one and rank 0 here meet.
    """

    first: int
    size: int
    app: int = 0
    parents: tuple[int, ...] = ()
    root: int = -1
    bridge: int = 0


class Job(NamedTuple):
    """Everything the agents need to know, key excepted.

    Attributes:
        job_id: 16 hexadecimal digits.
        apps: the programs.
        hosts: host names, by node index.
        placements: one per rank, in rank order.
        mca: the registry's snapshot: resolved settings and the plug-in scan.
        stdin_rank: the rank that gets the launcher's standard input, or -1.
        mpi4py: put the drop-in `mpi4py` package in front.
        oversubscribed: a host has more ranks than cores.
        faults: rules of a fault script (`ompy.net.faults.fault_rules`), as plain values.
        later: the worlds that were started later, in the order of their ranks.
        told_machines: how many machines its hosts are, where guests may join: 1 or more; else 0.
    """

    job_id: str
    apps: tuple[App, ...]
    hosts: tuple[str, ...]
    placements: tuple[Placement, ...]
    mca: Mapping[str, Any] = MappingProxyType({})
    stdin_rank: int = 0
    mpi4py: bool = True
    oversubscribed: bool = False
    faults: tuple[Mapping[str, Any], ...] = ()
    later: tuple[JobWorld, ...] = ()
    told_machines: int = 0

    @property
    def machines(self) -> int:
        """How many its hosts are: a guest's may be the same machine as another one."""
        return self.told_machines or len(self.hosts)

    @property
    def worlds(self) -> tuple[JobWorld, ...]:
        """All of it, the one that it began with first."""
        size = self.later[0].first if self.later else len(self.placements)
        return (JobWorld(0, size), *self.later)

    def world_of(self, rank: int) -> JobWorld:
        """The world that a rank of the job is in."""
        return next(world for world in reversed(self.worlds) if world.first <= rank)

    def apps_of(self, world: JobWorld) -> tuple[App, ...]:
        """The programs of one of its worlds."""
        after = [other.app for other in self.later if other.first > world.first]
        return self.apps[world.app : after[0] if after else None]

    def rows_from(self, rank: int) -> list[tuple[int, int, int, str, int]]:
        """The ranks from one on, each as a `Proc` takes it."""
        return [
            (p.rank, p.node, p.local_rank, self.hosts[p.node], world.first)
            for world in self.worlds
            for p in self.placements[max(rank, world.first) : world.first + world.size]
        ]

    def grown(
        self,
        apps: Sequence[App],
        placements: Sequence[Placement],
        world: JobWorld,
        hosts: Sequence[str] = (),
    ) -> Job:
        """The job with one world more, whose ranks, programs and hosts follow those there are."""
        assert world.first == len(self.placements) == placements[0].rank
        assert world.app == len(self.apps) == placements[0].app
        return self._replace(
            apps=(*self.apps, *apps),
            placements=(*self.placements, *placements),
            hosts=(*self.hosts, *hosts),
            later=(*self.later, world),
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain values JSON can carry."""
        values = self._asdict()
        values["mca"] = dict(self.mca)
        values["apps"] = [app._asdict() for app in self.apps]
        values["placements"] = [placement._asdict() for placement in self.placements]
        values["later"] = [world._asdict() for world in self.later]
        return values

    def packed(self) -> bytes:
        """As JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":")).encode()

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        """The inverse of `to_dict`."""
        apps = tuple(map(app_of, values["apps"]))
        placements = tuple(Placement(**placement) for placement in values["placements"])
        names = (
            "job_id",
            "mca",
            "stdin_rank",
            "mpi4py",
            "oversubscribed",
            "faults",
            "told_machines",
        )
        rest = {key: values[key] for key in names}
        return cls(
            apps=apps,
            hosts=tuple(values["hosts"]),
            placements=placements,
            later=tuple(map(world_of, values["later"])),
            **rest,
        )


def app_of(values: Mapping[str, Any]) -> App:
    """A program, from plain values as JSON has them."""
    variables = tuple((name, value) for name, value in values["environment"])
    return App(tuple(values["argv"]), values["ranks"], variables, values["directory"])


def world_of(values: Mapping[str, Any]) -> JobWorld:
    """A world, from plain values as JSON has them."""
    return JobWorld(**{**values, "parents": tuple(values["parents"])})


def called_abort(code: int) -> str:
    """Why a job ends where its program has called `Abort`. Reports that say so know the words."""
    return f"called Abort({code})"
