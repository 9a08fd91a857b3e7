"""`ompy explain COLLECTIVE`: component, algorithm, why, what would change it, and its steps.

A virtual job of as many ranks is asked, and then makes the call while it is traced: what is drawn
is what its events say.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import click

from ompy.data.errors import MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import BYTES, Layout
from ompy.data.message import Blocks, Message
from ompy.frameworks.call_kinds import KINDS
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.coll import OPERATIONS, CollModule
from ompy.frameworks.coll_observing import CollObserver
from ompy.frameworks.coll_selection import LOWER, Row, SelectedColl
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.exchange import Exchange
from ompy.frameworks.explanation import Change, Choice
from ompy.mca.registry import Registry
from ompy.mca.settings import gather_settings
from ompy.runtime.process import RankProcess
from ompy.runtime.virtual_job import VirtualJob
from ompy.trace.amounts import byte_count
from ompy.trace.call_steps import step_lines
from ompy.trace.calls import joint_calls, messages_of
from ompy.trace.message_events import messages

BTL: Final = "self,sm,tcp"  # what jobs of the virtual world have, unless a parameter says more
MOST: Final = 1 << 30  # bytes of all ranks' buffers together; arbitrary: most machines have them
DOUBLE: Final = Layout(((0, 8),), 0, 8, "d")
ROOTED: Final = ("bcast", "scatter", "gather", "reduce")
REDUCTIONS: Final = ("reduce", "allreduce", "scan", "exscan", "reduce_scatter")
TO_ALL: Final = ("allgather", "alltoall", "reduce_scatter")  # blocks for all, at all
# what --size is of
SIZES: Final = {
    "scatter": "to each rank",
    "gather": "from each rank",
    "allgather": "from each rank",
    "alltoall": "from each rank to each",
    "reduce_scatter": "to each rank",
}
LARGEST: Final = 30  # sizes up to 2**30 are asked about; arbitrary


class Asked(NamedTuple):
    """A call that is asked about.

    Attributes:
        operation: its name.
        size: bytes.
        ranks: of the communicator.
        hosts: that they are on, as many on each as there are places for.
        root: of the call.
        sharing: whether ranks share cores.
    """

    operation: str
    size: int
    ranks: int
    hosts: int
    root: int
    sharing: bool

    def title(self) -> str:
        """The call in a line."""
        amount = f" of {byte_count(self.size)}" if self.operation != "barrier" else ""
        of = f" {SIZES[self.operation]}" if self.operation in SIZES else ""
        root = f", root {self.root}" if self.operation in ROOTED else ""
        op = ", SUM" if self.operation in REDUCTIONS else ""
        hosts = f"{self.hosts} hosts" if self.hosts > 1 else "one host"
        return f"{self.operation}{amount}{of}{op}{root}, {self.ranks} ranks on {hosts}"


def arguments_of(asked: Asked, rank: int, size: int, memory: bool) -> tuple[Any, ...]:
    """The arguments of a rank's call, as `CollModule` has them.

    Args:
        asked: the call.
        rank: whose.
        size: bytes.
        memory: they are to be used; else there is none behind them.
    """
    reduces = asked.operation in REDUCTIONS
    layout = DOUBLE if reduces and not size % 8 else BYTES
    count, ranks = size // layout.size, asked.ranks

    def room(bytes_: int) -> memoryview:
        return memoryview(bytearray(bytes_ if memory else 0))

    def one(count: int = count) -> Message:
        return Message(room(count * layout.size), 0, count, layout)

    def blocks() -> Blocks:
        return Blocks.even(room(size * ranks), 0, count, layout, ranks)

    top = rank == asked.root
    operation = PREDEFINED["MPI_SUM"]
    found: dict[str, Any] = {
        "barrier": lambda: (),
        "bcast": lambda: (one(), asked.root),
        "scatter": lambda: (blocks() if top else None, one(), asked.root),
        "gather": lambda: (one(), blocks() if top else None, asked.root),
        "allgather": lambda: (one(), blocks()),
        "alltoall": lambda: (blocks(), blocks()),
        "reduce": lambda: (one(), one() if top else None, operation, asked.root),
        "reduce_scatter": lambda: (one(count * ranks), one(), [count] * ranks, operation),
    }
    return tuple(found.get(asked.operation, lambda: (one(), one(), operation))())


class Explained(NamedTuple):
    """What rank 0 says before the call.

    Attributes:
        row: the operation's in the communicator's table.
        name: the algorithm.
        choice: why.
        changes: of the component.
        sizes: first size of each range, component's algorithm there.
    """

    row: Row
    name: str
    choice: Choice
    changes: tuple[Change, ...]
    sizes: list[tuple[int, str]]


def _module(coll: SelectedColl, component: str) -> CollModule:
    return next(o.module for o in coll.asked if o.component == component and o.module is not None)


def _name(module: CollModule, asked: Asked, exchange: Exchange, size: int) -> str:
    """The way a module would take; the schedule's algorithm where it has no other."""
    operation = asked.operation
    arguments = arguments_of(asked, exchange.rank, size, memory=False)
    if getattr(type(module), operation) is not getattr(CollModule, operation):
        way = module.name_way(operation, arguments)
        if way or not module.offers_schedule(operation):
            return way or "as messages"
    return module.name_algorithm(operation, exchange, arguments)


def _row(asked: Asked, coll: SelectedColl) -> Row:
    return next(each for each in coll.table() if each.operation == asked.operation)


