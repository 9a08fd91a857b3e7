"""Memory registered for put and get, and the handles by which peers name it.

    rkey u32 | rank u32 | address u64 | size u64 | access u32 | magic u32

The size and the access are there so that what cannot be is refused before it is sent: the peer's
adapter would refuse it as well, and break the queue pair. It is the adapter that decides.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy import raw
from ompy.frameworks.btl import LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE
from ompy.frameworks.btl_base.device_memory import DeviceMemoryTable, RegisteredMemory, Remote
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Access, MemoryRegion, ProtectionDomain

_HANDLE: Final = Struct("<IIQQII")
HANDLE_SIZE: Final = _HANDLE.size
_MAGIC: Final = 0x4D52424F  # arbitrary: "OBRM" in little-endian order


class MemoryTable(DeviceMemoryTable[MemoryRegion]):
    """What one module has registered."""

    __slots__ = ("_domain", "_rank")

    def __init__(self, domain: ProtectionDomain, rank: int) -> None:
        super().__init__()
        self._domain = domain
        self._rank = rank

    def register_region(
        self, memory: memoryview, flags: int
    ) -> RegisteredMemory[MemoryRegion] | None:
        """Register; None when the device has no room for it."""
        memory = raw.flat(memory)
        access = Access(0)
        if flags & LOCAL_WRITE and not memory.readonly:
            access |= Access.LOCAL_WRITE
        if flags & REMOTE_READ:
            access |= Access.REMOTE_READ
        if flags & REMOTE_WRITE and not memory.readonly:
            access |= Access.LOCAL_WRITE | Access.REMOTE_WRITE
        try:
            region = self._domain.register(memory, access)
        except NicError:
            return None
        allowed = flags if not memory.readonly else flags & ~REMOTE_WRITE
        wire = _HANDLE.pack(
            region.rkey, self._rank, region.address, len(memory), allowed & 0xF, _MAGIC
        )
        return self.keep(region, wire)


def remote_of(handle: bytes, rank: int) -> Remote | None:
    """The memory a handle of `rank` names, or None if it is no such handle."""
    if len(handle) != HANDLE_SIZE:
        return None
    rkey, owner, address, size, access, magic = _HANDLE.unpack(handle)
    if magic != _MAGIC or owner != rank:
        return None
    return Remote(rkey, address, size, access)
