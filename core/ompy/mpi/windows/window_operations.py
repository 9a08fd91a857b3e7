"""One-sided operations: their arguments, what the origin can know to be wrong, and their beginning.

Imported with the first window. `WindowAccess` calls these with a window's state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, TypeVar

from ompy.data.constants import PROC_NULL
from ompy.data.errors import MPIError
from ompy.data.message import Message
from ompy.data.request import Request as Operation
from ompy.frameworks.osc import Place
from ompy.mpi.buffers.common_forms import plain
from ompy.mpi.buffers.spec import message
from ompy.mpi.collectives.operation import Op
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.requeststate import nothing
from ompy.mpi.windows.window_messages import (
    NO_OP,
    Access,
    check_compared,
    check_sizes,
    operation,
    read_access,
    single,
)
from ompy.mpi.windows.window_state import WindowRequestState, WindowState

P = ParamSpec("P")
T = TypeVar("T")
Call = Callable[Concatenate[WindowState, P], T]


def _told(call: Call[P, T]) -> Call[P, T]:
    """What fails is the window's error, after its error handler had its say."""

    def telling(state: WindowState, /, *arguments: P.args, **more: P.kwargs) -> T:
        try:
            return call(state, *arguments, **more)
        except MPIError as problem:
            raise state.raised(problem) from problem.__cause__

    update_wrapper(telling, call)
    return telling


def _place(state: WindowState, given: Access) -> Place:
    """Where an operation goes to, which may be accessed now."""
    state.reach.check_rank(given.target)
    place = state.reach.place(given)
    state.epochs.access(given.target)
    return place


def _begin(move: Callable[[Any, int, Place], T], state: WindowState, given: Access) -> T | None:
    """Have the module move bytes as a put or get wants it; None for PROC_NULL."""
    if given.target == PROC_NULL:
        return None
    place = _place(state, given)
    check_sizes(given.origin, place)
    return move(given.origin, given.target, place)


@_told
def put(state: WindowState, origin: Any, rank: Any, target: Any) -> Operation | None:
    """Begin a put; None for PROC_NULL."""
    return _begin(state.module.put, state, read_access(origin, rank, target, writable=False))


@_told
def get(state: WindowState, origin: Any, rank: Any, target: Any) -> Operation | None:
    """Begin a get; None for PROC_NULL."""
    return _begin(state.module.get, state, read_access(origin, rank, target, writable=True))


@_told
def accumulate(state: WindowState, origin: Any, rank: Any, target: Any, op: Op) -> Operation | None:
    """Begin an accumulate; None for PROC_NULL."""
    given = read_access(origin, rank, target, writable=False)
    if given.target == PROC_NULL:
        return None
    place = _place(state, given)
    name = operation(op, given.origin, place)
    check_sizes(given.origin, place)
    if name == NO_OP:
        return nothing()
    return state.module.accumulate(given.origin, given.target, place, name)


@_told
def get_accumulate(
    state: WindowState, origin: Any, result: Any, rank: Any, target: Any, op: Op
) -> Operation | None:
    """Begin an accumulate that gets what was there; None for PROC_NULL."""
    given = read_access(origin, rank, target, writable=False)
    if given.target == PROC_NULL:
        return None
    return _fetch(state, given, message(result, True).message, op)


@_told
def fetch(
    state: WindowState, origin: Any, result: Any, rank: Any, displacement: int, op: Op
) -> Operation | None:
    """The same for one element."""
    if rank == PROC_NULL:
        return None
    into = _result(origin, result)
    given = read_access(origin, rank, displacement, writable=False)
    return _fetch(state, given, into, op)


def _result(origin: Any, result: Any) -> Message:
    """The room for one element of the origin's datatype.

    Raises:
        ValueError: origin or result is none.
    """
    mine, into = plain(origin, False), plain(result, True)
    if mine is not None and into is not None:
        one_each = mine.count == into.count == 1
        if one_each and mine.layout is into.layout:
            return into
    one = single("origin", origin, None, writable=False)  # whatever else they may be
    return single("result", result, one, writable=True).message


def _fetch(state: WindowState, given: Access, into: Message, op: Op) -> Operation:
    place = _place(state, given)
    name = operation(op, given.origin, place)
    check_sizes(into, place)
    if name != NO_OP:
        check_sizes(given.origin, place)
    source = None if name == NO_OP else given.origin
    return state.module.fetch(source, into, given.target, place, name)


@_told
def swap(
    state: WindowState, origin: Any, compare: Any, result: Any, rank: int, displacement: int
) -> Operation | None:
    """Begin a compare-and-swap; None for PROC_NULL."""
    if rank == PROC_NULL:
        return None
    mine = single("origin", origin, None, writable=False)
    other = single("compare", compare, mine, writable=False)
    into = single("result", result, mine, writable=True)
    given = read_access(origin, rank, displacement, writable=False)
    place = _place(state, given)
    check_compared(place.layout)
    return state.module.swap(given.origin, other.message, into.message, given.target, place)


def request(state: WindowState, begun: Operation | None, keep: object, target: int) -> Request:
    """A request for an operation, which keeps the user's buffers."""
    done = nothing() if begun is None else state.module.watched(begun, target)
    return Request._adopt(WindowRequestState(state, done, keep))  # noqa: SLF001 - as in all of mpi
