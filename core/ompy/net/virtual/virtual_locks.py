"""Locks of regions in a virtual world."""

from __future__ import annotations

from ompy.net.memory.process_copy import RegionLocks

# who has the locks, by region and number: by rank, whether for itself alone
LockTable = dict[tuple[tuple[int, int], int], dict[int, bool]]


class VirtualLocks(RegionLocks):
    """Locks of a region. A rank that ends keeps what it had: its process goes on."""

    __slots__ = ("_rank", "_region", "_table")

    def __init__(self, table: LockTable, region: tuple[int, int], rank: int) -> None:
        self._table = table
        self._region = region
        self._rank = rank

    def try_lock(self, number: int, *, exclusive: bool) -> bool:
        """Look at who else has it."""
        holders = self._table.setdefault((self._region, number), {})
        others = [held for rank, held in holders.items() if rank != self._rank]
        if any(others) or (exclusive and others):
            return False
        holders[self._rank] = exclusive
        return True

    def unlock(self, number: int) -> None:
        """Have it no longer."""
        self._table.get((self._region, number), {}).pop(self._rank, None)

    def close(self) -> None:
        """Have none any longer."""
        for (region, _), holders in self._table.items():
            if region == self._region:
                holders.pop(self._rank, None)
