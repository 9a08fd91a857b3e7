"""A queue whose two ends cost a compiled caller next to nothing.

Source: README.md, "Failover".
"""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall, cclass, cfunc

_ROOM: Final = 64  # arbitrary: entries there is room for at first, a power of two


@cclass
class Fifo:
    """Entries, oldest first: a ring that doubles when it is full.

    A deque's methods are looked up and called anew for every message, and a list that is emptied
    gives its memory back; the places of a ring are only written to.

    Attributes:
        count: how many there are.
    """

    _first: int
    _mask: int
    _ring: list[Any]
    count: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._ring = [None] * _ROOM
        self._mask = _ROOM - 1
        self._first = 0
        self.count = 0

    def __len__(self) -> int:
        return self.count

    @ccall
    def append(self, entry: object) -> None:
        """Add the newest."""
        if self.count > self._mask:
            self._grow()
        self._ring[(self._first + self.count) & self._mask] = entry
        self.count += 1

    @cfunc
    def _grow(self) -> None:
        """Twice the places; the oldest entry lies in the first."""
        ring, first = self._ring, self._first
        self._ring = ring[first:] + ring[:first] + [None] * len(ring)
        self._mask = len(self._ring) - 1
        self._first = 0

    @ccall
    def popleft(self) -> Any:
        """Take the oldest. There is one."""
        first: int = self._first
        entry = self._ring[first]
        self._ring[first] = None
        self._first = (first + 1) & self._mask
        self.count -= 1
        return entry

    @ccall
    def take_all(self) -> list[Any]:
        """Take all there are."""
        return [self.popleft() for _ in range(self.count)]
