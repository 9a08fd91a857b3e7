"""Memory registered for put and get, and the handles by which peers name it.

    rkey u32 | rank u32 | address u64 | size u64 | access u32 | magic u32

The size and the access are there so that what cannot be is refused before it is sent: the peer's
adapter would refuse it as well, and break the queue pair. It is the adapter that decides.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy import raw
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.btl import LOCAL_WRITE, REMOTE_READ, REMOTE_WRITE
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Access, MemoryRegion, ProtectionDomain

_HANDLE: Final = Struct("<IIQQII")
HANDLE_SIZE: Final = _HANDLE.size
_MAGIC: Final = 0x4D52424F  # arbitrary: "OBRM" in little-endian order


class RegisteredMemory:
    """One registration; `bytes()` of it is the handle for peers.

    Attributes:
        region: the device's.
        wire: the handle.
    """

    __slots__ = ("region", "wire")

    def __init__(self, region: MemoryRegion, wire: bytes) -> None:
        self.region = region
        self.wire = wire

    def __bytes__(self) -> bytes:
        return self.wire


class Remote:
    """Memory of a peer, as its handle says.

    Attributes:
        rkey, address: for the device.
    """

    __slots__ = ("_access", "_size", "address", "rkey")

    def __init__(self, rkey: int, address: int, size: int, access: int) -> None:
        self.rkey = rkey
        self.address = address
        self._size = size
        self._access = access

    def allows(self, offset: int, size: int, access: int) -> bool:
        """Whether these bytes are in it and may be used so."""
        return bool(self._access & access) and offset >= 0 and offset + size <= self._size


class MemoryTable:
    """What one module has registered."""

    __slots__ = ("_domain", "_entries", "_rank")

    def __init__(self, domain: ProtectionDomain, rank: int) -> None:
        self._domain = domain
        self._rank = rank
        self._entries: dict[int, RegisteredMemory] = {}  # by id()

    def add(self, memory: memoryview, flags: int) -> RegisteredMemory | None:
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
        made = RegisteredMemory(region, wire)
        self._entries[id(made)] = made
        return made

    def remove(self, handle: object) -> None:
        """Deregister.

        Raises:
            MPIError: ERR_INTERN, it is none of this table, or was given back already.
        """
        if self._entries.pop(id(handle), None) is not handle or handle is None:
            raise MPIError(ERR_INTERN, f"deregister_mem: {handle!r} is not registered here (now)")
        assert isinstance(handle, RegisteredMemory)
        handle.region.close()

    def close(self) -> None:
        """Take everything back from the device."""
        for entry in self._entries.values():
            entry.region.close()
        self._entries.clear()


def remote_of(handle: bytes, rank: int) -> Remote | None:
    """The memory a handle of `rank` names, or None if it is no such handle."""
    if len(handle) != HANDLE_SIZE:
        return None
    rkey, owner, address, size, access, magic = _HANDLE.unpack(handle)
    if magic != _MAGIC or owner != rank:
        return None
    return Remote(rkey, address, size, access)
