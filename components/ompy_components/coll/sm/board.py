"""What the members of a communicator share: counters, and room for fragments.

    0         the value that proves the memory to be the right one, then words for others
    parked    a word per member: whether it sleeps, and what for
    lines     whole cache lines per member: last fragment shown, last fragment done with, its
              process, where that has this memory, whether it may read all others' (`lending.py`),
              and for each slot the bytes of the whole message and the call (`call_order.py`)
    headers   one cache line for each of the last `depth` results: its number, bytes of the
              message, the call
    results   one slot for each of the last `depth` fragments
    slots     as many for each member, side by side

Every fragment of every operation has the next number, which all members count alike. Fragment k
uses the slots k modulo depth. A member may write a slot again when all others are done with what
was in it. Words are stored after what they speak of, and each has one writer, but the header of a
result: two members may make the same result, of the same bytes.

A member compares the call with its own wherever it looks at a fragment of others: when it shows its
own, all that were shown before; in the header, before it takes a result. So of two members that
make different calls the later one sees it.

All zero is the valid initial state.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.request import Waitable
from ompy.frameworks.collectives.patience import PATIENCE, differ, explained, inquire
from ompy.frameworks.communicator import Communicator
from ompy.net.base import Doorbell

from ompy_components.coll.sm.slots import SlotMemory

if DECLARING:
    from ompy.engine.base import Engine
    from ompy.frameworks.collectives.call_order import CallOrder

LINE: Final = 64  # bytes; the cache line of x86 and most aarch64
LINE_WORDS: Final = LINE // 8
# words of a member's lines, by place
SHOWN: Final = 0
DONE: Final = 1
PROCESS: Final = 2  # for the kernel's copy, and one more, as 0 is none
ADDRESS: Final = 3  # of this memory in that process
READS: Final = 4  # 1: this member may read the memory of all others
TOTALS: Final = 5  # two for each slot: bytes of the message, and the call behind them
PER_SLOT: Final = 2
PARKED: Final = LINE_WORDS  # the word of member 0 among all words
# values of a parked word
AWAKE: Final = 0
ASLEEP: Final = 1  # wake me when something was shown, or a result is there
WAITS_FOR_DONE: Final = 2  # wake me when somebody is done
# words of a result's header
NUMBER: Final = 0
TOTAL: Final = 1
CALL: Final = 2
# what a member waits for
RESULT: Final = 0  # the result of a fragment; or that it can make it
SHOWN_BY: Final = 1  # that some members have shown it
DONE_BY: Final = 2  # that some members are done with it


@ccall
def lines_of(words: int) -> int:
    """Bytes of the cache lines that so many words take."""
    return -(-words // LINE_WORDS) * LINE


def board_size(ranks: int, depth: int, fragment: int) -> int:
    """Bytes of the memory of a communicator."""
    words = LINE + lines_of(ranks) + ranks * lines_of(TOTALS + PER_SLOT * depth) + depth * LINE
    return words + (ranks + 1) * depth * slot_size(fragment)


@ccall
def slot_size(fragment: int) -> int:
    """Bytes of a slot."""
    return -(-fragment // LINE) * LINE


@cclass
class Board(SlotMemory):
    """A member's view of the memory; it waits in the engine until the others have come so far.

    Attributes:
        memory: all of it.
        rank, ranks: of the member, and how many there are.
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
    _headers: int
    _idle: bool
    _line: int
    _lines: int
    _lost: int
    _number: U64
    _order: CallOrder
    _own: int
    _results: int
    _safe: int
    _slot: int
    _waits: Waitable
    area: int
    depth: int
    last: int
    rank: int
    ranks: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, memory: memoryview, depth: int, fragment: int
    ) -> None:
        self.memory = memory
        self.rank = communicator.rank
        self.ranks = communicator.size
        self.depth = depth
        self.area = depth * slot_size(fragment)
        self.last = 0
        self._communicator = communicator
        self._engine = communicator.context.engine
        self._order = communicator.order
        self._words = memory.cast("Q")
        self._slot = slot_size(fragment)
        first = LINE + lines_of(self.ranks)
        self._lines = first // 8
        self._line = lines_of(TOTALS + PER_SLOT * depth) // 8
        self._own = self._lines + self.rank * self._line
        self._headers = first + self.ranks * self._line * 8
        self._results = self._headers + depth * LINE
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
        """Where the header of a fragment's result begins."""
        return self._headers + number % self.depth * LINE

    @ccall
    def result(self, number: int) -> int:
        """Where the slot of a fragment's result begins."""
        return self._results + number % self.depth * self._slot

    @ccall
    def slot(self, rank: int, number: int) -> int:
        """Where a member's slot of a fragment begins."""
        return self._results + (1 + rank) * self.area + number % self.depth * self._slot

    @ccall
    def all_results(self) -> int:
        """Where the slots of results begin: `area` bytes."""
        return self._results

    @ccall
    def all_slots(self, rank: int) -> int:
        """Where a member's slots begin: `area` bytes."""
        return self._results + (1 + rank) * self.area

    # --- what members say

    @ccall
    def agree(self, number: int, total: U64) -> bool:
        """Whether all members have shown a fragment of a message of so many bytes."""
        words = self._words
        at: int = self._lines + TOTALS + number % self.depth * PER_SLOT
        call: U64 = self._order.word
        rank: int
        for rank in range(self.ranks):
            if words[at + 1] != call:
                raise self._other_call(rank, words[at + 1])
            if words[at] != total:
                return False
            at += self._line
        return True

    @ccall
    def join(self, number: U64) -> bool:
        """See that those who have shown a fragment are in this call. Whether that is everybody.

        Raises:
            MPIError: ERR_OTHER, a member makes another call.
        """
        words = self._words
        at: int = self._lines
        slot: int = TOTALS + number % self.depth * PER_SLOT + 1
        call: U64 = self._order.word
        shown: bool = True
        rank: int
        for rank in range(self.ranks):
            if words[at + SHOWN] < number:
                shown = False
            elif words[at + slot] != call:
                raise self._other_call(rank, words[at + slot])
            at += self._line
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
        at: int = self._lines
        rank: int
        for rank in range(self.ranks):
            if words[at + SHOWN] >= number and rank != self.rank:
                self.join(number)
            at += self._line

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
        words[at + NUMBER] = number

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
        at: int = self._own
        slot: int = at + TOTALS + number % self.depth * PER_SLOT
        words[slot] = total
        words[slot + 1] = self._order.word
        words[at + SHOWN] = number
        raw.fence()  # of two that show at a time, one at least sees both

    @ccall
    def say(self, number: int, word: int) -> None:
        """Show a fragment without data; in place of a size it has a word."""
        self.show(number, word)

    @ccall
    def show_whole(self, data: memoryview, start: int, size: int) -> int:
        """Show all of a small message as the next fragment. Returns its number."""
        self.last += 1
        number: int = self.last
        self.wait_for_room(number)
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
        return self._reached(SHOWN, first, end, number)

    @cfunc
    def _reached(self, which: int, first: int, end: int, number: U64) -> bool:
        """Whether members have come as far as a fragment."""
        words = self._words
        at: int = self._lines + first * self._line + which
        for _ in range(first, end):
            if words[at] < number:
                return False
            at += self._line
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
            at += self._line
        self._safe = max(least, self._safe)
        return number <= self._safe

    # --- waiting

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
        at: int = self._lines + rank * self._line + TOTALS + number % self.depth * PER_SLOT
        call: U64 = self._words[at + 1]
        if call != self._order.word:
            raise self._other_call(rank, call)

    @ccall
    def total_of(self, rank: int, number: int) -> int:
        """Bytes of the message that a member has shown a fragment of."""
        at: int = self._lines + rank * self._line + TOTALS + number % self.depth * PER_SLOT
        return self._words[at]

    @ccall
    def line(self, rank: int) -> int:
        """Where the lines of a member begin, in bytes."""
        return (self._lines + rank * self._line) * 8

    @ccall
    def wait_for_result(self, number: int) -> None:
        """Return when a result is there, or all that it is made of."""
        at: int = self.header(number) + NUMBER * 8
        if not self._engine.look_for(self.memory, at, number):
            self._wait(RESULT, number)

    @cfunc
    def _wait_for(self, goal: int, first: int, end: int, number: int) -> None:
        """Look for a moment whether members have come so far, then let the engine wait."""
        which: int = SHOWN if goal == SHOWN_BY else DONE
        rank: int
        for rank in range(first, end):
            at: int = (self._lines + rank * self._line + which) * 8
            if rank != self.rank and not self._engine.look_for(self.memory, at, number):
                break
        if not self._reached(which, first, end, number):
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
        which: int = SHOWN if self._goal == SHOWN_BY else DONE
        return self._reached(which, self._first, self._end, self._number)

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

    @ccall
    def disarm(self) -> None:
        """Say that this member is awake."""
        self._words[PARKED + self.rank] = AWAKE

    @cfunc
    def _find_lost(self) -> int:
        """A member that has left before it came so far; -1 if there is none."""
        procs = self._communicator.procs
        for rank in self._behind():
            if procs[rank].left:
                return rank
        return -1

    def _members_behind(self) -> list[int]:
        return self._behind()

    @cfunc
    def _behind(self) -> list[int]:
        """The members that have not come as far as is waited for."""
        which: int = DONE if self._goal == DONE_BY else SHOWN
        first: int = 0 if self._goal == RESULT else self._first
        end: int = self.ranks if self._goal == RESULT else self._end
        places = {rank: self._lines + rank * self._line + which for rank in range(first, end)}
        return [rank for rank, at in places.items() if self._words[at] < self._number]

    @cfunc
    def _other_call(self, rank: int, word: U64) -> MPIError:
        """The error of members that make different calls."""
        return differ(self._communicator, rank, word)

    @cfunc
    def _failure(self) -> MPIError:
        communicator = self._communicator
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

    @ccall
    def move(self, at: int, start: int, size: int) -> None:
        """Bytes of the memory from `start` on to byte `at` of it."""
        raw.copy(self.memory, at, self.memory, start, size)
