"""`ompy explain COLLECTIVE`: component, algorithm, why, what would change it, and its steps.

A virtual job of as many ranks is asked, and then makes the call while it is traced: what is drawn
is what its events say.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import click

from ompy.cli.explaining.explain_names import BLOCKING, NONBLOCKING, PERSISTENT
from ompy.data.errors import MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import BYTES, Layout
from ompy.data.message import Blocks, Message
from ompy.data.request import Request
from ompy.frameworks.catalog import CATALOG
from ompy.frameworks.coll import NEIGHBOURHOODS, OPERATIONS, CollModule
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.coll_observing import CollObserver
from ompy.frameworks.collectives.coll_selection import LOWER, Row, SelectedColl, row
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.explanation import Branch, Change, Choice
from ompy.mca.parameters.settings import gather_settings
from ompy.mca.registry import Registry
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy.trace.amounts import byte_count
from ompy.trace.call_steps import step_lines
from ompy.trace.calls import fields_of, joint_calls, messages_of
from ompy.trace.message_events import messages
from ompy.trace.sink import Trace

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
    "neighbor_allgather": "to each neighbour",
    "neighbor_alltoall": "to each neighbour",
}
FRAMEWORK: Final = "framework"  # who serves neighbourhoods that no component has
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
        form: `BLOCKING`, `NONBLOCKING` or `PERSISTENT`.
        call: its name in MPI; empty if that is the operation's.
    """

    operation: str
    size: int
    ranks: int
    hosts: int
    root: int
    sharing: bool
    form: str = BLOCKING
    call: str = ""

    def title(self) -> str:
        """The call in a line."""
        amount = f" of {byte_count(self.size)}" if self.operation != "barrier" else ""
        of = f" {SIZES[self.operation]}" if self.operation in SIZES else ""
        root = f", root {self.root}" if self.operation in ROOTED else ""
        op = ", SUM" if self.operation in REDUCTIONS else ""
        hosts = f"{self.hosts} hosts" if self.hosts > 1 else "one host"
        ring = " in a ring" if self.operation in NEIGHBOURHOODS else ""
        name = self.call or self.operation
        return f"{name}{amount}{of}{op}{root}, {self.ranks} ranks{ring} on {hosts}"


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

    def blocks(parts: int = ranks) -> Blocks:
        return Blocks.even(room(size * parts), 0, count, layout, parts)

    sides = ((rank - 1) % ranks, (rank + 1) % ranks)
    ring = Neighbours(sides, sides, (1, 0))  # as a communicator with a ring has them
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
        "neighbor_allgather": lambda: (one(), blocks(2), ring),
        "neighbor_alltoall": lambda: (blocks(2), blocks(2), ring),
    }
    return tuple(found.get(asked.operation, lambda: (one(), one(), operation))())


class Explained(NamedTuple):
    """What rank 0 says of the call.

    Attributes:
        row: the operation's in the communicator's table.
        component: who serves the call.
        name: the algorithm.
        choice: why.
        begun: why a call that the first component began goes as it goes.
        changes: of the component.
        sizes: first size of each range, component's algorithm there.
    """

    row: Row
    component: str
    name: str
    choice: Choice
    begun: Choice
    changes: tuple[Change, ...]
    sizes: list[tuple[int, str]]


def _module_of(coll: SelectedColl, component: str) -> CollModule | None:
    return next((each.module for each in coll.asked if each.component == component), None)


def _name(module: CollModule, asked: Asked, exchange: Exchange, size: int) -> str:
    """The way a module would take; the schedule's algorithm where it has no other."""
    operation = asked.operation
    arguments = arguments_of(asked, exchange.rank, size, memory=False)
    own = getattr(type(module), operation) is not getattr(CollModule, operation)
    if own and asked.form == BLOCKING:
        way = module.name_way(operation, arguments)
        if way or not module.offers_schedule(operation):
            return way or "as messages"
    return module.name_algorithm(operation, exchange, arguments)


def _row(asked: Asked, coll: SelectedColl) -> Row:
    return row(asked.operation, coll.asked)


def _other_ways(asked: Asked, communicator: Communicator) -> list[Change]:
    """What would be taken if another component were chosen. All members have to ask.

    A module that has served no call may share memory with the others' to know its way.
    """
    coll = communicator.coll
    assert coll is not None, "a communicator is made with its collectives"
    exchange, changes = Exchange(communicator, 0), []
    serving, steps = _serving(asked, coll), asked.form != BLOCKING
    for verdict in _row(asked, coll).verdicts:
        if verdict.component != serving and (steps or verdict.verdict == LOWER):
            other = _module_of(coll, verdict.component)
            if other is None or (steps and not other.offers_schedule(asked.operation)):
                continue
            name = f"{verdict.component}: {_name(other, asked, exchange, asked.size)}"
            priority = f"coll_{verdict.component}_priority"
            text = f"{verdict.component} had a higher priority, or were named alone"
            changes.append(Change(text, name, (priority, "coll")))
    return changes


def _serving(asked: Asked, coll: SelectedColl) -> str:
    """The component that serves the call, if it is by a schedule; empty for the framework."""
    if asked.form == BLOCKING:
        return _row(asked, coll).blocking
    for offer in coll.asked:
        if offer.module is not None and offer.module.offers_schedule(asked.operation):
            return offer.component
    return ""


