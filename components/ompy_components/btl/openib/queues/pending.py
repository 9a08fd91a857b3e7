"""What waits for a work entry, a credit or a token: lists of one endpoint, by queue and priority.

Source: reference openmpi.md 5.3: per-queue pending lists with two priorities. A list belongs to one
endpoint also where tokens are the module's, so that a path that breaks fails its own fragments and
nobody else's (5.7 has the defect).
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Pending(Generic[Item]):
    """The lists of one endpoint."""

    __slots__ = ("_lists",)

    def __init__(self, queues: int) -> None:
        self._lists: list[tuple[deque[Item], deque[Item]]] = [
            (deque(), deque()) for _ in range(queues)
        ]

    def __len__(self) -> int:
        return sum(len(high) + len(low) for high, low in self._lists)

    @property
    def queues(self) -> int:
        """How many queues there are lists for."""
        return len(self._lists)

    def append_item(self, queue: int, item: Item, *, high: bool) -> None:
        """Append to the list of that priority."""
        self._lists[queue][0 if high else 1].append(item)

    def put_back(self, queue: int, item: Item, *, high: bool) -> None:
        """It could not be sent after all: it is the first again."""
        self._lists[queue][0 if high else 1].appendleft(item)

    def first(self, queue: int) -> Item | None:
        """What is to be sent next through a queue: of high priority before low."""
        high, low = self._lists[queue]
        if high:
            return high[0]
        return low[0] if low else None

    def last(self, queue: int, *, high: bool) -> Item | None:
        """What was appended last, to which more may be added."""
        items = self._lists[queue][0 if high else 1]
        return items[-1] if items else None

    def replace_last(self, queue: int, item: Item, *, high: bool) -> None:
        """Have `item` instead of what was appended last."""
        self._lists[queue][0 if high else 1][-1] = item

    def pop(self, queue: int) -> Item:
        """Take what `first` says."""
        high, low = self._lists[queue]
        return high.popleft() if high else low.popleft()

    def waits(self, queue: int, *, high: bool) -> bool:
        """Whether a fragment of that priority would have to wait for its turn."""
        before, after = self._lists[queue]
        return bool(before) or (bool(after) and not high)

    def clear(self) -> list[Item]:
        """Take everything, by queue and priority."""
        found: list[Item] = []
        for pair in self._lists:
            for items in pair:
                found.extend(items)
                items.clear()
        return found
