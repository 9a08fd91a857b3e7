"""Waiting for requests: one, any, or all of them."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.compiled import ccall, cfunc
from ompy.data.request import AnyOf, Deferred
from ompy.engine.base import Engine
from ompy.mpi.handles import Handle
from ompy.mpi.point_to_point.requeststate import (
    PersistentMessageState,
    PersistentState,
    RequestState,
)
from ompy.mpi.state import World

if TYPE_CHECKING:
    from ompy.mpi.point_to_point.request import Request

NONE_YET: Final = -1
NOTHING: Final = -2
# arbitrary: some 20 us, as long as a peer takes that is busy with its part of an exchange
ROUNDS_AWAKE: Final = 200


def no_request(given: object) -> TypeError:
    """The exception for what is among requests and is none; in mpi4py's words."""
    return TypeError(f"Cannot convert {type(given).__name__} to mpi4py.MPI.Request")


@cfunc
def _state_of(request: object) -> RequestState | None:
    """What a request refers to; None for a null one.

    Raises:
        TypeError: it is no request.
    """
    if not isinstance(request, Handle):
        raise no_request(request)
    handle: Handle = request
    state: RequestState | None = handle._inner
    return state


@cfunc
def _engine_of(state: RequestState) -> Engine:
    """What drives the rank of an operation that is not complete."""
    world: World | None = state.world
    assert world is not None, "a request without a rank is complete"
    return world.engine


@ccall
def wait_for(state: RequestState) -> None:
    """Progress until an operation is complete."""
    engine: Engine = _engine_of(state)
    engine.wait(state.operation)


@ccall
def poll_operation(state: RequestState) -> bool:
    """Let communication advance once; whether the operation is complete then."""
    engine: Engine = _engine_of(state)
    operation = state.operation
    # an operation of several messages: more of them may be here
    further: bool = engine.progress() > 0 and isinstance(operation, Deferred)
    if not operation.complete:
        while further and not operation.complete:
            further = engine.look_further()
        engine.glance()
    return operation.complete


@ccall
def is_active(state: RequestState) -> bool:
    """Whether there is something to wait for."""
    return not isinstance(state, PersistentState) or state.running


@cfunc
def _any_active(requests: Sequence[Request]) -> RequestState | None:
    """One that there is something to wait for of, or None."""
    for request in requests:
        state: RequestState | None = _state_of(request)
        if state is not None and is_active(state):
            return state
    return None


@cfunc
def _complete(requests: Sequence[Request]) -> list[int]:
    """The places of the complete ones."""
    places: list[int] = []
    place: int = 0
    for request in requests:
        state: RequestState | None = _state_of(request)
        if state is not None and state.operation.complete and is_active(state):
            places.append(place)
        place += 1  # noqa: SIM113 - a number in C
    return places


@cfunc
def _all_complete(requests: Sequence[Request]) -> bool:
    for request in requests:
        state: RequestState | None = _state_of(request)
        if state is not None and not state.operation.complete and is_active(state):
            return False
    return True


@ccall
def some_complete(requests: Sequence[Request]) -> list[int] | None:
    """The places of the complete ones; None when there is nothing to wait for."""
    places = _complete(requests)
    if places:
        return _more_complete(requests, places)
    one: RequestState | None = _any_active(requests)
    if one is None:
        return None
    engine: Engine = _engine_of(one)
    engine.progress()
    places = _complete(requests)
    if places:
        return _more_complete(requests, places)
    engine.glance()
    return places


@cfunc
def _more_complete(requests: Sequence[Request], places: list[int]) -> list[int]:
    """The places of the complete ones, with those that may complete at the same time."""
    for request in requests:
        handle: Handle = request
        state: RequestState | None = handle._inner
        if state is None or state.operation.complete or not is_active(state):
            continue
        engine: Engine = _engine_of(state)
        if not engine.look_further():
            return places
        places = _complete(requests)
    return places


@ccall
def all_complete(requests: Sequence[Request]) -> bool:
    """Whether all of them are complete, after letting communication advance if they are not."""
    if _all_complete(requests):
        return True
    one: RequestState | None = _any_active(requests)
    assert one is not None, "one of them is not complete"
    engine: Engine = _engine_of(one)
    further: bool = engine.progress() > 0
    while further and not _all_complete(requests):
        further = engine.look_further()
    engine.glance()
    return _all_complete(requests)


