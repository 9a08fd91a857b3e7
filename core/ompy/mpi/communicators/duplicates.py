"""Duplicates of communicators: made at once, or in the background.

What `Idup` returns is a handle that is null until its request is complete: then the members have
agreed on a context id, and the handle refers to the new communicator.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.data.layout import BYTES
from ompy.data.message import equal_blocks, message_of
from ompy.data.request import Deferred
from ompy.data.request import Request as Operation
from ompy.engine.lock import RankLock
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Progression, Schedule
from ompy.mpi.collectives.collective_requests import collective_state
from ompy.mpi.communicators.attributes import copied
from ompy.mpi.communicators.context_agreement import (
    NO_PROPOSAL,
    agree_in_steps,
    first_proposal,
    go_on_in_steps,
    members_in_steps,
    proposal_of,
    release_context,
)
from ompy.mpi.communicators.making import make_communicator, with_context
from ompy.mpi.handles import plain_handle
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.state import CommState

if TYPE_CHECKING:
    from ompy.mpi.communicators.communicators import Communicators
    from ompy.mpi.info import Info

_PROPOSAL_SIZE: Final[int] = len(NO_PROPOSAL)
Handle = TypeVar("Handle", bound="Communicators")


class Inheritance:
    """What a duplicate has of its original, as it is when the duplicate is asked for.

    Raises:
        MPIException: a copy function of an attribute raised.
    """

    def __init__(self, original: Communicators, info: Info | None) -> None:
        state = original._state()
        self._attributes = copied(original) if state.attributes else None
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
    state = original._enter("Idup")
    inheritance = Inheritance(original, info)
    handle = type(original)._adopt(None)

    def give(made: CommState) -> None:
        inheritance.give_to(made)
        handle._inner = made

    return handle, begin_communicator(state, give)


def begin_communicator(state: CommState, give: Callable[[CommState], object]) -> Request:
    """Begin to make a communicator of the same members, in a call that all of them have begun.

    Args:
        state: the communicator.
        give: called with the new one before the request is complete.

    Raises:
        MPIException: that cannot be begun.
    """
    line = state.communicator.context.direct
    made_ones: list[CommState] = []
    try:
        if line is None:
            started = _begin(state, give)
        else:  # it may be the world that says when the program is told
            tag = state.communicator.order.tag()
            started = line.watch(state.communicator, tag, partial(_begin, state, made_ones.append))
            started.notify(lambda: list(map(give, made_ones)))
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    made: Request = plain_handle(Request, collective_state(state, started, None))
    return made


@cclass
class Duplication(Deferred):
    """A duplicate under way: the members tell each other their proposals in one nonblocking call.

    Attributes:
        problem: what a user's function raised: none is called.
    """

    _give: Callable[[CommState], object]
    _mark: tuple[int, int]
    _mine: int
    _state: CommState
    _tag: int
    _told: memoryview
    _word: U64
    problem: Exception | None
    __slots__ = tuple(__annotations__)

    def __init__(self, state: CommState, give: Callable[[CommState], object]) -> None:
        """Not begun yet; `give` is called with the new communicator."""
        Deferred.__init__(self)
        order = state.communicator.order
        self.problem = None
        self._state = state
        self._give = give
        self._tag = order.tag()
        self._word = order.word
        self._mine, self._mark = first_proposal(state.world)
        self._told = memoryview(bytearray(_PROPOSAL_SIZE * state.size))

    @ccall
    def begin(self) -> None:
        """Tell the others.

        Raises:
            MPIError: that cannot be begun.
        """
        state = self._state
        said = memoryview(proposal_of(self._mine, self._mark))
        send = message_of(said, 0, _PROPOSAL_SIZE, BYTES)
        receive = equal_blocks(self._told, 0, _PROPOSAL_SIZE, BYTES, state.size)
        coll = state.collectives()
        try:
            asked: Operation = coll.begin_operation("allgather", self._tag, (send, receive))
        except BaseException:
            release_context(state.world, self._mine)
            raise
        self.waits_on = asked
        coll.under_way.until(self)  # before it is told: the communicator may be freed meanwhile
        lock: RankLock = state.world.engine.lock
        lock.acquire(True)
        try:
            asked.notify(self._heard)
        finally:
            lock.release()

    def _heard(self) -> None:
        """All have told their proposals, or cannot."""
        world = self._state.world
        asked = self.waits_on
        assert isinstance(asked, Operation), "it was begun"
        self.waits_on = None
        if asked.error:
            release_context(world, self._mine)
            self.fail(asked.error, asked.detail)
            return
        rank: int
        for rank in range(self._state.size):
            if raw.signed_word(self._told, _PROPOSAL_SIZE * rank) != self._mine:
                self._go_on()
                return
        world.ids.following = self._mine + 1  # all hold it, and know that
        self._make(self._mine)

    @cfunc
    def _make(self, number: int) -> None:
        state = self._state
        try:
            made: CommState = with_context(
                state.world, number, -1, state.api, state.communicator.procs, None
            )
        except MPIError as problem:
            self.fail(problem.code, problem.detail)
            return
        self._give(made)
        self.finish()

    def _go_on(self) -> None:
        """The first proposals differ: further ones go as messages."""
        exchange = Exchange(self._state.communicator, self._tag)
        exchange.word = self._word
        steps = Progression(exchange, self._agree_in_steps(exchange)).begin()
        self.waits_on = steps

        def ended() -> None:
            self.waits_on = None
            if steps.error:
                self.fail(steps.error, steps.detail)

        steps.notify(ended)

    def _agree_in_steps(self, exchange: Exchange) -> Schedule:
        ask = partial(members_in_steps, exchange)
        answers = [
            bytes(self._told[at : at + _PROPOSAL_SIZE])
            for at in range(0, len(self._told), _PROPOSAL_SIZE)
        ]
        world = self._state.world
        self._make((yield from go_on_in_steps(world, ask, self._mine, self._mark, answers)))


def _begin(state: CommState, give: Callable[[CommState], object]) -> Operation:
    """Begin to agree.

    Raises:
        MPIError: that cannot be begun.
    """
    coll = state.collectives()
    if coll.begins("allgather") and not state.communicator.between:
        begun: Duplication = Duplication(state, give)
        begun.begin()
        return begun
    exchange = Exchange(state.communicator, state.communicator.order.tag())
    started: Operation = coll.begin_schedule(exchange, _duplicate_in_steps(state, exchange, give))
    return started


def _duplicate_in_steps(
    state: CommState, exchange: Exchange, give: Callable[[CommState], object]
) -> Schedule:
    communicator, world = state.communicator, state.world
    ask = partial(members_in_steps, exchange)
    number, line = (yield from agree_in_steps(world, ask)), -1
    if communicator.between and world.context.recovery is not None:
        line = yield from agree_in_steps(world, ask)
    own: Any = communicator.own if communicator.between else None
    give(with_context(world, number, line, state.api, communicator.procs, own))
