"""Communicators between two groups: how their members make them.

One is a `Communicator` whose messages are for the other group (`Communicator.between`). All that
its members agree on goes straight between the groups: everybody tells the other group, and the
first member of that says what all have said (`exchange_between`). There is no hidden communicator
of one group. Until there is one between the groups, their leaders tell each other.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import Any, Final

from ompy.data.constants import TAG_UB, UNDEFINED
from ompy.data.errors import (
    ERR_ARG,
    ERR_COMM,
    ERR_GROUP,
    ERR_RANK,
    MPIError,
)
from ompy.frameworks.collectives.call_order import call_text, tag_of_leaders, word_of_leaders
from ompy.frameworks.collectives.leaders import (
    Lead,
    accepted,
    refuse,
    refused,
    swap_messages,
    unwrapped,
)
from ompy.frameworks.collectives.values import pack_values, unpack_values
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.proc import Proc
from ompy.mpi.communicators.context_agreement import (
    Ask,
    exchange_between,
    exchange_values,
    exchange_words_between,
    release_context,
)
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.making import agree_on_communicator, agree_on_ids
from ompy.mpi.communicators.uniting import asking, everybody
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point.peers import with_size
from ompy.mpi.state import CommState, World

_NUMBER: Final = Struct("<q")
_COLOR_KEY: Final = Struct("<qqq")  # and a rank in the world
LOW, HIGH = b"\0", b"\1"  # of a merge


def create(
    state: CommState, local_leader: int, peer: CommState | None, remote_leader: int, tag: int
) -> CommState:
    """A communicator between this group and another; all of both call this.

    Args:
        state: of this group.
        local_leader: rank in it.
        peer: a communicator of both leaders; only the leader looks at it.
        remote_leader: rank in that of the other group's leader.
        tag: keeps calls of several threads apart; not negative.

    Raises:
        MPIException: it cannot be made; the error handler of `state` had its say.
    """
    talk = _PeerTalk(state, peer, remote_leader, tag)
    leaders = Leaders(state, local_leader, state.communicator.order.tag(), talk.swap, talk.refuse)
    made: CommState = state.call(create_by, state, leaders)
    return made


def refuse_to_lead(
    state: CommState | None,
    leader: Any,
    lead: tuple[Any, Any, Any],
    problem: Exception,
) -> None:
    """This process's call of `Create_intercomm` is wrong: tell the other leader if it is one, too.

    Args:
        state: of its group; None of one that is null or freed: nobody waits for that.
        leader: of the group, as the user gave it.
        lead: so, too: a state of the communicator of both leaders, the rank of the other in it, and
            a tag.
        problem: what is wrong.
    """
    if state is None or not state.size:
        return
    rank = number_below(leader, state.size)
    if rank not in {-1, state.communicator.rank}:
        return  # another one leads, and is told by its group
    peer, remote, tag = lead
    communicator = peer.communicator if isinstance(peer, CommState) and peer.size else None
    there = number_below(remote, TAG_UB if communicator is None else communicator.size)
    if communicator is not None and there == communicator.rank:
        there = -1
    known = Lead(communicator, there, number_below(tag, TAG_UB + 1))
    refuse(state.world.context, known, problem, surely=rank >= 0 or state.size == 1)


def number_below(given: Any, end: int) -> int:
    """An integer below `end` that the user gave; -1 where it is none."""
    try:
        number = whole_number(given)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if 0 <= number < end else -1


def connect(state: CommState, leaders: Leaders, procs: Sequence[Proc], name: str) -> CommState:
    """A communicator between this group and another that is known; all of both call this.

    Args:
        state: of this group.
        leaders: how the two talk.
        procs: the other one.
        name: for messages to people; empty for the usual one.

    Raises:
        MPIError: it cannot be made.
    """
    made = _made(state.world, partial(everybody, leaders.ask), state.communicator.procs, procs)
    made.communicator.give_name(name)
    return made


def create_by(state: CommState, leaders: Leaders) -> CommState:
    """The same, told how the leaders talk.

    Raises:
        MPIError: it cannot be made.
    """
    own, world = state.communicator.procs, state.world
    _, theirs = leaders.ask(_NUMBER.pack(world.context.rank))
    procs = [world.context.proc(_NUMBER.unpack(value)[0]) for value in theirs]
    shared = set(procs) & set(own)
    if shared:  # all see that
        who = min(shared, key=lambda proc: proc.rank)
        raise MPIError(ERR_COMM, f"{who} is in both groups, which may share no process")
    return _made(world, partial(everybody, leaders.ask), own, procs)


def duplicate(state: CommState) -> CommState:
    """A communicator between the same groups; all of both call this."""
    communicator = state.communicator
    ask = asking(communicator)
    made: CommState = state.call(_made, state.world, ask, communicator.own, communicator.procs)
    return made


def subset(state: CommState, group: Group) -> CommState | None:
    """A communicator between some of each group; all of both call this.

    Args:
        state: the communicator.
        group: of this process's own group; the same in each of its members.

    Returns:
        None where this process is not in it, or one of the two has nobody.
    """
    communicator, world = state.communicator, state.world
    wanted = group._state().procs
    for proc in wanted:
        if proc not in communicator.own:
            raise state.fail(ERR_GROUP, f"{proc} is not in this group of {communicator.name}")
    said = b"".join(_NUMBER.pack(proc.rank) for proc in wanted)
    _, theirs = state.call(exchange_between, communicator, communicator.order.tag(), said)
    there = [world.context.proc(number) for (number,) in _NUMBER.iter_unpack(theirs[0])]
    return _of_some(state, wanted, there)


def split(state: CommState, color: int, key: int) -> CommState | None:
    """A communicator between those of each group with one colour; all of both call this.

    Returns:
        None where the colour is UNDEFINED, or nobody of the other group has it.
    """
    communicator = state.communicator
    if color < 0 and color != UNDEFINED:
        raise state.fail(ERR_ARG, f"colour {color}: a colour is not negative, or UNDEFINED")
    said = _COLOR_KEY.pack(color, key, state.world.context.rank)
    told = state.call(exchange_words_between, communicator, communicator.order.tag(), said)
    here, there = (_of_color(state.world, values, color) for values in told)
    return _of_some(state, here, there)


def _of_color(world: World, values: Sequence[bytes], color: int) -> list[Proc]:
    """Those with this colour, in the order of their keys; none for UNDEFINED."""
    rows = [_COLOR_KEY.unpack(value) for value in values]
    chosen = [
        (its_key, place, number)
        for place, (its_color, its_key, number) in enumerate(rows)
        if its_color == color != UNDEFINED
    ]
    return [world.context.proc(number) for _, _, number in sorted(chosen)]


def _of_some(state: CommState, here: Sequence[Proc], there: Sequence[Proc]) -> CommState | None:
    """A communicator between some; the others only agree that its context is free."""
    world, ask = state.world, asking(state.communicator)
    if here and there and world.context.me in here:
        made: CommState = state.call(_made, world, ask, here, there)
        return made
    for number in state.call(agree_on_ids, world, ask, True):
        release_context(world, number)
    return None


def merge(state: CommState, high: bool) -> CommState:
    """A communicator of both groups; all of both call this.

    Args:
        state: between the two.
        high: this group's ranks come after the other's; where both say the same, the group whose
            first process has the lower rank in COMM_WORLD comes first.
    """
    from ompy.mpi.communicators.intracomm import Intracomm

    communicator = state.communicator
    said = HIGH if high else LOW
    tag = communicator.order.tag()
    ours, theirs = state.call(exchange_words_between, communicator, tag, said)
    if len({*ours}) > 1 or len({*theirs}) > 1:
        raise state.fail(ERR_ARG, "the members of one group give different values of high")
    own, other = communicator.own, communicator.procs
    first = said < theirs[0] if said != theirs[0] else own[0].rank < other[0].rank
    members = [*own, *other] if first else [*other, *own]
    ask = asking(communicator)
    made: CommState = state.call(agree_on_communicator, state.world, ask, Intracomm, members)
    return made


def _made(world: World, ask: Ask, own: Sequence[Proc], procs: Sequence[Proc]) -> CommState:
    """The communicator, once its members have a context."""
    from ompy.mpi.communicators.intercomm import Intercomm

    return agree_on_communicator(world, ask, Intercomm, procs, own)


class Leaders:
    """How two groups talk that have no communicator yet."""

    def __init__(
        self,
        state: CommState,
        leader: int,
        tag: int,
        swap: Callable[[bytes], memoryview | bytes],
        refuse: Callable[[Exception], None] | None = None,
    ) -> None:
        """They have said nothing.

        Args:
            state: of this group.
            leader: rank in it.
            tag: internal tag nobody else uses at the same time in this group.
            swap: the leader tells the other one something, and hears the same of it.
            refuse: it tells the other one that this group takes no part, and why; None where only
                the end of a process can be the reason.
        """
        self._state = state
        self._leader = leader
        self._swap = swap
        self._refuse = refuse
        self._tag = tag

    def ask(self, said: bytes) -> tuple[list[bytes], list[bytes]]:
        """What the members of this group and of the other one say.

        Raises:
            MPIError: a member of this group, or the other one, takes no part.
        """
        communicator = self._state.communicator
        members = range(communicator.size)
        leads = communicator.rank == self._leader
        try:
            ours = exchange_values(communicator, members, self._tag, said)
        except MPIError as problem:
            if leads and self._refuse is not None:
                self._refuse(problem)
            raise
        told = self._led(pack_values(ours)) if leads else b""
        answer = exchange_values(communicator, members, self._tag, told)[self._leader]
        return ours, unpack_values(unwrapped(answer))

    def _led(self, data: bytes) -> bytes:
        """The leader's part; the group waits for it, and is told when that fails."""
        communicator = self._state.communicator
        try:
            answer = bytes(self._swap(accepted(data)))
        except MPIError as problem:
            members = range(communicator.size)
            call = call_text(communicator.order.word)
            text = f"{communicator.context.me}, the leader in {call}: {problem.detail}"
            told = refused(MPIError(problem.code, text))
            with suppress(MPIError):
                exchange_values(communicator, members, self._tag, told)
            raise
        return answer


