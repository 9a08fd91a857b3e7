"""Copies between the ranks of one virtual host, and the regions they map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.net.base import LinkError
from ompy.net.memory import vm
from ompy.net.memory.process_copy import ProcessCopy
from ompy.net.virtual.virtual_locks import VirtualLocks

if TYPE_CHECKING:
    from ompy.net.virtual.virtual_memory import Memory, VirtualMemory

RANK_AT: Final = 40  # bits of an address below its rank; arbitrary: more than any host's memory


class VirtualCopy(ProcessCopy):
    """Copies between ranks of one virtual host, by exposed addresses, and the regions they map."""

    __slots__ = ("_host", "_memory")

    def __init__(self, memory: VirtualMemory, rank: int) -> None:
        self.forgets = True
        self.identity = rank
        self._memory = memory
        self._host = memory.hosts[rank]

    def address_of(self, view: memoryview) -> int:
        """Expose `view`; addresses never overlap, and carry the rank in their high bits."""
        start = (self.identity << RANK_AT) + self._memory.next_address(len(view))
        self._memory.exposed[start] = view
        return start

    def region_of(self, view: memoryview) -> tuple[int, int, int] | None:
        """Where `view` lies in memory from `Network.region`."""
        address = vm.address_of(view)
        for (rank, number), memory in self._memory.regions.items():
            offset = address - vm.address_of(memoryview(memory))
            if rank == self.identity and offset >= 0 and offset + len(view) <= len(memory):
                return 0, number, offset
        return None

    def map(self, process: int, descriptor: int, number: int) -> memoryview:
        """The region itself."""
        return memoryview(self._region(process, number))

    def locks(self, process: int, descriptor: int, number: int) -> VirtualLocks:
        """Locks that all ranks of the host have in common."""
        self._region(process, number)
        return VirtualLocks(self._memory.locks, (process, number), self.identity)

    def forget(self, address: int) -> None:
        """Copies with `address` fail from now on."""
        self._memory.exposed.pop(address, None)

    def read(self, process: int, address: int, view: memoryview) -> None:
        """Copy from a rank of this host."""
        view[:] = self._find(process, address, len(view))

    def write(self, process: int, address: int, view: memoryview) -> None:
        """Copy to a rank of this host."""
        self._find(process, address, len(view))[:] = view

    def _region(self, process: int, number: int) -> Memory:
        if (process, number) not in self._memory.regions:
            raise LinkError(f"rank {process} has no region {number}")
        return self._memory.regions[process, number]

    def _find(self, process: int, address: int, size: int) -> memoryview:
        if address >> RANK_AT == process and self._memory.hosts[process] == self._host:
            for start, memory in self._memory.exposed.items():
                if start <= address and address + size <= start + len(memory):
                    return memory[address - start : address - start + size]
        raise LinkError(f"copy of {size} bytes with process {process}: bad address")
