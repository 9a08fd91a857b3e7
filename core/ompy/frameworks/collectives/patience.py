"""Waiting for the other members of a collective call, and asking them when that takes long.

Members who make different calls may wait for each other for ever: a gather's root for a member that
waits for a broadcast from it. Whoever has waited for `PATIENCE` asks those it waits for which call
they are in, and listens, in all communicators, for who asks. A rank that is asked compares the
asker's call with its own of that number. If they differ it answers, and both calls fail with an
error that names both. A member that is only late says nothing: the question stays until it waits
itself. So nothing is asked, and nothing posted, while all goes well.

| what is asked about | answer |
|---|---|
| a call that the rank has begun under the same word | none: it takes part, or has |
| a call that it has begun under another word | its own word; if it is in that call, it fails too |
| a call that it is past, if it was a blocking one | so: what has not come never will |
| a call in which its own part has failed | that it has given it up: the asker fails after a while |
| a call that it has not begun, or is in | kept, until it has, or has given it up |
| a call longer ago than it remembers | none |
| a call of some members (`Create_group`), which has no number | that it has given it up, if so |
| what a leader says in a `Create_intercomm` | that it takes no part (`leaders.py`), if so |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ompy.data.constants import ANY_SOURCE
from ompy.data.convertor import ContiguousConvertor, GrowingConvertor
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.data.request import Request, Waitable
from ompy.engine.base import Poller
from ompy.frameworks.collectives.call_order import (
    LEFT,
    REFUSED,
    GroupsOrder,
    call_text,
    is_blocking,
    is_of_leaders,
    is_same_call,
    number_of,
    tag_of_some,
    word_of_tag,
)
from ompy.frameworks.needs import RECEIVE
from ompy.frameworks.pml import STANDARD

if TYPE_CHECKING:
    from ompy.engine.timers import Timer
    from ompy.frameworks.communicator import Communicator
    from ompy.frameworks.context import RankContext

# internal tag; arbitrary, below those of coll
TAG_INQUIRY: Final = -50
# arbitrary: longer than most waits, so that most programs never ask, and short for a person
PATIENCE: Final = 250_000_000  # ns
ASK: Final = 1
ANSWER: Final = 2
GIVEN_UP: Final = 3
PAST: Final = 4
_INQUIRY: Final = Struct("<QQ")  # what it is; a word


def only(rank: int) -> tuple[int, ...]:
    """One member, as `inquire` asks whom it waits for."""
    return (rank,)


def inquire(
    communicator: Communicator,
    waitable: Waitable,
    awaited: Callable[[], Iterable[int]],
    word: int = 0,
) -> None:
    """Go on waiting, and ask those it waits for which call they are in.

    Args:
        communicator: whose call it is.
        waitable: completes when it goes on.
        awaited: says which members have to do something first, all of them.
        word: of the call; 0 for the last one.

    Raises:
        MPIError: ERR_OTHER, one of them, or one that asks here, has made another call.
    """
    engine = communicator.context.engine
    wait = LongWait(communicator, word or communicator.order.word, awaited, waitable)
    with engine.lock:
        waitable.notify(wait.end)
        wait.begin()
    try:
        engine.wait(wait.over)
    finally:
        with engine.lock:
            wait.leave()
    if wait.problem is not None:
        if number_of(wait.word):
            communicator.order.give_up(number_of(wait.word))
        raise wait.problem


def differ(communicator: Communicator, rank: int, word: int, own: int = 0) -> MPIError:
    """The error of members that make different calls, with which this one gives its call up.

    Args:
        communicator: theirs.
        rank: the other member; -1 if it is not known which.
        word: of its call.
        own: word of this rank's; 0 for the last one.
    """
    mine, name = own or communicator.order.word, communicator.name
    communicator.context.gave_up = True
    communicator.order.give_up(number_of(mine))
    if word & (REFUSED | LEFT):
        return _without(communicator, rank, word, mine)
    other = f"rank {rank}" if rank >= 0 else "another member"
    if communicator.between and rank >= 0:
        other += " of the other group"
    said = f"rank {communicator.rank} calls {call_text(mine)}, {other} calls {call_text(word)}"
    if number_of(word) != number_of(mine):
        said += f" as its collective call {number_of(word)} there"
    if isinstance(communicator.order, GroupsOrder):  # also where both groups are together
        said += f" (the first group is that of {communicator.first()})"
    return MPIError(
        ERR_OTHER,
        f"collective call {number_of(mine)} of {name} is not the same in all members: {said}. "
        f"All have to make the same calls in the same order",
    )


def _without(communicator: Communicator, rank: int, word: int, mine: int) -> MPIError:
    """The error of a call that a member takes no part in, as it has said in memory."""
    other = str(communicator.procs[rank]) if rank >= 0 else "another member"
    number, name = number_of(word), communicator.name
    said = f"{other} has given up {call_text(word)}, collective call {number} of {name}"
    if number == number_of(mine):
        return MPIError(ERR_OTHER, f"{said}: its part has failed there")
    return MPIError(
        ERR_OTHER,
        f"{call_text(mine)}, collective call {number_of(mine)} of {name}, has failed: {other} has "
        f"left the memory of the members in {call_text(word)}, its collective call {number}",
    )


def abandon(communicator: Communicator, tag: int, problem: Exception) -> None:
    """This member's part in a collective call has failed: the others are not to wait for it.

    Args:
        communicator: whose call it is.
        tag: of its messages.
        problem: what it failed with, of whatever kind.
    """
    code = problem.code if isinstance(problem, MPIError) else ERR_OTHER
    order = communicator.order
    communicator.context.gave_up = True
    order.give_up(number_of(word_of_tag(tag, order.word)) or order.number)
    communicator.pml.abandon(communicator, tag, code)


def explained(communicator: Communicator, word: int, problem: MPIError) -> MPIError:
    """Why a collective call failed: its error, or that a member has made another call.

    A member that has left or given up can be asked nothing. What it sent in another call of the
    same number is here, though, and nobody will ever receive it.

    Args:
        communicator: whose call it is.
        word: of the call; 0 for none.
        problem: what it failed with.
    """
    if problem.code not in {ERR_PROC_FAILED, ERR_OTHER} or not word:
        return problem
    for rank, tag in communicator.pml.unreceived(communicator):
        other = word_of_tag(tag, word)
        if number_of(other) == number_of(word) and not is_same_call(other, word):
            return differ(communicator, rank, other, word)
    return problem


def _named(word: int, communicator: str) -> str:
    """A call of a communicator."""
    number = number_of(word)
    if not number:
        return f"{call_text(word)} of some members of {communicator}"
    return f"{call_text(word)}, collective call {number} of {communicator}"


class LongWait(Poller):
    """A call that has waited for long.

    A peer whose process has ended answers nothing. What it sent before may still be under way for a
    moment; then the call fails.

    Attributes:
        communicator: whose call it is.
        word: of the call.
        served: what the call waits for.
        over: completes with what is waited for, or when another call was found.
        problem: that, or None.
    """

    def __init__(
        self,
        communicator: Communicator,
        word: int,
        awaited: Callable[[], Iterable[int]],
        served: Waitable,
    ) -> None:
        self.communicator = communicator
        self.word = word
        self.served = served
        self.over = Waitable()
        self.problem: MPIError | None = None
        self._awaited = awaited
        self._inquiries = inquiries_of(communicator.context)
        self._engine = communicator.context.engine
        self._timer: Timer | None = None

    def begin(self) -> None:
        """Listen and ask; the caller holds the rank's lock."""
        there = self._inquiries.is_there(self.communicator)
        if self.word and there and not self.over.complete:
            self._engine.add_poller(self)
            self._inquiries.enter(self)
            for rank in self.awaited():
                self._inquiries.tell(self.communicator, rank, ASK, self.word)

    def awaited(self) -> list[int]:
        """The other members that have to do something first."""
        procs, me = self.communicator.procs, self.communicator.context.me
        return [rank for rank in self._awaited() if procs[rank] is not me]

    def leave(self) -> None:
        """Listen no longer."""
        self._engine.remove_poller(self)
        if self._timer is not None:
            self._timer.cancel()
        self._inquiries.leave(self)

    def poll(self) -> int:
        """Nothing is done here."""
        return 0

    def arm(self) -> bool:
        """The rank is about to sleep, perhaps after news that a peer has ended."""
        if self._timer is None and self._ended() >= 0:
            self._timer = self._engine.call_later(PATIENCE // 2, self._look_again)
        return True

    def _look_again(self) -> None:
        """A rank that got no processor meanwhile has taken nothing in: it does before the next."""
        self._timer = self._engine.call_later(PATIENCE // 2, self._give_up)

    def _ended(self) -> int:
        procs = self.communicator.procs
        return next((rank for rank in self.awaited() if procs[rank].departed), -1)

    def _give_up(self) -> None:
        """The message of a peer that has ended would have been here."""
        if self.over.complete:
            return
        ended, name = self._ended(), self.communicator.name
        if ended < 0:
            self._timer = None
            return
        proc = self.communicator.procs[ended]
        self.problem = MPIError(
            ERR_PROC_FAILED,
            f"{proc} {proc.departed}, without taking part in {_named(self.word, name)}",
        )
        self.over.finish()

    def end(self) -> None:
        """What was waited for is here."""
        if not self.over.complete:
            self.over.finish()

    def found(self, rank: int, word: int) -> None:
        """A member is in another call, or was when it had come to this one's number."""
        if self.over.complete:
            return
        self.problem = differ(self.communicator, rank, word, self.word)
        self.over.finish()

    def overtaken(self, rank: int) -> None:
        """A member is past this call. What it sent has come: messages to be matched stay in order.

        So a receive that has no message yet will never have one.
        """
        need = self.communicator.pml.need(self.served)
        if need is None or need.what != RECEIVE or need.communicator is not self.communicator:
            return
        if need.ranks == (rank,):
            self._give_up_with(rank)

    def deserted(self, rank: int) -> None:
        """A member's part in this call has failed. What it sent before may still be under way."""
        self._engine.call_later(PATIENCE, partial(self._give_up_with, rank))

    def _give_up_with(self, rank: int) -> None:
        if self.over.complete:
            return
        proc = self.communicator.procs[rank]
        self.problem = MPIError(
            ERR_OTHER,
            f"{proc} has given up {_named(self.word, self.communicator.name)}: its part has "
            f"failed there",
        )
        self.over.finish()


def take_and_drop(communicator: Communicator, rank: int, tag: int) -> None:
    """Receive the next message of a member with a tag, whenever it comes: nobody wants it."""
    with suppress(MPIError):  # who cannot be reached sends nothing
        communicator.pml.irecv(communicator, GrowingConvertor(), rank, tag)


class CallInquiries:
    """Questions and answers of one rank; all is done with its lock held.

    Attributes:
        refusals: of leaders (`leaders.py`), once there was one; else None.
    """

    def __init__(self, context: RankContext) -> None:
        self.refusals: Any = None
        self._context = context
        self._waits: list[LongWait] = []
        self._posted: list[tuple[Communicator, Request]] = []
        self._sent: list[Request] = []
        self._early: list[tuple[Communicator, int, int]] = []

    @property
    def waits(self) -> list[LongWait]:
        """The calls that wait for long."""
        return list(self._waits)

    def enter(self, wait: LongWait) -> None:
        """A call waits for long: listen from now on."""
        self._waits.append(wait)
        if len(self._waits) == 1:
            for communicator in list(self._context.communicators.values()):
                self._listen(communicator)
        early, self._early = self._early, []
        for communicator, rank, word in early:
            self._asked(communicator, rank, word)

    def leave(self, wait: LongWait) -> None:
        """It waits no longer."""
        if wait in self._waits:
            self._waits.remove(wait)
        if not self._waits:
            posted, self._posted = self._posted, []
            for communicator, request in posted:
                if self.is_there(communicator):
                    with suppress(MPIError):
                        communicator.pml.cancel(request)
        self._sent = [request for request in self._sent if not request.complete]

    def tell(self, communicator: Communicator, rank: int, what: int, word: int) -> None:
        """Send a member a question or an answer. Whom it does not reach cannot answer."""
        said = ContiguousConvertor(memoryview(_INQUIRY.pack(what, word)))
        with suppress(MPIError):
            request = communicator.pml.isend(communicator, said, rank, TAG_INQUIRY, STANDARD)
            self._sent.append(request)

    def _listen(self, communicator: Communicator) -> None:
        if communicator.size < 2 and not communicator.between:
            return
        room = memoryview(bytearray(_INQUIRY.size))
        with suppress(MPIError):
            request = communicator.pml.irecv(
                communicator, ContiguousConvertor(room), ANY_SOURCE, TAG_INQUIRY
            )
            self._posted.append((communicator, request))
            request.notify(partial(self._arrived, communicator, request, room))

    def _arrived(self, communicator: Communicator, request: Request, room: memoryview) -> None:
        """Something came. It may come anywhere within the PML: what follows waits for a turn."""
        if not request.cancelled and not request.error:
            engine = self._context.engine
            engine.call_later(0, partial(self._read, communicator, request.source, room))
        self._posted = [pair for pair in self._posted if pair[1] is not request]

    def _read(self, communicator: Communicator, rank: int, room: memoryview) -> None:
        what, word = _INQUIRY.unpack(room)
        if what == ASK:
            self._asked(communicator, rank, word)
        elif what in {GIVEN_UP, PAST}:
            for wait in self._waits_in(communicator, word):
                if what == PAST:
                    wait.overtaken(rank)
                else:
                    wait.deserted(rank)
        else:
            self._compare(communicator, rank, word)
        if self._waits and self.is_there(communicator):
            self._listen(communicator)

    def is_there(self, communicator: Communicator) -> bool:
        """Whether it has not been released meanwhile, which may be in the middle of a wait."""
        return self._context.communicators.get(communicator.context_id) is communicator

    def _asked(self, communicator: Communicator, rank: int, word: int) -> None:
        order, number = communicator.order, number_of(word)
        if not number:
            self._asked_of_group(communicator, rank, word)
            return
        if number > order.number:
            self._early.append((communicator, rank, word))
            return
        mine = order.at(number)
        if not mine or not self.is_there(communicator):
            return
        if mine != word:
            self.tell(communicator, rank, ANSWER, mine)
            self._compare(communicator, rank, word)
        elif order.has_given_up(number):
            self.tell(communicator, rank, GIVEN_UP, word)
        elif self._waits_in(communicator, word):
            self._early.append((communicator, rank, word))  # its part may still fail
        elif number < order.number and is_blocking(word):
            self.tell(communicator, rank, PAST, word)

    def _asked_of_group(self, communicator: Communicator, rank: int, word: int) -> None:
        """The question is of a call that only some members make."""
        if not self.is_there(communicator):
            return
        if is_of_leaders(word):
            if self.refusals is None or not self.refusals.answer(communicator, rank, word):
                self._early.append((communicator, rank, word))
        elif communicator.order.has_refused_group(word):
            tag = tag_of_some(word)
            if (rank, tag) in communicator.pml.unreceived(communicator):
                take_and_drop(communicator, rank, tag)  # the next such call is not to find it
            self.tell(communicator, rank, GIVEN_UP, word)
        else:
            self._early.append((communicator, rank, word))

    def _waits_in(self, communicator: Communicator, word: int) -> list[LongWait]:
        return [
            wait for wait in self._waits if wait.communicator is communicator and wait.word == word
        ]

    def _compare(self, communicator: Communicator, rank: int, word: int) -> None:
        """Fail what waits in a call of that number under another word."""
        for wait in list(self._waits):
            same = wait.communicator is communicator and number_of(wait.word) == number_of(word)
            if same and wait.word != word:
                wait.found(rank, word)


def inquiries_of(context: RankContext) -> CallInquiries:
    """The inquiries of a rank, made on first use."""
    if context.inquiries is None:
        context.inquiries = CallInquiries(context)
    inquiries: CallInquiries = context.inquiries
    return inquiries
