"""A queue whose two ends cost a compiled caller next to nothing.

Source: README.md, "Failover".
"""

from __future__ import annotations

from typing import Any, Final

_ROOM: Final = 64  # arbitrary: entries there is room for at first, a power of two


class Fifo:
    """Entries, oldest first: a ring that doubles when it is full.

    A deque's methods are looked up and called anew for every message, and a list that is emptied
    gives its memory back; the places of a ring are only written to.

    Attributes:
        count: how many there are.
    """

    __slots__ = ("_first", "_mask", "_ring", "count")

    def __init__(self) -> None:
        self._ring: list[Any] = [None] * _ROOM
        self._mask = _ROOM - 1
        self._first = 0
        self.count = 0

    def __len__(self) -> int:
        return self.count

    def append(self, entry: object) -> None:
        """Add the newest."""
        if self.count > self._mask:
            self._grow()
        self._ring[(self._first + self.count) & self._mask] = entry
        self.count += 1

    def _grow(self) -> None:
        """Twice the places; the oldest entry lies in the first."""
        ring, first = self._ring, self._first
        self._ring = ring[first:] + ring[:first] + [None] * len(ring)
        self._mask = len(self._ring) - 1
        self._first = 0

    def popleft(self) -> Any:
        """Take the oldest. There is one."""
        first = self._first
        entry = self._ring[first]
        self._ring[first] = None
        self._first = (first + 1) & self._mask
        self.count -= 1
        return entry

    def take_all(self) -> list[Any]:
        """Take all there are."""
        return [self.popleft() for _ in range(self.count)]
