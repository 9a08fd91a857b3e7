"""Copies between the ranks of one virtual host, and the regions they map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.net import vm
from ompy.net.base import LinkError, ProcessCopy
from ompy.net.virtual_locks import VirtualLocks

if TYPE_CHECKING:
    from ompy.net.virtual import Fabric


class VirtualCopy(ProcessCopy):
    """Copies between ranks of one virtual host, by exposed addresses."""

    __slots__ = ("_fabric", "_host")

    def __init__(self, fabric: Fabric, rank: int) -> None:
        self.identity = rank
        self._fabric = fabric
        self._host = fabric.hosts[rank]

    def address_of(self, view: memoryview) -> int:
        """Expose `view`; addresses never overlap, and carry the rank in their high bits."""
        start = (self.identity << 40) + self._fabric.next_address(len(view))
        self._fabric.memory[start] = view
        return start

    def region_of(self, view: memoryview) -> tuple[int, int, int] | None:
        """Where `view` lies in memory from `VirtualNetwork.region`."""
        address = vm.address_of(view)
        for (rank, number), memory in self._fabric.regions.items():
            offset = address - vm.address_of(memoryview(memory))
            if rank == self.identity and offset >= 0 and offset + len(view) <= len(memory):
                return 0, number, offset
        return None

    def map(self, process: int, descriptor: int, number: int) -> memoryview:
        """The region itself."""
        if (process, number) not in self._fabric.regions:
            raise LinkError(f"rank {process} has no region {number}")
        return memoryview(self._fabric.regions[process, number])

    def locks(self, process: int, descriptor: int, number: int) -> VirtualLocks:
        """Locks that the fabric keeps."""
        if (process, number) not in self._fabric.regions:
            raise LinkError(f"rank {process} has no region {number}")
        return VirtualLocks(self._fabric.locks, (process, number), self.identity)

    def forget(self, address: int) -> None:
        """Copies with `address` fail from now on."""
        self._fabric.memory.pop(address, None)

    def read(self, process: int, address: int, view: memoryview) -> None:
        """Copy from a rank of this host."""
        view[:] = self._find(process, address, len(view))

    def write(self, process: int, address: int, view: memoryview) -> None:
        """Copy to a rank of this host."""
        self._find(process, address, len(view))[:] = view

    def _find(self, process: int, address: int, size: int) -> memoryview:
        if address >> 40 == process and self._fabric.hosts[process] == self._host:
            for start, memory in self._fabric.memory.items():
                if start <= address and address + size <= start + len(memory):
                    return memory[address - start : address - start + size]
        raise LinkError(f"copy of {size} bytes with process {process}: bad address")
