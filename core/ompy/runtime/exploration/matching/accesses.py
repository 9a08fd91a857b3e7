"""What ranks of an explored world share beside messages and windows, and in which order.

Files and their names are outside of the world: what is read there is not a choice of it. So
who reads and who changes the same is written down, with what the rank knew then. Two accesses have
an order if the later rank has heard of something that the other one did behind its access
(`knowledge.py`). If they have none, another order is possible, which is not tried. And a file has
what some world has written last. That is the same in each world only if it is written before there
is a choice, and not changed after it was read behind one. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from ompy.frameworks.direct import FILE, NAME, STORED

# what is not tried, for which something is proven only on a condition
ORDER_OF_FILES: Final = "order of files"
ORDER_OF_NAMES: Final = "order of names"
ALL_ORDERS: Final = {FILE: ORDER_OF_FILES, NAME: ORDER_OF_NAMES}
_EVER: Final = 1 << 62  # arbitrary: number of no operation, for what has not ended

Runs = Sequence[tuple[int, int]]  # the first byte, and the one behind the last; in order


class Access(NamedTuple):
    """What a rank does to something.

    Attributes:
        rank, number: the operation.
        runs: bytes.
        writes: it changes them.
        past: events that the rank's program depends on by then.
    """

    rank: int
    number: int
    runs: Runs
    writes: bool
    past: int


class Accesses:
    """All of a world so far."""

    def __init__(self) -> None:
        """There are none."""
        self._of: dict[tuple[str, str], list[Access]] = {}
        self._until: dict[tuple[int, int], int] = {}  # of those that end behind their beginning

    def add_access(
        self, kind: str, what: str, access: Access, knows: Mapping[int, int]
    ) -> set[str]:
        """A rank does something.

        Args:
            kind: FILE or NAME.
            what: which.
            access: what it does to it.
            knows: of others' operations.

        Returns:
            What is not tried because of it.
        """
        before = self._of.setdefault((kind, what), [])
        found = set()
        for other in before:
            if not (other.writes or access.writes) or not _overlap(other.runs, access.runs):
                continue
            if other.rank != access.rank and knows.get(other.rank, 0) <= self._end_of(other):
                found.add(ALL_ORDERS[kind])
            if kind == FILE and other.writes != access.writes and other.past:
                found.add(STORED)  # another world has written it last, or reads it once more
        before.append(access)
        return found

    def extend_access(self, rank: int, number: int, until: int = _EVER) -> None:
        """It goes on until the rank is told that it has ended: behind this operation of it."""
        self._until[rank, number] = until

    def _end_of(self, access: Access) -> int:
        return self._until.get((access.rank, access.number), access.number)


def _overlap(some: Runs, others: Runs) -> bool:
    """Whether some bytes are in both."""
    place = 0
    for low, high in some:
        while place < len(others) and others[place][1] <= low:
            place += 1
        if place < len(others) and others[place][0] < high:
            return True
    return False
