"""What a job is: programs, ranks and hosts; handed from the launcher to the agents."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple


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
        rank: in the world.
        app: index of its program.
        node: index of its host.
        local_rank: among the ranks of its host.
    """

    rank: int
    app: int
    node: int
    local_rank: int


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
        faults: rules of a fault script (`ompy.net.fault_rules`), as plain values.
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

    def to_dict(self) -> dict[str, Any]:
        """As plain values JSON can carry."""
        values = self._asdict()
        values["mca"] = dict(self.mca)
        values["apps"] = [app._asdict() for app in self.apps]
        values["placements"] = [placement._asdict() for placement in self.placements]
        return values

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Job:
        """The inverse of `to_dict`."""
        apps = tuple(
            App(
                tuple(app["argv"]),
                app["ranks"],
                tuple((name, value) for name, value in app["environment"]),
                app["directory"],
            )
            for app in values["apps"]
        )
        placements = tuple(Placement(**placement) for placement in values["placements"])
        names = ("job_id", "mca", "stdin_rank", "mpi4py", "oversubscribed", "faults")
        rest = {key: values[key] for key in names}
        return cls(apps=apps, hosts=tuple(values["hosts"]), placements=placements, **rest)
