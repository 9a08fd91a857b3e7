"""Duplicates of communicators: made at once, or in the background.

What `Idup` returns is a handle that is null until its request is complete: then the members have
agreed on a context id, and the handle refers to the new communicator.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule
from ompy.mpi.communicators.attributes import copied
from ompy.mpi.communicators.context_agreement import (
    Steps,
    agree_in_steps,
    between_in_steps,
    release_context,
    values_in_steps,
)
from ompy.mpi.communicators.making import make_communicator
from ompy.mpi.state import CommState

if TYPE_CHECKING:
    from ompy.mpi.communicators.communicators import Communicators
    from ompy.mpi.info import Info
    from ompy.mpi.point_to_point.request import Request

Handle = TypeVar("Handle", bound="Communicators")


class Inheritance:
    """What a duplicate has of its original, as it is when the duplicate is asked for.

    Raises:
        MPIException: a copy function of an attribute raised.
    """

    def __init__(self, original: Communicators, info: Info | None) -> None:
        state = original._state()
        self._attributes = copied(original)
        self._topology = state.topology
        self._info = None if state.info is None else dict(state.info)
        if info:
            self._info = dict(info.items())

    def give_to(self, made: CommState) -> None:
        """The duplicate is there."""
        made.attributes = self._attributes
        made.topology = self._topology
        made.info = self._info


def duplicate(original: Handle, info: Info | None) -> Handle:
    """A communicator of the same members; all of them call this.

    Args:
        original: a handle of the communicator.
        info: hints; None for those of the original.

    Raises:
        MPIException: it cannot be made, or a copy function of an attribute raised.
    """
    state = original._enter("Dup")
    inheritance = Inheritance(original, info)
    if state.communicator.between:
        from ompy.mpi.communicators.between import duplicate as duplicate_between

        made = duplicate_between(state)
    else:
        tag = state.communicator.order.tag()
        made = make_communicator(state, range(state.size), tag, state.api)
    inheritance.give_to(made)
    return type(original)._adopt(made)


def begin_duplicate(original: Handle, info: Info | None) -> tuple[Handle, Request]:
    """Begin what `duplicate` does.

    Returns:
        A handle that is null until the request is complete, and the request.

    Raises:
        MPIException: as `duplicate`.
    """
    from ompy.mpi.collectives.collective_requests import CollectiveState
    from ompy.mpi.point_to_point.request import Request

    state = original._enter("Idup")
    inheritance = Inheritance(original, info)
    handle = type(original)._adopt(None)

    def give(made: CommState) -> None:
        inheritance.give_to(made)
        handle._inner = made

    exchange = Exchange(state.communicator, state.communicator.order.tag())
    steps = _duplicate_in_steps(state, exchange, give)
    started = state.call(state.coll.begin_schedule, exchange, steps)
    return handle, Request._adopt(CollectiveState(state, started, None))


def _duplicate_in_steps(
    state: CommState, exchange: Exchange, give: Callable[[CommState], object]
) -> Schedule:
    communicator, world = state.communicator, state.world

    def ask(said: bytes) -> Steps[list[bytes]]:
        if communicator.between:
            both = yield from between_in_steps(exchange, said)
            return list(chain(*both))
        return (yield from values_in_steps(exchange, range(exchange.size), said))

    number, line = (yield from agree_in_steps(world, ask)), -1
    if communicator.between and world.context.recovery is not None:
        line = yield from agree_in_steps(world, ask)
    own: Any = communicator.own if communicator.between else None
    name = f"communicator {number}"
    try:
        made = world.process.communicator(number, communicator.procs, name, own, line)
    finally:
        release_context(world, number)
        release_context(world, line)
    give(CommState(world, made, state.api))