class _PeerTalk:
    """Two leaders talk in a communicator of theirs."""

    def __init__(self, state: CommState, peer: CommState | None, remote: int, tag: int) -> None:
        self._state = state
        self._peer = peer
        self._remote = remote
        self._tag = tag

    def swap(self, data: bytes) -> memoryview:
        """Tell the other leader something, and hear the same of it."""
        try:
            communicator = self._communicator()
        except MPIError as problem:
            self.refuse(problem)
            raise
        remote, tag = self._remote, self._tag
        word = word_of_leaders(tag)
        engine = self._state.world.engine
        return swap_messages(engine, communicator, remote, tag_of_leaders(tag), data, word)

    def _communicator(self) -> Communicator:
        peer = self._peer
        if peer is None:
            raise MPIError(ERR_COMM, "the leader's peer communicator is null")
        if not 0 <= self._remote < peer.size:
            raise MPIError(ERR_RANK, f"remote leader {self._remote} is not in {with_size(peer)}")
        communicator = peer.communicator
        if communicator.procs[self._remote] is communicator.context.me:
            raise MPIError(ERR_RANK, f"remote leader {self._remote} is the local leader itself")
        return communicator

    def refuse(self, problem: Exception) -> None:
        """Tell the other leader that this group takes no part."""
        lead = (self._peer, self._remote, self._tag)
        refuse_to_lead(self._state, self._state.communicator.rank, lead, problem)
