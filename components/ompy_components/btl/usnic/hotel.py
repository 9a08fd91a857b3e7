"""The hotel: rooms for guests who may stay for a time.

Who checks in gets a room and a deadline. Who checks out in time is never heard of; who does not is
evicted, and then has no room any more. There are as many rooms as guests can be there at a time,
so a full hotel is a mistake of whoever counts the guests. Free rooms are taken last in, first out.

It keeps no time: whoever owns it tells it what time it is, and asks when the next stay ends.

Source: seed usnic (reliability); reference usnic.md 11.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

Guest = TypeVar("Guest")


class Hotel(Generic[Guest]):
    """Some rooms.

    Attributes:
        guests: how many are here; for who asks often, else `len`.
    """

    __slots__ = ("_free", "_guests", "_stays", "_visits", "guests")

    def __init__(self, rooms: int) -> None:
        self.guests = 0
        self._guests: list[Guest | None] = [None] * rooms
        self._visits = [0] * rooms  # how often each room was taken: tells a stay from older ones
        self._free = list(range(rooms - 1, -1, -1))
        self._stays: list[tuple[int, int, int]] = []  # deadline, room, visit; some are over

    def __len__(self) -> int:
        """Guests that are here."""
        return self.guests

    def checkin(self, guest: Guest, until: int) -> int:
        """Give `guest` a room until the time `until`; returns its number."""
        assert self._free, f"all {len(self._guests)} rooms are taken"
        room = self._free.pop()
        self.guests += 1
        self._guests[room] = guest
        self._visits[room] += 1
        heappush(self._stays, (until, room, self._visits[room]))
        return room

    def checkout(self, room: int) -> Guest:
        """The guest of `room` leaves."""
        guest = self._guests[room]
        assert guest is not None, f"nobody is in room {room}"
        self._guests[room] = None
        self._visits[room] += 1  # the stay in the heap is over
        self._free.append(room)
        self.guests -= 1
        return guest

    def evict(self, now: int) -> list[Guest]:
        """The guests whose time is up at `now`, earliest deadline first. They have left."""
        evicted = []
        stays = self._stays
        while stays and stays[0][0] <= now:
            _, room, visit = heappop(stays)
            if self._visits[room] == visit:
                evicted.append(self.checkout(room))
        return evicted

    def deadline(self) -> int | None:
        """When the next stay ends; None when nobody is here."""
        stays = self._stays
        while stays and self._visits[stays[0][1]] != stays[0][2]:
            heappop(stays)
        return stays[0][0] if stays else None