@ccall
def first_complete(requests: Sequence[Request]) -> int:
    """The place of the first complete one, after letting communication advance if there is none.

    Returns:
        Its place; `NONE_YET`, or `NOTHING` when there is nothing to wait for.
    """
    place: int = _first_complete(requests)
    if place >= 0:
        return place
    one: RequestState | None = _any_active(requests)
    if one is None:
        return NOTHING
    engine: Engine = _engine_of(one)
    engine.progress()
    place = _first_complete(requests)
    if place < 0:
        engine.glance()
    return place


@ccall
def wait_for_each(requests: Iterable[Request]) -> None:
    """Wait for requests in turn; none of them ends."""
    for request in requests:
        state: RequestState | None = _state_of(request)
        if state is not None and not state.operation.complete:
            wait_for(state)


@ccall
def wait_plain_requests(requests: Iterable[Request]) -> bool:
    """Wait for requests in turn, as long as they are of messages and succeed; their handles end.

    Those that can be started again do not end.

    Returns:
        Whether they all were; if not, the others are as they were.
    """
    for request in requests:
        state: RequestState | None = _state_of(request)
        if state is None:
            continue
        again = isinstance(state, PersistentMessageState)
        if not again and type(state) is not RequestState:
            return False
        if not state.operation.complete:
            wait_for(state)
        if state.operation.error:
            return False
        if again:
            state.successor()
        else:
            handle: Handle = request
            handle._inner = None
    return True


@ccall
def end_plain_requests(requests: Sequence[Request], places: list[int]) -> bool:
    """End complete requests in turn, as long as they are plain ones and have succeeded.

    Args:
        requests: among which they are.
        places: theirs.

    Returns:
        Whether they all were; if not, the others are as they were.
    """
    for place in places:
        handle: Handle = requests[place]
        state: RequestState | None = handle._inner
        if state is None:
            continue
        if type(state) is not RequestState or state.operation.error:
            return False
        handle._inner = None
    return True


@ccall
def wait_any(requests: Sequence[Request]) -> int:
    """Progress until one is complete: its place; -1 when there is nothing to wait for."""
    place: int = _first_complete(requests)
    if place >= 0:
        return place
    one: RequestState | None = _any_active(requests)
    if one is None:
        return -1
    engine: Engine = _engine_of(one)
    rounds: int = 0 if engine.has_core else ROUNDS_AWAKE
    # what comes soon is seen sooner than each of them can be asked to tell of it
    while place < 0 and rounds < ROUNDS_AWAKE:
        rounds += 1
        if engine.progress():
            place = _first_complete(requests)
    while place < 0:
        _sleep(requests)
        place = _first_complete(requests)
    return place


@cfunc
def _first_complete(requests: Sequence[Request]) -> int:
    """The place of the first one that is complete, or -1."""
    place: int = 0
    for request in requests:
        state: RequestState | None = _state_of(request)
        if state is not None and state.operation.complete and is_active(state):
            return place
        place += 1  # noqa: SIM113 - a number in C
    return -1


def _sleep(requests: Sequence[Request]) -> None:
    """Progress until one of the operations may be complete.

    Each operation tells the rank's waiters once; no more than one note of it is ever kept,
    however often it is waited for in vain.
    """
    one = _any_active(requests)
    assert one is not None, "there is something to wait for"
    world = one.world
    assert world is not None, "a request without a rank is complete"
    states = [request._inner for request in requests]
    bell = AnyOf([state.operation for state in states if state is not None and is_active(state)])
    with world.engine.lock:
        world.waiters.append(bell)
        for request in requests:
            state = request._inner
            if state is not None and not state.watched and is_active(state):
                state.watched = True
                state.operation.notify(partial(_ring, world))
    try:
        if _first_complete(requests) < 0:
            world.engine.wait(bell)
    finally:
        with world.engine.lock:
            world.waiters.remove(bell)


def _ring(world: World) -> None:
    for bell in world.waiters:
        if not bell.complete:
            bell.finish()