def _other_ways(asked: Asked, communicator: Communicator) -> list[Change]:
    """What would be taken if another component were chosen. All members have to ask.

    A module that has served no call may share memory with the others' to know its way.
    """
    coll = communicator.coll
    assert coll is not None, "a communicator is made with its collectives"
    exchange, changes = Exchange(communicator, 0), []
    for verdict in _row(asked, coll).verdicts:
        if verdict.verdict == LOWER:
            other = _module(coll, verdict.component)
            name = f"{verdict.component}: {_name(other, asked, exchange, asked.size)}"
            priority = f"coll_{verdict.component}_priority"
            text = f"{verdict.component} had a higher priority, or were named alone"
            changes.append(Change(text, name, (priority, "coll")))
    return changes


def _explain(asked: Asked, communicator: Communicator, changes: Sequence[Change]) -> Explained:
    coll = communicator.coll
    assert coll is not None, "a communicator is made with its collectives"
    row = _row(asked, coll)
    module = _module(coll, row.blocking)
    exchange = Exchange(communicator, 0)
    arguments = arguments_of(asked, communicator.rank, asked.size, memory=False)
    sizes = _sizes(module, asked, exchange) if asked.operation != "barrier" else []
    name = _name(module, asked, exchange, asked.size)
    choice = module.explain_choice(asked.operation, exchange, arguments)
    return Explained(row, name, choice, tuple(changes), sizes)


def _sizes(module: CollModule, asked: Asked, exchange: Exchange) -> list[tuple[int, str]]:
    """Where algorithms begin, all else being equal; in steps of eight bytes."""

    def name(units: int) -> str:
        return _name(module, asked, exchange, 8 * units)

    found = [(0, name(0))]
    for power in range(LARGEST - 2):
        low, high = 1 << power >> 1, 1 << power
        while name(high) != found[-1][1]:
            first, last = low, high  # the border lies behind `first`, at `last` at the latest
            while last - first > 1:
                middle = (first + last) // 2
                if name(middle) == found[-1][1]:
                    first = middle
                else:
                    last = middle
            found.append((8 * last, name(last)))
            low = last
    return found


def _run(asked: Asked, registry: Registry) -> tuple[Explained, VirtualJob]:
    told: list[Explained] = []
    kind = KINDS[asked.operation.capitalize()]
    detail = asked.root if asked.operation in ROOTED else 0

    def program(process: RankProcess) -> None:
        context = process.context
        context.oversubscribed = asked.sharing
        known = process.communicators.get(0)
        comm = known or process.communicator(0, context.procs, "MPI_COMM_WORLD")
        coll, trace = comm.coll, context.trace
        assert coll is not None, "a communicator is made with its collectives"
        call = getattr(coll, asked.operation)
        # memory is made, and tried, by the first calls
        for turn in range(3):
            comm.order.begin(kind, detail)
            if turn == 2:
                CollObserver(trace).observe_collectives(comm)
                call = getattr(coll, asked.operation)
                fields = {"context": comm.context_id, "collective": turn + 1}
                fields |= {"group": 0, "internal": comm.order.tag(), "line": 0}
                trace.record("api", "CALL", number=1, call=asked.operation, file="", **fields)
            call(*arguments_of(asked, comm.rank, asked.size, memory=True))
        trace.record("api", "RETURN", number=1)
        others = _other_ways(asked, comm)
        if comm.rank == 0:
            told.append(_explain(asked, comm, others))

    hosts = [rank * asked.hosts // asked.ranks for rank in range(asked.ranks)]
    job = VirtualJob(asked.ranks, registry, hosts=hosts)
    job.run(program, trace=True)
    return told[0], job


def explain_collective(asked: Asked, mca: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The answer, as plain values.

    Raises:
        click.ClickException: there is none.
    """
    shares = asked.ranks * (asked.ranks if asked.operation in TO_ALL else 2)
    if asked.operation in ("scatter", "gather"):
        shares = 3 * asked.ranks
    if 2 * shares * asked.size > MOST:
        raise click.ClickException(
            f"the buffers of all ranks would have more than {byte_count(MOST)}: fewer bytes or "
            "ranks take the same steps, as far as the sizes at the end of the answer say"
        )
    registry = Registry(CATALOG, gather_settings(list(mca), os.environ))
    if registry.variable("btl").origin.source == "default":
        registry = Registry(CATALOG, gather_settings([*mca, ("btl", BTL)], os.environ))
    registry.check_settings()
    try:
        found, job = _run(asked, registry)
    except RuntimeError as problem:
        cause = problem.__cause__ if isinstance(problem.__cause__, MPIError) else problem
        raise click.ClickException(str(cause)) from None
    events = job.events()
    calls = joint_calls(events)
    steps = step_lines(calls[0], messages_of(calls[0], calls, messages(events)), events)
    return _values(asked, found, steps, registry)


def _values(
    asked: Asked, found: Explained, steps: Sequence[str], registry: Registry
) -> dict[str, Any]:
    from ompy.cli.explained import setting

    names: dict[str, None] = {}
    for parts in (*found.choice, found.changes):
        names |= dict.fromkeys(name for part in parts for name in part.parameters)
    return {
        "question": asked._asdict(),
        "title": asked.title(),
        "component": found.row.blocking,
        "nonblocking": found.row.nonblocking,
        "algorithm": found.name,
        "components": [verdict._asdict() for verdict in found.row.verdicts],
        "branches": [part._asdict() for part in found.choice.branches],
        "limits": [part._asdict() for part in found.choice.limits],
        "changes": [part._asdict() for part in (*found.choice.changes, *found.changes)],
        "sizes": found.sizes,
        "steps": list(steps),
        "parameters": {name: setting(registry, name) for name in names},
    }


__all__ = ["OPERATIONS", "Asked", "explain_collective"]
