"""Waiting for requests: one, any, or all of them."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from ompy.compiled import DECLARING, ccall
from ompy.data.request import Waitable
from ompy.mpi.requeststate import RequestState
from ompy.mpi.state import World

if TYPE_CHECKING:
    from ompy.mpi.request import Request

if DECLARING:
    pass


@ccall
def wait_for(state: RequestState) -> None:
    """Progress until an operation is complete."""
    state.engine.wait(state.operation)


@ccall
def poll_operation(state: RequestState) -> bool:
    """Let communication advance once; whether the operation is complete then."""
    state.engine.progress()
    if not state.operation.complete:
        state.engine.glance()
    return state.operation.complete


def _active(requests: Sequence[Request]) -> list[tuple[int, RequestState]]:
    """Those there is something to wait for, with their places."""
    found = []
    for place, request in enumerate(requests):
        state = request._inner
        if state is not None and state.active:
            found.append((place, state))
    return found


def _complete(active: list[tuple[int, RequestState]]) -> list[int]:
    return [place for place, state in active if state.operation.complete]


def some_complete(requests: Sequence[Request]) -> list[int] | None:
    """The places of the complete ones; None when there is nothing to wait for."""
    active = _active(requests)
    if not active:
        return None
    places = _complete(active)
    if not places:
        active[0][1].engine.progress()
        places = _complete(active)
        if not places:
            active[0][1].engine.glance()
    return places


def all_complete(requests: Sequence[Request]) -> bool:
    """Whether all of them are complete, after letting communication advance if they are not."""
    active = _active(requests)
    if all(state.operation.complete for _, state in active):
        return True
    active[0][1].engine.progress()
    active[0][1].engine.glance()
    return all(state.operation.complete for _, state in active)


def wait_any(requests: Sequence[Request]) -> int | None:
    """Progress until one is complete: its place; None when there is nothing to wait for."""
    active = _active(requests)
    if not active:
        return None
    places = _complete(active)
    while not places:
        _sleep(active)
        places = _complete(active)
    return places[0]


def _sleep(active: list[tuple[int, RequestState]]) -> None:
    """Progress until one of the operations may be complete.

    Each operation tells the rank's waiters once; no more than one note of it is ever kept,
    however often it is waited for in vain.
    """
    world = active[0][1].world
    assert world is not None, "a request without a rank is complete"
    bell = Waitable()
    with world.engine.lock:
        world.waiters.append(bell)
        for _, state in active:
            if not state.watched:
                state.watched = True
                state.operation.notify(partial(_ring, world))
    try:
        if not _complete(active):
            world.engine.wait(bell)
    finally:
        with world.engine.lock:
            world.waiters.remove(bell)


def _ring(world: World) -> None:
    for bell in world.waiters:
        if not bell.complete:
            bell.finish()
