"""What the members of a communicator share: counters, and room for fragments.

    0         the value that proves the memory to be the right one, then words for others
    parked    a word per member: whether it sleeps, and what for
    lines     one cache line per member: last fragment done with, its process, where that has this
              memory, whether it may read all others' (`lending.py`); the last word: that it has
              left, and in which call
    results   one slot for each of the last `depth` fragments
    slots     as many for each member, side by side
    windows   room as large as the slots, for results and for each member, for much data

    slot: 0 number of the fragment | 8 bytes of the whole message | 16 the call (`call_order.py`)
          | 24 where a large broadcast is lent | 32 the data, or 64 a table and data

Every fragment of every operation has the next number, which all members count alike. Fragment k
uses the slots k modulo depth. A member may write a slot again when all others are done with what
was in it. The number is stored last: whoever waits looks at it alone, and what it speaks of comes
with the same cache line, if it is little. Each word has one writer, but the head of a result: two
members may make the same result, of the same bytes.

A member compares the call with its own wherever it looks at a fragment of others: when it shows its
own, all that were shown before; in the header, before it takes a result. So of two members that
make different calls the later one sees it.

A member may take no part in a call, or leave the memory (`leaving.py`).

All zero is the valid initial state.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.request import Waitable
from ompy.frameworks.collectives.call_order import LEFT, REFUSED, number_of
from ompy.frameworks.collectives.patience import PATIENCE, differ, explained, inquire
from ompy.frameworks.communicator import Communicator
from ompy.net.base import Doorbell
from ompy.net.memory.streaming import STREAM_LEAST, Streaming

from ompy_components.coll.sm.slots import (
    ASLEEP,
    AWAKE,
    HEAD,
    LINE,
    LINE_WORDS,
    PARKED,
    SlotMemory,
    lines_of,
    slot_size,
)

if DECLARING:
    from ompy.engine.base import Engine
    from ompy.frameworks.collectives.call_order import CallOrder

DONE: Final = 0  # word of a member's line; the next three are those of `lending.py`
GONE: Final = LINE_WORDS - 1  # the call in which a member has left the memory; 0: it has not
WAITS_FOR_DONE: Final = 2  # in a parked word, arbitrary: wake me when somebody is done
# words of a slot's head
NUMBER: Final = 0
TOTAL: Final = 1
CALL: Final = 2
LENT: Final = 3  # address of a broadcast's data in its root's process; 0: they are in slots
# what a member waits for
RESULT: Final = 0  # the result of a fragment; or that it can make it
SHOWN_BY: Final = 1  # that some members have shown it
DONE_BY: Final = 2  # that some members are done with it


@cclass
class Board(SlotMemory):
    """A member's view of the memory; it waits in the engine until the others have come so far.

    Attributes:
        depth: slots of each.
        area: bytes of all slots of one.
        last: number of the last fragment of the last operation.
    """

    _bells: dict[int, Doorbell]
    _communicator: Communicator
    _end: int
    _engine: Engine
    _first: int
    _goal: int
    _idle: bool
    _lines: int
    _last: int
    _lost: int
    _number: U64
    _order: CallOrder
    _own: int
    _safe: int
    _slot: int
    _slots: int
    _stride: int
    _waits: Waitable
    _windows: int
    area: int
    depth: int
    last: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, memory: memoryview, depth: int, fragment: int
    ) -> None:
        self.memory = memory
        self.rank = communicator.rank
        self.ranks = communicator.size
        self.streaming = Streaming(STREAM_LEAST)
        assert depth & (depth - 1) == 0, "a power of two"
        self.depth = depth
        self._last = depth - 1
        self.area = depth * slot_size(fragment)
        self.last = 0
        self._communicator = communicator
        self._engine = communicator.context.engine
        self._order = communicator.order
        self._words = memory.cast("Q")
        self._slot = slot_size(fragment)
        first = LINE + lines_of(self.ranks)
        self._lines = first // 8
        self._own = self._lines + self.rank * LINE_WORDS
        self._slots = first + self.ranks * LINE
        self._windows = self._slots + (1 + self.ranks) * self.area
        self._stride = self.area // 8  # words from a member's slot to the next one's
        self._safe = 0  # all are known to be done with the fragments up to here
        self._waits = Waitable()
        self._idle = True
        self._goal = RESULT
        self._first, self._end = 0, self.ranks  # the members that are waited for
        self._number = 0
        self._lost = -1
        self._bells = {}

    # --- where things are, in bytes

    @ccall
    def header(self, number: int) -> int:
        """Where the head of a fragment's result begins."""
        return self._slots + (number & self._last) * self._slot

    @ccall
    def result(self, number: int) -> int:
        """Where the data of a fragment's result begin."""
        return self.header(number) + HEAD

    @cfunc
    def _head(self, rank: int, number: int) -> int:
        """The word with which a member's slot of a fragment begins."""
        at: int = self._slots + (number & self._last) * self._slot
        return (at >> 3) + (1 + rank) * self._stride

    @ccall
    def slot(self, rank: int, number: int) -> int:
        """Where the data of a member's fragment begin."""
        return self._slots + (number & self._last) * self._slot + (1 + rank) * self.area + HEAD

    @ccall
    def table(self, rank: int, number: int) -> int:
        """Where a member's data begin that take long to write: not in the line with the number.

        Whoever looks at that line would take it away in the middle.
        """
        return self.slot(rank, number) - HEAD + LINE

    @ccall
    def all_results(self) -> int:
        """Where the window of results begins: `area` bytes."""
        return self._windows

    @ccall
    def all_slots(self, rank: int) -> int:
        """Where a member's window begins: `area` bytes."""
        return self._windows + (1 + rank) * self.area

    # --- what members say

    @ccall
    def agree(self, number: int, total: U64) -> bool:
        """Whether all members have shown a fragment of a message of so many bytes."""
        words = self._words
        at: int = self._head(0, number)
        call: U64 = self._order.word
        rank: int
        for rank in range(self.ranks):
            if words[at + CALL] != call:
                raise self._other_call(rank, words[at + CALL])
            if words[at + TOTAL] != total:
                return False
            at += self._stride
        return True

    @ccall
    def join(self, number: U64) -> bool:
        """See that those who have shown a fragment are in this call. Whether that is everybody.

        Raises:
            MPIError: ERR_OTHER, a member makes another call.
        """
        words = self._words
        at: int = self._head(0, number)
        call: U64 = self._order.word
        shown: bool = True
        rank: int
        for rank in range(self.ranks):
            if words[at + NUMBER] < number:
                shown = False
            elif words[at + CALL] != call:
                raise self._other_call(rank, words[at + CALL])
            at += self._stride
        return shown

    @ccall
    def meet(self, number: U64) -> None:
        """Wait until all have shown a fragment, and see before and afterwards that it is this call.

        Raises:
            MPIError: as `join`, or a member has left.
        """
        self.join(number)
        self.wait_for_all(number)
        self.join(number)

    @ccall
    def lead(self, number: U64) -> None:
        """See that nobody has shown a fragment that others wait for this member to begin.

        Raises:
            MPIError: ERR_OTHER, a member makes another call.
        """
        words = self._words
        at: int = self._head(0, number)
        rank: int
        for rank in range(self.ranks):
            if words[at + NUMBER] >= number and rank != self.rank:
                try:
                    self.join(number)
                except MPIError:
                    self.refuse(number)  # the others wait for this member alone
                    raise
            at += self._stride

    @ccall
    def total(self, number: int) -> int:
        """Bytes of the message that a result is of."""
        return self._words[(self.header(number) >> 3) + TOTAL]

    @ccall
    def fill(self, number: int, total: int) -> None:
        """Say that a result is there, of a message of so many bytes."""
        words = self._words
        at: int = self.header(number) >> 3
        words[at + TOTAL] = total
        words[at + CALL] = self._order.word
        raw.put_word(self.memory, (at + NUMBER) * 8, number)

    @ccall
    def check_result(self, number: int) -> None:
        """See that a result is of this call.

        Raises:
            MPIError: ERR_OTHER, it is another's.
        """
        call: U64 = self._words[(self.header(number) >> 3) + CALL]
        if call != self._order.word:
            raise self._other_call(-1, call)

    @ccall
    def show(self, number: int, total: int) -> None:
        """Say that this member's slot has the fragment, of a message of so many bytes."""
        words = self._words
        at: int = self._head(self.rank, number)
        words[at + TOTAL] = total
        words[at + CALL] = self._order.word
        raw.put_word(self.memory, (at + NUMBER) * 8, number)
        raw.fence()  # of two that show at a time, one at least sees both

    @ccall
    def refuse(self, number: int) -> None:
        """Show that this member takes no part in the call (`leaving.py`)."""
        raise NotImplementedError

    @ccall
    def leave(self) -> None:
        """Take part in nothing more here (`leaving.py`)."""
        raise NotImplementedError

    @ccall
    def say(self, number: int, word: int) -> None:
        """Show a fragment without data; in place of a size it has a word."""
        self.show(number, word)

    @ccall
    def show_whole(self, data: memoryview, start: int, size: int) -> int:
        """Show all of a small message as the next fragment. Returns its number."""
        number: int = self.next_fragment()
        if size:
            self.copy_in(self.slot(self.rank, number), data, start, size)
        self.show(number, size)
        return number

    @ccall
    def leave_windows(self, number: int, before: int) -> None:
        """Be done with windows, which took all slots: what comes next waits for all of these.

        Args:
            number: of the last window.
            before: of the last fragment before them.
        """
        self.last = max(number, before + self.depth)
        self.finish(self.last)

    @ccall
    def finish(self, number: int) -> None:
        """Say that this member is done with all slots of a fragment."""
        self._words[self._own + DONE] = number
        self._wake(WAITS_FOR_DONE)

    @ccall
    def has_result(self, number: U64) -> bool:
        """Whether the result of a fragment is there."""
        return self._words[(self.header(number) >> 3) + NUMBER] == number

    @ccall
    def all_shown(self, number: U64) -> bool:
        """Whether all members have shown a fragment."""
        return self.shown_by(0, self.ranks, number)

    @ccall
    def shown_by(self, first: int, end: int, number: U64) -> bool:
        """Whether the members from `first` up to `end` have shown a fragment."""
        return self._reached(SHOWN_BY, first, end, number)

    @cfunc
    def _place(self, goal: int, rank: int, number: int) -> int:
        """The word that says how far a member has come."""
        if goal == DONE_BY:
            return self._lines + rank * LINE_WORDS + DONE
        return self._head(rank, number) + NUMBER

    @cfunc
    def _reached(self, goal: int, first: int, end: int, number: U64) -> bool:
        """Whether members have come as far as a fragment."""
        words = self._words
        at: int = self._place(goal, first, number)
        step: int = LINE_WORDS if goal == DONE_BY else self._stride
        for _ in range(first, end):
            if words[at] < number:
                return False
            at += step
        return True

    @ccall
    def all_done(self, number: int) -> bool:
        """Whether all members are done with a fragment."""
        if number <= self._safe:
            return True
        words = self._words
        at: int = self._lines + DONE
        least: int = words[self._own + DONE]
        for _ in range(self.ranks):
            least = min(least, words[at])
            at += LINE_WORDS
        self._safe = max(least, self._safe)
        return number <= self._safe

    # --- waiting

    @cfunc
    def next_fragment(self) -> int:
        """The number of the next fragment, when its slots may be written."""
        self.last += 1
        self.wait_for_room(self.last)
        return self.last

    @ccall
    def wait_for_room(self, number: int) -> None:
        """Return when the slots of a fragment may be written."""
        self.wait_until_done(number - self.depth)

    @ccall
    def wait_until_done(self, number: int) -> None:
        """Return when all members are done with a fragment."""
        if not self.all_done(number):
            self._wait_for(DONE_BY, 0, self.ranks, number)

    @ccall
    def wait_until_member_done(self, rank: int, number: int) -> None:
        """Return when a member is done with a fragment."""
        self._wait_for(DONE_BY, rank, rank + 1, number)

    @ccall
    def wait_for_all(self, number: int) -> None:
        """Return when all members have shown a fragment; who sees it first wakes the others."""
        if self.all_shown(number):
            self._wake(ASLEEP)
        else:
            self._wait_for(SHOWN_BY, 0, self.ranks, number)

    @ccall
    def wait_for_members(self, first: int, end: int, number: int) -> None:
        """Return when the members from `first` up to `end` have shown a fragment.

        Raises:
            MPIError: ERR_OTHER, one of them makes another call.
        """
        if not self.shown_by(first, end, number):
            self._wait_for(SHOWN_BY, first, end, number)
        rank: int
        for rank in range(first, end):
            self.check_member(rank, number)

    @ccall
    def check_member(self, rank: int, number: int) -> None:
        """See that a member's fragment, which it has shown, is of this call.

        Raises:
            MPIError: ERR_OTHER, it is another's.
        """
        call: U64 = self._words[self._head(rank, number) + CALL]
        if call != self._order.word:
            raise self._other_call(rank, call)

    @ccall
    def total_of(self, rank: int, number: int) -> int:
        """Bytes of the message that a member has shown a fragment of."""
        return self._words[self._head(rank, number) + TOTAL]

    @ccall
    def say_lent(self, number: int, address: U64) -> None:
        """Say where the data of a broadcast are, before it is shown; 0 if they are in slots."""
        self._words[self._head(self.rank, number) + LENT] = address

    @ccall
    def lent_by(self, rank: int, number: int) -> U64:
        """Where the data of a broadcast are that a member has shown; 0 if they are in slots."""
        return self._words[self._head(rank, number) + LENT]

    @ccall
    def line(self, rank: int) -> int:
        """Where the words about lending are in a member's line, in bytes."""
        return (self._lines + rank * LINE_WORDS + 1) * 8

    @ccall
    def wait_for_result(self, number: int) -> None:
        """Return when a result is there, or all that it is made of."""
        at: int = self.header(number) + NUMBER * 8
        if not self._engine.look_for(self.memory, at, number):
            self._wait(RESULT, number)

    @cfunc
    def _wait_for(self, goal: int, first: int, end: int, number: int) -> None:
        """Look for a moment whether members have come so far, then let the engine wait."""
        rank: int
        for rank in range(first, end):
            at: int = self._place(goal, rank, number) * 8
            if rank != self.rank and not self._engine.look_for(self.memory, at, number):
                break
        if not self._reached(goal, first, end, number):
            self._first, self._end = first, end
            self._wait(goal, number)

    @cfunc
    def _wait(self, goal: int, number: int) -> None:
        """Let the engine wait.

        Raises:
            MPIError: ERR_PROC_FAILED, a member has ended that others wait for; ERR_OTHER, one makes
                another call.
        """
        self._goal, self._number, self._lost = goal, number, -1
        waits: Waitable
        waits = self._waits = Waitable()
        self._idle = False
        engine: Engine = self._engine
        with engine.lock:
            engine.add_poller(self)
        try:
            if not engine.wait(waits, PATIENCE):
                if goal != DONE_BY:  # who has shown a fragment is not behind: it is not asked
                    self.join(number)
                inquire(self._communicator, waits, self._members_behind)
        except MPIError as problem:
            if problem.code != ERR_PROC_FAILED:  # how the others count on is not known
                self.leave()
            raise
        finally:
            self._idle = True
            with engine.lock:
                engine.remove_poller(self)
                self.disarm()
        if self._lost >= 0:
            raise self._failure()

    @cfunc
    def _holds(self) -> bool:
        if self._goal == RESULT:
            return self.has_result(self._number)
        return self._reached(self._goal, self._first, self._end, self._number)

    @ccall
    def poll(self) -> int:
        """End the waiting when what is waited for has come, or never will."""
        if self._idle or self._waits.complete:
            return 0
        if self._lost < 0 and not self._holds():
            return 0
        self._waits.finish()
        return 1

    @ccall
    def arm(self) -> bool:
        """Say that this member sleeps, then look once more, also for those that have ended."""
        self._words[PARKED + self.rank] = WAITS_FOR_DONE if self._goal == DONE_BY else ASLEEP
        if self._idle or self._waits.complete:
            return True  # who waits has been told, and another thread of the rank may sleep
        if self._holds():
            return False
        if self._goal == RESULT and self.all_shown(self._number):
            # nobody saw that he was the last: each had stored his own word before the others' were
            # to be seen; who comes here makes the result
            self._waits.finish()
            return False
        self._lost = self._find_lost()
        return self._lost < 0

    @cfunc
    def _find_lost(self) -> int:
        """A member that has left before it came so far; -1 if there is none."""
        procs = self._communicator.procs
        for rank in self._behind():
            if procs[rank].left or self._words[self._lines + rank * LINE_WORDS + GONE]:
                return rank
        return -1

    def _members_behind(self) -> list[int]:
        return self._behind()

    @cfunc
    def _behind(self) -> list[int]:
        """The members that have not come as far as is waited for."""
        first: int = 0 if self._goal == RESULT else self._first
        end: int = self.ranks if self._goal == RESULT else self._end
        return [
            rank
            for rank in range(first, end)
            if not self._reached(self._goal, rank, rank + 1, self._number)
        ]

    @cfunc
    def _other_call(self, rank: int, word: U64) -> MPIError:
        """The error of members that make different calls, or of one that takes no part."""
        if word & REFUSED and not word & LEFT and number_of(word) == number_of(self._order.word):
            self.finish(self.last)  # nothing is read, and all count on alike
        else:
            self.leave()
        return differ(self._communicator, rank, word)

    @cfunc
    def _failure(self) -> MPIError:
        communicator = self._communicator
        gone: U64 = self._words[self._lines + self._lost * LINE_WORDS + GONE]
        if gone:
            self.leave()
            return differ(communicator, self._lost, gone)
        name, proc = communicator.name, communicator.procs[self._lost]
        said = f"{proc} {proc.left} without taking part in a collective of {name}"
        problem = MPIError(ERR_PROC_FAILED, said)
        return explained(communicator, communicator.order.word, problem)

    # --- waking

    @ccall
    def wake(self) -> None:
        """Wake who waits for what this member has shown or made."""
        self._wake(ASLEEP)

    @cfunc
    def _wake(self, state: U64) -> None:
        words = self._words
        rank: int
        for rank in range(self.ranks):
            if words[PARKED + rank] == state and rank != self.rank:
                words[PARKED + rank] = AWAKE
                self._ring(rank)

    @cfunc
    def _ring(self, rank: int) -> None:
        with self._engine.lock:
            bell = self._bells.get(rank)
            if bell is None:
                proc = self._communicator.procs[rank]
                bell = self._communicator.context.network.doorbell(proc.local_rank)
                self._bells[rank] = bell
            bell.ring()
