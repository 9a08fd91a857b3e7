"""The queue pairs of one device, by their numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.base import NicError

if TYPE_CHECKING:
    from ompy_components.nic.hca.queue_pair import HcaQueuePair

FIRST_NUMBER: Final = 2  # InfiniBand specification 1, 3.5.3: the first two are management's
LAST_NUMBER: Final = 0xFFFFFE  # reference openmpi.md 5: 24 bits, of which the last is multicast


class QueuePairs:
    """Those that are open."""

    __slots__ = ("_by_number", "_last", "_most", "_name")

    def __init__(self, name: str, most: int) -> None:
        """None.

        Args:
            name: of the device, for people.
            most: how many it has at most.
        """
        self._name = name
        self._most = most
        self._last = FIRST_NUMBER - 1
        self._by_number: dict[int, HcaQueuePair] = {}

    def __iter__(self) -> Iterator[HcaQueuePair]:
        """All, in the order they were made; it may be closed meanwhile what is come to."""
        return iter(list(self._by_number.values()))

    def find(self, number: int) -> HcaQueuePair | None:
        """The one that has a number; None: it is not there, or not any longer."""
        return self._by_number.get(number)

    def free_number(self) -> int:
        """A number for a new one. Raises NicError when there are too many."""
        if len(self._by_number) >= self._most:
            raise NicError(f"{self._name}: it has {self._most} queue pairs, none is left")
        self._last += 1
        while self._last in self._by_number or self._last > LAST_NUMBER:
            self._last = self._last + 1 if self._last < LAST_NUMBER else FIRST_NUMBER
        return self._last

    def add_pair(self, pair: HcaQueuePair) -> None:
        """One is made, with a number that was free."""
        assert pair.number not in self._by_number, f"number {pair.number} is another pair's"
        self._by_number[pair.number] = pair

    def forget_pair(self, pair: HcaQueuePair) -> None:
        """One is closed."""
        del self._by_number[pair.number]
