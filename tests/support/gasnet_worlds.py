"""GASNet programs in virtual worlds, over any conduit that can be there.

A program is a function of a `Gasnet`, as a user's is of the module. `CONDUITS` has a line for
each conduit the ported tests run over, `CHOSEN` those of this run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

from ompy.frameworks.conduit import Conduit, ThreadMode
from ompy.frameworks.context import RankContext
from ompy.gasnet import Gasnet
from ompy.mca.registry import Registry
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.conduit_selection import select_conduit
from ompy.runtime.ranks.nic_selection import find_nics
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy.trace.sink import Event

from tests.support import loopback_conduit
from tests.support.effort import THOROUGH
from tests.support.worlds import registry

Program = Callable[[Gasnet], Any]


@dataclass(frozen=True)
class Under:
    """What the programs run over.

    Attributes:
        name: of the conduit.
        settings: parameters; of the loopback, limits.
        nic: parameters of the NIC below.
        hosts: how many hosts the ranks are on, in turn.
    """

    name: str
    settings: Mapping[str, object] = field(default_factory=dict)
    nic: Mapping[str, object] = field(default_factory=dict)
    hosts: int = 1


CONDUITS = {
    "loopback": Under("loopback"),
    "loopback, scarce": Under(
        "loopback", {"depth": 1, "transfers": 1, "max_medium": 64, "max_put_local": 16}
    ),
    **{
        f"{name}, {messages}": Under(name, {"messages": messages})
        for name in ("gemini", "aries")
        for messages in ("smsg", "mailboxes")
    },
    "aries, neighbours": Under("aries", {"pshm": True}),
    "gemini, hosts": Under("gemini", {"messages": "smsg", "pshm": True}, hosts=2),
    "aries, hosts": Under("aries", {"messages": "mailboxes", "pshm": True}, hosts=2),
    "gemini, late": Under("gemini", {"messages": "smsg"}, {"late": 40}),
    "aries, late": Under("aries", {"messages": "mailboxes"}, {"late": 40}),
    "gemini, scarce": Under("gemini", {"messages": "smsg", "networkdepth": 1, "num_pd": 1}),
    "aries, scarce": Under("aries", {"messages": "mailboxes", "networkdepth": 1, "memreg": 1}),
}


FEW = (
    "loopback",
    "loopback, scarce",
    "gemini, smsg",
    "aries, mailboxes",
    "aries, neighbours",
    "aries, hosts",
)
# what CI runs over; the nightly run has them all
CHOSEN = CONDUITS if THOROUGH else {name: CONDUITS[name] for name in FEW}


class Ended:
    """What a rank's program ended with instead of a result: the job's exit code."""

    def __init__(self, code: object) -> None:
        self.code = code

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ended) and other.code == self.code

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        return f"Ended({self.code})"


class _Rank:
    """A rank that has GASNet and no MPI."""

    def __init__(self, find: Callable[[ThreadMode], Conduit]) -> None:
        self.gasnet = Gasnet(find)

    def run(self, program: Program) -> Any:
        """As an interpreter runs one: an exit ends it, and its end is an exit."""
        result: Any
        try:
            result = program(self.gasnet)
        except SystemExit as end:
            result = Ended(end.code)
        self.gasnet.finish()
        return result

    def finalize(self) -> None:
        """It has left."""


def run(
    under: Under,
    ranks: int,
    programs: Program | Sequence[Program],
    *,
    seed: int = 0,
    **settings: object,
) -> list[Any]:
    """Run a program on all ranks, or one on each; their results."""
    job = world(under, ranks, seed=seed, **settings)
    return job.run(each_rank(programs, ranks))


def traced(
    under: Under,
    ranks: int,
    programs: Program | Sequence[Program],
    *,
    seed: int = 0,
    **settings: object,
) -> list[Event]:
    """The same, traced: the events of all ranks, in order."""
    job = world(under, ranks, seed=seed, **settings)
    job.run(each_rank(programs, ranks), trace=True)
    return job.events()


def each_rank(programs: Program | Sequence[Program], ranks: int) -> list[Any]:
    """What a job of `world` runs for a program on all ranks, or one on each."""
    each = list(programs) if isinstance(programs, Sequence) else [programs] * ranks
    return [partial(_run, program) for program in each]


def world(under: Under, ranks: int, *, seed: int = 0, **settings: object) -> VirtualJob:
    """A job whose ranks have GASNet and nothing else."""
    hosts = [rank % under.hosts for rank in range(ranks)]
    return world_of(under, hosts, seed=seed, **settings)


def world_of(
    under: Under,
    hosts: Sequence[int],
    *,
    seed: int = 0,
    rails: Sequence[Rail] = (Rail("rail0"),),
    **settings: object,
) -> VirtualJob:
    """The same, of ranks on these hosts."""
    chosen = {**under.settings, **settings}
    make: Any
    if under.name == "loopback":
        parts = registry()
        make = loopback_conduit.factory(**chosen)  # type: ignore[arg-type]
    else:
        own = {"pshm": False, "physmem_noprobe": True, **chosen}
        names = {f"conduit_{under.name}_{name}": value for name, value in own.items()}
        names |= {f"nic_gni_{name}": value for name, value in under.nic.items()}
        parts = registry(conduit=under.name, **names)
        make = partial(_selected, parts)

    def bring_up(context: RankContext, _registry: Registry) -> _Rank:
        return _Rank(partial(make, context))

    return VirtualJob(len(hosts), parts, seed=seed, hosts=hosts, rails=rails, bring_up=bring_up)


def _selected(parts: Registry, context: RankContext, mode: ThreadMode) -> Conduit:
    context.find_nics = partial(find_nics, parts, context)
    process = SimpleNamespace(registry=parts, context=context)
    return select_conduit(process, mode)  # type: ignore[arg-type]


def _run(program: Program, rank: _Rank) -> Any:
    return rank.run(program)
