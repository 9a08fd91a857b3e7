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
from typing import Generic, TypeVar

Item = TypeVar("Item")


class InFlight(Generic[Item]):
    """Some slots.

    Attributes:
        count: how many are taken; for who asks often, else `len`.
    """

    __slots__ = ("_deadlines", "_free", "_items", "_uses", "count")

    def __init__(self, slots: int) -> None:
        self.count = 0
        self._items: list[Item | None] = [None] * slots
        self._uses = [0] * slots  # how often each slot was taken: tells a deadline from older ones
        self._free = list(range(slots - 1, -1, -1))
        self._deadlines: list[tuple[int, int, int]] = []  # when, slot, use; some are over

    def __len__(self) -> int:
        """Items in flight."""
        return self.count

    def add_segment(self, item: Item, until: int) -> int:
        """Give `item` a slot until the time `until`; returns its number."""
        assert self._free, f"all {len(self._items)} slots are taken"
        slot = self._free.pop()
        self.count += 1
        self._items[slot] = item
        self._uses[slot] += 1
        heappush(self._deadlines, (until, slot, self._uses[slot]))
        return slot

    def remove(self, slot: int) -> Item:
        """The item of `slot` is in flight no more."""
        item = self._items[slot]
        assert item is not None, f"nothing is in slot {slot}"
        self._items[slot] = None
        self._uses[slot] += 1  # the deadline in the heap is over
        self._free.append(slot)
        self.count -= 1
        return item

    def expire(self, now: int) -> list[Item]:
        """The items whose time is up at `now`, earliest deadline first. They are removed."""
        expired = []
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now:
            _, slot, use = heappop(deadlines)
            if self._uses[slot] == use:
                expired.append(self.remove(slot))
        return expired

    def deadline(self) -> int | None:
        """The next deadline; None when nothing is in flight."""
        deadlines = self._deadlines
        while deadlines and self._uses[deadlines[0][1]] != deadlines[0][2]:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None
