"""Segments in flight, each in a slot, with the time until which its ACK is waited for.

Who is added gets a slot and a deadline. Who is removed in time is never heard of; who is not
expires, and then has no slot any more. There are as many slots as can be in flight at a time, so a
table without a free one is a mistake of whoever counts them. Free slots are taken last in, first
out.

It keeps no time: whoever owns it tells it what time it is, and asks for the next deadline. The
original calls it a hotel, whose guests check in, check out, and are evicted.

Source: seed usnic (reliability); reference usnic.md 11.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Any

from ompy.compiled import Shown, ccall, cclass


@cclass
class InFlight:
    """Some slots.

    Attributes:
        count: how many are taken; for who asks often, else `len`.
    """

    _deadlines: list[tuple[int, int, int]]
    _free: list[int]
    _items: Shown[list[Any]]
    _uses: list[int]
    count: int
    __slots__ = tuple(__annotations__)

    def __init__(self, slots: int) -> None:
        self.count = 0
        self._items = [None] * slots
        self._uses = [0] * slots  # how often each slot was taken: tells a deadline from older ones
        self._free = list(range(slots - 1, -1, -1))
        self._deadlines = []  # when, slot, use; some are over

    def __len__(self) -> int:
        """Items in flight."""
        return self.count

    @ccall
    def add_segment(self, item: object, until: int) -> int:
        """Give `item` a slot until the time `until`; returns its number."""
        assert self._free, f"all {len(self._items)} slots are taken"
        slot: int = self._free.pop()
        self.count += 1
        self._items[slot] = item
        use: int = self._uses[slot] + 1
        self._uses[slot] = use
        heappush(self._deadlines, (until, slot, use))
        return slot

    @ccall
    def remove(self, slot: int) -> Any:
        """The item of `slot` is in flight no more."""
        item = self._items[slot]
        assert item is not None, f"nothing is in slot {slot}"
        self._items[slot] = None
        self._uses[slot] += 1  # the deadline in the heap is over
        self._free.append(slot)
        self.count -= 1
        return item

    @ccall
    def expire(self, now: int) -> list[Any]:
        """The items whose time is up at `now`, earliest deadline first. They are removed."""
        expired = []
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            _, slot, use = heappop(deadlines)
            if self._uses[slot] == use:
                expired.append(self.remove(slot))
        return expired

    @ccall
    def deadline(self) -> int | None:
        """The next deadline; None when nothing is in flight."""
        deadlines = self._deadlines
        while deadlines and self._uses[deadlines[0][1]] != deadlines[0][2]:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None
