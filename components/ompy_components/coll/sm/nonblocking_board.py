"""Memory for the nonblocking calls of a communicator: a slot for each call of each member.

    0         the value that proves the memory to be the right one
    parked    a word per member: whether it sleeps
    words     for each member, for each of its slots: DONE; then those of `lending.py`
    slots     for each member: 0 SHOWN | 8 TOTAL | 16 CALL | 24 LENT | 32 the data, or 64 a table
              and data

A blocking call's fragments have one order and are done with in that order (`board.py`).
Nonblocking ones may complete in any, so that each slot says by itself which call it shows: SHOWN is
the number of the last call that the member has shown there, DONE of the last that it is done with.
A member may write its slot for a call when all are done with the call before of that slot. The
first `depth` slots are for calls that are begun once, call n in slot n modulo depth; each
persistent request has some of the others to itself, as members may start them in any order, and
those for which there are none are served by messages.

Much is lent (`lending.py`): LENT is where it is in its owner's process, and 0 where a table says so
of each block. The owner's call completes when those who read it are done. If it fails before that,
it says so in LENT.

SHOWN is stored last: little data come with the cache line that is looked at (`board.py`). Each word
has one writer. All zero is the valid initial state.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.frameworks.collectives.call_order import number_of
from ompy.frameworks.collectives.patience import PATIENCE, LongWait, differ, explained
from ompy.frameworks.communicator import Communicator
from ompy.net.base import Doorbell
from ompy.net.memory.process_copy import ProcessCopy
from ompy.net.memory.streaming import STREAM_LEAST, Streaming

from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.pending_call import (
    MESSAGES,
    PEERS,
    READERS,
    ROOM,
    PendingCall,
    SlotsInTurn,
)
from ompy_components.coll.sm.slots import ASLEEP, AWAKE, HEAD, LINE, LINE_WORDS, PARKED, SlotMemory

if DECLARING:
    from ompy.engine.base import Engine
if TYPE_CHECKING:
    from ompy.engine.timers import Timer

# words of a slot, by place; arbitrary
SHOWN: Final = 0
TOTAL: Final = 1
CALL: Final = 2
LENT: Final = 3
# polls without news until the others are asked; arbitrary: a program that tests in a loop does not
# sleep, and so has no other clock
LONG_POLLS: Final = 1 << 16
# polls without a call until this is polled no more; arbitrary: a program often begins the next
# soon, and to change the list of a rank's pollers costs as much as some ten polls
IDLE_POLLS: Final = 16
FOREVER: Final = 1 << 62  # number of a start that never comes; arbitrary, beyond all others
WORDS: Final = 3  # of a member beside those of its slots, as `lending.py` says


@ccall
def lines_of(size: int) -> int:
    """Bytes of the cache lines that so many bytes take."""
    return -(-size // LINE) * LINE


def nonblocking_size(ranks: int, slots: int, size: int) -> int:
    """Bytes of the memory of a communicator."""
    words = LINE + lines_of(8 * ranks) + ranks * lines_of(8 * (slots + WORDS))
    return words + ranks * slots * (LINE + lines_of(size))


@cclass
class NonblockingBoard(SlotMemory):
    """A member's view of the memory, and its calls that are under way.

    Attributes:
        least: bytes from which on data are lent, where that is possible.
        lending: of this memory's members.
        room: bytes of a slot.
    """

    _area: int
    _bells: dict[int, Doorbell]
    _calls: list[PendingCall]
    _communicator: Communicator
    _data: int
    _engine: Engine
    _first: int
    _line: int
    _polled: bool
    _polls: int
    _slot_size: int
    _slots: int
    _timer: Timer | None
    least: int
    lending: Lending
    room: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, memory: memoryview, slots: int, room: int
    ) -> None:
        """Begin with memory where nothing was shown; `lend` has to follow."""
        self.memory = memory
        self.rank = communicator.rank
        self.ranks = communicator.size
        self.streaming = Streaming(STREAM_LEAST)
        self.room = room
        self._communicator = communicator
        self._engine = communicator.context.engine
        self._words = memory.cast("Q")
        self._slots = slots
        self._slot_size = LINE + lines_of(room)
        self._area = slots * self._slot_size
        self._first = (LINE + lines_of(8 * self.ranks)) // 8
        self._line = lines_of(8 * (slots + WORDS)) // 8
        self._data = (self._first + self.ranks * self._line) * 8
        self._calls = []
        self._bells = {}
        self._polled = False
        self._polls = 0
        self._timer = None

    def lend(self, copy: ProcessCopy | None, least: int) -> None:
        """Lend what has so many bytes, where `copy` is there for it."""
        self.lending = Lending(self, copy)
        self.least = least

    def close(self) -> None:
        """Be polled no more; no call is under way."""
        self.lending.close()
        if self._polled:
            self._polled = False
            self._engine.remove_poller(self)

    # --- where things are

    @ccall
    def slot(self, rank: int, slot: int) -> int:
        """Where the data of a member's slot begin, in bytes."""
        return self._data + rank * self._area + slot * self._slot_size + HEAD

    @ccall
    def table(self, rank: int, slot: int) -> int:
        """Where a member's data begin that take long to write: not in the line of SHOWN."""
        return self._data + rank * self._area + slot * self._slot_size + LINE

    @ccall
    def line(self, rank: int) -> int:
        """Where a member's words about lending begin, in bytes."""
        return (self._first + rank * self._line + self._slots) * 8

    @cfunc
    def _at(self, rank: int, slot: int) -> int:
        """The word with which a member's slot begins."""
        return (self._data + rank * self._area + slot * self._slot_size) >> 3

    @cfunc
    def _done(self, rank: int, slot: int) -> int:
        """The word that says which call of a slot a member is done with."""
        return self._first + rank * self._line + slot

    # --- what members say

    @ccall
    def has_room(self, call: PendingCall) -> bool:
        """Whether all members are done with the call before in a slot.

        What they say of the next slots is looked at with it, and kept: their words are in the same
        cache line, which has to come from whoever wrote to it since.
        """
        turns: SlotsInTurn = call.turns
        number: U64 = call.number
        if turns.roomy <= number <= turns.up_to:
            return True
        if not self._are_done(call.slot, call.before):
            return False
        slot: int = call.slot + 1
        end: int = min(turns.first + turns.count, (slot + LINE_WORDS - 1) & -LINE_WORDS)
        before: U64 = call.before
        while slot < end and before:  # the first calls in all slots find room anyhow
            if not self._are_done(slot, before + 1):
                break
            before += 1
            slot += 1
        turns.roomy, turns.up_to = number, number + before - call.before
        return True

    @cfunc
    def _are_done(self, slot: int, number: U64) -> bool:
        """Whether all members are done with a call in a slot."""
        words = self._words
        rank: int
        for rank in range(self.ranks):  # noqa: SIM110 - a closure would not compile
            if words[self._done(rank, slot)] < number:
                return False
        return True

    @ccall
    def show(self, call: PendingCall, total: int) -> None:
        """Say that this member's slot has what it gives to a call, so many bytes."""
        words = self._words
        at: int = self._at(self.rank, call.slot)
        words[at + TOTAL] = total
        words[at + CALL] = call.word
        raw.put_word(self.memory, (at + SHOWN) * 8, call.number)
        raw.fence()
        self._wake()

    def refuse_all(self, turns: SlotsInTurn, word: U64) -> None:
        """Say in all slots of a persistent request that this member starts it never."""
        words = self._words
        slot: int
        for slot in range(turns.first, turns.first + turns.count):
            at: int = self._at(self.rank, slot)
            words[at + TOTAL] = 0
            words[at + CALL] = word
            words[self._done(self.rank, slot)] = FOREVER
            raw.put_word(self.memory, (at + SHOWN) * 8, FOREVER)
        raw.fence()
        self._wake()

    @ccall
    def finish(self, call: PendingCall) -> None:
        """Say that this member reads nothing more of a call."""
        self._words[self._done(self.rank, call.slot)] = call.number
        self._wake()

    @ccall
    def all_shown(self, call: PendingCall) -> bool:
        """Whether the members that a call waits for have shown theirs.

        Raises:
            MPIError: ERR_OTHER, one of them makes another call.
        """
        rank: int
        if call.sources is None:
            for rank in range(call.first, call.end):
                if not self._has_shown(rank, call):
                    return False
        else:
            for rank in call.sources:
                if not self._has_shown(rank, call):
                    return False
        return True

    @cfunc
    def _has_shown(self, rank: int, call: PendingCall) -> bool:
        """Whether a member has shown its data of a call.

        Raises:
            MPIError: ERR_OTHER, it makes another call.
        """
        words = self._words
        at: int = self._at(rank, call.slot)
        if words[at + SHOWN] < call.number:
            return False
        if words[at + CALL] != call.word:
            raise differ(self._communicator, rank, words[at + CALL], call.word)
        return True

    @ccall
    def total(self, rank: int, slot: int) -> int:
        """Bytes that a member gives to the call that it shows in a slot."""
        return self._words[self._at(rank, slot) + TOTAL]

    # --- what is lent

    @ccall
    def lends(self, size: int) -> bool:
        """Whether so many bytes are lent; who asks says that this member may read others'."""
        return size >= self.least and self.lending.possible()

    @ccall
    def say_lent(self, number: int, address: U64) -> None:
        """Say where this member's data of a slot are, before they are shown; 0: not lent."""
        self._words[self._at(self.rank, number) + LENT] = address

    @ccall
    def lent_by(self, rank: int, number: int) -> U64:
        """Where the data of a slot are that a member has shown; 0 if they are not lent."""
        return self._words[self._at(rank, number) + LENT]

    @ccall
    def offered(self, rank: int, slot: int, size: int) -> U64:
        """The same, of so many bytes: fewer than are lent are never."""
        if size < self.least:
            return 0
        self.lending.possible()  # it is said by who asks
        return self.lent_by(rank, slot)

    @ccall
    def read_lent(
        self, call: PendingCall, rank: int, address: U64, target: Message, size: int
    ) -> MPIError | None:
        """What a member has lent into a message, which has room. Returns what is wrong with it."""
        return self.lending.read_message(rank, call.slot, address, target, size)

    @ccall
    def read_bytes(self, call: PendingCall, rank: int, address: U64, view: memoryview) -> None:
        """A part of what a member has lent.

        Raises:
            LinkError: as of `Lending.read_lent`.
        """
        self.lending.read_lent(rank, call.slot, address, view)

    @ccall
    def was_read(self, call: PendingCall) -> bool:
        """Whether the members that read what a call has lent are done."""
        words = self._words
        rank: int
        if call.readers is None:
            for rank in range(self.ranks):
                if words[self._done(rank, call.slot)] < call.number:
                    return False
        else:
            for rank in call.readers:
                if words[self._done(rank, call.slot)] < call.number:
                    return False
        return True

    @ccall
    def wait_for_readers(self, call: PendingCall) -> None:
        """Go on with a call whose messages have ended, and that has lent something."""
        call.state = READERS
        self._follow(call)

    # --- calls under way

    @ccall
    def begin(self, call: PendingCall) -> None:
        """Go as far as that is possible at once; the rest comes by and by."""
        self._advance(call)
        if not call.complete and call.state != MESSAGES:
            self._follow(call)

    @cfunc
    def _follow(self, call: PendingCall) -> None:
        """Have a call brought on whenever this rank polls."""
        call.known = True
        if call in self._calls:
            return
        self._calls.append(call)
        if len(self._calls) == 1:
            self._polls = 0
            if not self._polled:
                self._polled = True
                self._engine.add_poller(self)

    @cfunc
    def _advance(self, call: PendingCall) -> bool:
        """Go on with a call; whether that was possible."""
        went: bool = False
        try:
            if call.state == ROOM:
                if not self.has_room(call):
                    return False
                call.state = PEERS
                call.show_own()
                went = True
            if call.state == PEERS and not call.complete and self.all_shown(call):
                call.take_others()
                went = True
            if call.state == READERS and not call.complete and self.was_read(call):
                call.end_reading()
                went = True
        except MPIError as problem:
            self._fail(call, problem)
            return True
        except Exception as problem:  # of a user's function; the API ends the job
            call.problem = problem
            text = f"{type(problem).__name__} in a reduction"
            self._fail(call, MPIError(ERR_OTHER, text))
            return True
        return went

    @cfunc
    def _fail(self, call: PendingCall, problem: MPIError) -> None:
        call.withdraw_lent()
        self.finish(call)
        said = explained(self._communicator, call.word, problem)
        call.fail(said.code, said.detail)

    @ccall
    def poll(self) -> int:
        """Go on with all calls that can."""
        events: int = 0
        call: PendingCall
        for call in self._calls:
            if not call.complete and self._advance(call):
                events += 1
        if events:
            self._polls = 0
            self._sweep()
        else:
            self._polls += 1
            if not self._calls:
                if self._polls >= IDLE_POLLS:
                    self._polled = False
                    self._engine.remove_poller(self)
            elif self._polls == LONG_POLLS:
                self._take_time()
        return events

    @cfunc
    def _sweep(self) -> None:
        """Forget the calls that need nothing more of this memory."""
        under_way: list[PendingCall] = []
        call: PendingCall
        for call in self._calls:
            if not call.complete and call.state != MESSAGES:
                under_way.append(call)
            elif call.patience is not None:
                call.patience.leave()
                call.patience = None
            else:
                call.known = False
        self._calls = under_way
        if not under_way:
            self.disarm()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    @ccall
    def arm(self) -> bool:
        """Say that this member sleeps, then look once more, also for those that have ended."""
        if not self._calls:
            return True
        self._words[PARKED + self.rank] = ASLEEP
        raw.fence()
        if self.poll():
            return False
        self._take_time()
        lost: bool = False
        for call in self._calls:
            if not call.complete and call.state != MESSAGES:
                lost = self._lose(call) or lost
        if lost:
            self._sweep()
        return not lost

    @cfunc
    def _lose(self, call: PendingCall) -> bool:
        """Fail a call that waits for a member that has left; whether it does."""
        procs = self._communicator.procs
        for rank in self._behind(call):
            if procs[rank].left:
                other = self._other_call(rank, call.word)
                if other:
                    self._fail(call, differ(self._communicator, rank, other, call.word))
                    return True
                name = self._communicator.name
                said = f"{procs[rank]} {procs[rank].left} without taking part in a collective"
                self._fail(call, MPIError(ERR_PROC_FAILED, f"{said} of {name}"))
                return True
        return False

    @cfunc
    def _other_call(self, rank: int, word: U64) -> U64:
        """What a member has shown under the number of a call, if it is another; else 0."""
        slot: int
        for slot in range(self._slots):
            other: U64 = self._words[self._at(rank, slot) + CALL]
            if other != word and number_of(other) == number_of(word):
                return other
        return 0

    def _members_behind(self, call: PendingCall) -> list[int]:
        return self._behind(call)

    @cfunc
    def _behind(self, call: PendingCall) -> list[int]:
        """The members that a call waits for."""
        words = self._words
        if call.state == ROOM:
            return [
                rank
                for rank in range(self.ranks)
                if words[self._done(rank, call.slot)] < call.before
            ]
        if call.state == READERS:
            return [
                rank
                for rank in (range(self.ranks) if call.readers is None else call.readers)
                if words[self._done(rank, call.slot)] < call.number
            ]
        sources = call.sources
        return [
            rank
            for rank in (range(call.first, call.end) if sources is None else sources)
            if words[self._at(rank, call.slot) + SHOWN] < call.number
        ]

    # --- calls that take long

    @cfunc
    def _take_time(self) -> None:
        """Ask the others which call they are in, if it goes on like this."""
        if self._timer is None:
            self._timer = self._engine.call_later(PATIENCE, self._inquire)

    def _inquire(self) -> None:
        """Somebody may be in another call, and wait as long for this member."""
        for call in self._calls:
            if call.complete or call.patience is not None or call.state in {ROOM, MESSAGES}:
                continue
            behind = partial(self._members_behind, call)
            wait = LongWait(self._communicator, call.word, behind, call)
            call.patience = wait
            wait.over.notify(self._heard(call, wait))
            wait.begin()
        self._timer = self._engine.call_later(PATIENCE, self._inquire) if self._calls else None

    def _heard(self, call: PendingCall, wait: LongWait) -> Callable[[], None]:
        def heard() -> None:
            if wait.problem is not None and not call.complete:
                self._fail(call, wait.problem)
                self._engine.call_later(0, self._forget)

        return heard

    def _forget(self) -> None:
        self._sweep()

    # --- waking

    @cfunc
    def _wake(self) -> None:
        words = self._words
        rank: int
        for rank in range(self.ranks):
            if words[PARKED + rank] == ASLEEP and rank != self.rank:
                words[PARKED + rank] = AWAKE
                self._ring(rank)

    @cfunc
    def _ring(self, rank: int) -> None:
        bell = self._bells.get(rank)
        if bell is None:
            proc = self._communicator.procs[rank]
            bell = self._communicator.context.network.doorbell(proc.local_rank)
            self._bells[rank] = bell
        bell.ring()

    # --- data

    @ccall
    def combine_with(
        self, at: int, operation: Operation, layout: Layout, view: memoryview, start: int, size: int
    ) -> None:
        """Store `memory op view` in `view`: `size` bytes from `at` and from `start` on."""
        operation.combine(layout, self.memory, at, view, start, size)
