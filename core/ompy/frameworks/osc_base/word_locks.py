"""Locks of a window's members as words of memory that all of them have mapped.

Of each member there are two locks: number `rank` is that of epochs, shared or exclusive, number
`members + rank` is held for as long as an accumulate takes and always exclusive.

    waiting   a word per member: 1 and the number of the lock that it waits for, or 0; half a word,
              as the upper half is its window's
    writer    a word per lock: 0, or 1 and the rank that holds it alone
    readers   a word per lock of epochs and member: 1 while that member holds it shared

Who wants a lock alone puts its rank where a 0 is and then looks at the readers; who wants it
shared says so and then looks at the writer. Each stores before it looks, so of two at the same time
at most one gets it (Dekker); perhaps neither, and then one that had to give way for the other's
attempt hears of it (`disturbed`). Words tell who holds a lock.
Nobody queues, as with locks of the kernel (`net/memory/region_locks.py`). Unlike these, words need
atomic steps, so compiled code in all members (`raw.has_atomics`).
"""

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc

WORD: Final = 8  # bytes; 64 bits, which x86 and aarch64 load and store at once
_WORD: Final = 8
_HALF: Final = 0xFFFFFFFF


def room(members: int) -> int:
    """Bytes of all these words for so many members."""
    return WORD * members * (3 + members)


def can_lock(*, one_at_a_time: bool) -> bool:
    """Whether this process may use such locks: all members have to.

    Args:
        one_at_a_time: no two ranks ever run at once, as in a virtual world.
    """
    return one_at_a_time or raw.has_atomics()


@cclass
class WordLocks:
    """What one member does with them.

    Attributes:
        disturbed: an attempt that failed may have made another one's fail.
    """

    _first: int
    _members: int
    _rank: int
    _sites: dict[int, Any]
    _view: memoryview[int]
    _waiting: int
    disturbed: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, view: memoryview, first: int, members: int, rank: int) -> None:
        """The words in a byte view that begin at byte `first`, a multiple of 8; all 0 at first."""
        self._view = view
        self._waiting = first
        self._first = first + WORD * members
        self._members = members
        self._rank = rank
        self._sites = {}
        self.disturbed = False

    @cfunc
    def _reader(self, number: int, rank: int) -> int:
        """The byte of a reader's word."""
        return self._first + _WORD * (2 * self._members + number * self._members + rank)

    @ccall
    def try_lock(self, number: int, exclusive: bool) -> bool:
        """Have a lock if it is free now. This member does not hold it."""
        writer: int = self._first + _WORD * number
        if raw.word(self._view, writer):
            return False
        if exclusive:
            return self._try_alone(number, writer)
        reader: int = self._reader(number, self._rank)
        raw.put_word(self._view, reader, 1)
        raw.fence()
        if raw.word(self._view, writer):
            raw.put_word(self._view, reader, 0)
            self.disturbed = True
            return False
        return True

    @cfunc
    def _try_alone(self, number: int, writer: int) -> bool:
        if number < self._members and self._is_read(number):
            return False
        if not raw.swap_if(self._view, writer, 0, self._rank + 1):
            return False
        if number < self._members and self._is_read(number):
            raw.put_word(self._view, writer, 0)
            self.disturbed = True
            return False
        return True

    @cfunc
    def _is_read(self, number: int) -> bool:
        """Whether somebody holds a lock of epochs shared."""
        rank: int = 0
        while rank < self._members:
            if raw.word(self._view, self._reader(number, rank)):
                return True
            rank += 1
        return False

    @ccall
    def unlock(self, number: int) -> None:
        """Give a lock back that this member holds."""
        writer: int = self._first + _WORD * number
        if raw.word(self._view, writer) == self._rank + 1:
            raw.put_word(self._view, writer, 0)
        else:
            raw.put_word(self._view, self._reader(number, self._rank), 0)
        raw.fence()
        if self._sites:
            self._sites.pop(number, None)

    @ccall
    def is_wanted(self, number: int) -> bool:
        """Whether a member waits for a lock."""
        wanted: U64 = number + 1
        rank: int = 0
        while rank < self._members:
            word: U64 = raw.word(self._view, self._waiting + _WORD * rank)
            if word & _HALF == wanted:
                return True
            rank += 1
        return False

    @ccall
    def anyone_waits(self) -> bool:
        """Whether a member waits for any lock."""
        rank: int = 0
        while rank < self._members:
            if raw.word(self._view, self._waiting + _WORD * rank):
                return True
            rank += 1
        return False

    @ccall
    def try_all(self) -> bool:
        """Share the locks of epochs of all members if they are free now, or have none of them."""
        number: int = 0
        while number < self._members:
            if not self.try_lock(number, False):
                while number > 0:
                    number -= 1
                    self.unlock(number)
                return False
            number += 1
        return True

    @ccall
    def unlock_all(self) -> None:
        """Give back what `try_all` got."""
        number: int = 0
        while number < self._members:
            self.unlock(number)
            number += 1

    @ccall
    def holds(self, number: int) -> bool:
        """Whether this member holds a lock of epochs."""
        if raw.word(self._view, self._first + _WORD * number) == self._rank + 1:
            return True
        return raw.word(self._view, self._reader(number, self._rank)) != 0

    def holds_alone(self, number: int) -> bool:
        """Whether this member holds a lock, and nobody else may."""
        return bool(raw.word(self._view, self._first + _WORD * number) == self._rank + 1)

    def note_site(self, number: int, site: Any) -> None:
        """Keep where the program has called for a lock, until it gives that back."""
        self._sites[number] = site

    def site(self, number: int) -> Any:
        """What was kept; None for a lock that was had by the short way, which keeps nothing."""
        return self._sites.get(number)

    def take_from(self, number: int, rank: int) -> None:
        """Give back what a member has of a lock that cannot do so any more."""
        raw.swap_if(self._view, self._first + _WORD * number, rank + 1, 0)
        if number < self._members:
            raw.put_word(self._view, self._reader(number, rank), 0)

    def close(self) -> None:
        """Look at the memory no more."""
        self._view = memoryview(bytearray(room(self._members)))
        self._waiting = 0
        self._first = WORD * self._members