def _explain(asked: Asked, communicator: Communicator, changes: Sequence[Change]) -> Explained:
    coll = communicator.coll
    assert coll is not None, "a communicator is made with its collectives"
    component = _serving(asked, coll)
    module = _module_of(coll, component) or coll  # which has the steps of the framework
    exchange = Exchange(communicator, 0)
    arguments = arguments_of(asked, communicator.rank, asked.size, memory=False)
    sizes = _sizes(module, asked, exchange) if asked.operation != "barrier" else []
    name = _name(module, asked, exchange, asked.size)
    choice = module.explain_choice(asked.operation, exchange, arguments)
    row, serves = _row(asked, coll), component or FRAMEWORK
    first = _module_of(coll, row.nonblocking)
    begun = Choice((), (), ())
    if first is not None and asked.form != BLOCKING:
        begun = first.explain_begin(asked.operation, arguments)
    return Explained(row, serves, name, choice, begun, tuple(changes), sizes)


def _as_served(explained: Explained, served: Sequence[Mapping[str, Any]]) -> Explained:
    """What holds of a nonblocking call, now that it was made: a module may have begun it itself.

    Args:
        explained: as the component says that has it in steps.
        served: what the trace says of who served it.
    """
    began = {each["component"] for each in served if each["algorithm"] != explained.name}
    steps = any(each["algorithm"] == explained.name for each in served)
    first = explained.row.nonblocking or FRAMEWORK
    if steps and first == explained.component:
        return explained
    if steps:
        how = "handed it on to the steps of the next component" if began else "left it to the next"
        text = f"{first} has a higher priority: it was asked to begin the call, and {how}"
        return explained._replace(choice=_joined(Branch(text), explained.begun, explained.choice))
    way = f"{explained.component}: {explained.name}"
    text = f"{first} begins nonblocking calls in a way of its own, and began this one"
    setting = (f"coll_{first}_priority", "coll")
    change = Change(f"{first} were not available or had a lower priority", way, setting)
    others = [each for each in explained.changes if each.protocol != way]
    return explained._replace(
        component=first,
        name=served[0]["algorithm"],
        choice=_joined(Branch(text), explained.begun),
        changes=(change, *others),
        sizes=[],
    )


def _joined(branch: Branch, *choices: Choice) -> Choice:
    """What was asked one after the other, after a branch."""
    return Choice(
        (branch, *(part for choice in choices for part in choice.branches)),
        tuple(part for choice in choices for part in choice.limits),
        tuple(part for choice in choices for part in choice.changes),
    )


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


def _call(asked: Asked, comm: Communicator) -> Callable[[], None]:
    """A function that makes the call once more, whatever its form."""
    coll = comm.coll
    assert coll is not None, "a communicator is made with its collectives"

    # the bound calls are looked up each time: a traced communicator gets others
    arguments = arguments_of(asked, comm.rank, asked.size, memory=True)
    operation, order, wait = asked.operation, comm.order, comm.context.engine.wait
    if asked.form == BLOCKING:
        return lambda: getattr(coll, operation)(*arguments)
    if asked.form == NONBLOCKING:
        return lambda: _completed(wait, coll.begin_operation(operation, order.tag(), arguments))
    tag, word, kept = order.tag(), order.keep().word, coll.keep_call(operation)
    return lambda: _completed(wait, coll.begin_operation(operation, tag, arguments, word, kept))


def _completed(wait: Callable[[Any], object], request: Request) -> None:
    wait(request)
    if request.error:
        raise MPIError(request.error, request.detail)


def _trace_call(asked: Asked, comm: Communicator, trace: Trace, number: int, tag: int) -> None:
    """Write down from here on what the next call does."""
    CollObserver(trace).observe_collectives(comm)
    fields = {"context": comm.context_id, "collective": number, "group": 0, "internal": tag}
    trace.record("api", "CALL", number=1, call=asked.operation, file="", line=0, **fields)


def _make_calls(asked: Asked, comm: Communicator, trace: Trace) -> None:
    """Make the call three times, the last time traced: the first ones make memory, and try it."""
    order, coll = comm.order, comm.coll
    assert coll is not None, "a communicator is made with its collectives"
    called = KINDS[asked.operation.capitalize()], asked.root if asked.operation in ROOTED else 0
    order.begin(*called)
    call = _call(asked, comm)
    number, tag = order.number, order.tag()
    for turn in range(3):
        if turn and asked.form != PERSISTENT:
            order.begin(*called)
            number, tag = order.number, order.tag()
        elif turn:  # all starts have one tag: nobody may be busy with the one before
            order.begin(KINDS["Barrier"], 0)
            coll.barrier()
        if turn == 2:
            _trace_call(asked, comm, trace, number, tag)
        call()
    trace.record("api", "RETURN", number=1)


def _run(asked: Asked, registry: Registry) -> tuple[Explained, VirtualJob]:
    told: list[Explained] = []

    def program(process: RankProcess) -> None:
        context = process.context
        context.oversubscribed = asked.sharing
        known = process.communicators.get(0)
        comm = known or process.communicator(0, context.procs, "MPI_COMM_WORLD")
        _make_calls(asked, comm, context.trace)
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
    if asked.operation in NEIGHBOURHOODS:
        shares = 4 * asked.ranks
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
    if asked.form != BLOCKING:
        found = _as_served(found, [fields_of(event) for event in calls[0].first.served])
    steps = step_lines(calls[0], messages_of(calls[0], calls, messages(events)), events)
    return _values(asked, found, steps, registry)


def _values(
    asked: Asked, found: Explained, steps: Sequence[str], registry: Registry
) -> dict[str, Any]:
    from ompy.cli.explaining.explained import setting

    nonblocking = found.row.nonblocking or FRAMEWORK
    names: dict[str, None] = {}
    for parts in (*found.choice, found.changes):
        names |= dict.fromkeys(name for part in parts for name in part.parameters)
    return {
        "question": asked._asdict(),
        "title": asked.title(),
        "component": found.component,
        "nonblocking": nonblocking if asked.form == BLOCKING else found.component,
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
