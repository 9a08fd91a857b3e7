"""What the ranks of virtual hosts share: segments, regions that they map, and locks of these.

A whole virtual world has one. A simulated rank that is a process of its own has one too, for the
host it is alone on.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ompy.net.base import LinkError
from ompy.net.memory import vm
from ompy.net.virtual.virtual_locks import LockTable

MEMORY_SIZE: Final = 1 << 26  # bytes; arbitrary: of a host; enough for tests, little to try
GAP: Final = 4096  # between what has addresses; arbitrary

Memory = mmap.mmap | bytearray


def zeroed(size: int) -> Memory:
    """Memory whose pages are there when they are touched: most of it never is."""
    return mmap.mmap(-1, size) if size >= mmap.PAGESIZE else bytearray(size)


@dataclass(slots=True)
class VirtualMemory:
    """Memory of virtual hosts.

    Attributes:
        hosts: host number of each rank.
        segments: by host and name.
        regions: by rank and number.
        exposed: what can be copied, by address.
        locks: of regions.
        addresses: where the next one begins.
    """

    hosts: Sequence[int] | Mapping[int, int]
    segments: dict[tuple[int, str], Memory] = field(default_factory=dict)
    regions: dict[tuple[int, int], Memory] = field(default_factory=dict)
    exposed: dict[int, memoryview] = field(default_factory=dict)
    locks: LockTable = field(default_factory=dict)
    addresses: int = GAP

    def segment(self, rank: int, name: str, size: int) -> memoryview:
        """Memory that the ranks of a rank's host share.

        Raises:
            LinkError: it has another size.
        """
        key = self.hosts[rank], name
        if key not in self.segments:
            self.segments[key] = zeroed(size)
        memory = self.segments[key]
        if len(memory) != size:
            raise LinkError(f"segment {name} has {len(memory)} bytes, not {size}")
        return memoryview(memory)

    def region(self, rank: int, size: int) -> memoryview:
        """Memory of a rank that the others of its host may have."""
        memory = zeroed(size)
        self.regions[rank, self.next_address(1)] = memory
        return memoryview(memory)

    def release_region(self, rank: int, address: int) -> None:
        """Nobody may have it any more."""
        for key, memory in list(self.regions.items()):
            if key[0] == rank and vm.address_of(memoryview(memory)) == address:
                del self.regions[key]

    def next_address(self, size: int) -> int:
        """The address of `size` bytes that nothing else has, with a gap behind them."""
        start = self.addresses
        self.addresses += size + GAP
        return start
