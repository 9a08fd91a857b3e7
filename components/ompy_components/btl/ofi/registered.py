"""Memory registered for put, get and atomics, and the handles by which peers name it.

    key u64 | base u64 | size u64 | rank u32 | access u16 | magic u16

`base` is what the offset of an operation is added to: the virtual address of the region where the
provider has those, else 0. Size and access are there so that what cannot be is refused before it
is posted; the provider decides all the same.

A key that is ours to choose is a keyed hash of the job's key: nobody else can guess it, and who
can reach the endpoint cannot use memory without it.

Source: reference ofi.md A4; seed ofi (memory registration).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall
from ompy.frameworks.btl import LOCAL_WRITE, REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE
from ompy.frameworks.btl_base.device_memory import DeviceMemoryTable, RegisteredMemory, Remote
from ompy.frameworks.nic.fabric import Caps, FabricDomain, FabricError, MemoryRegion
from ompy.net.seals.seal import PacketSeal

_HANDLE: Final = Struct("<QQQIHH")
HANDLE_SIZE: Final = _HANDLE.size
assert HANDLE_SIZE == 32
KEY: Final = 0  # byte of a handle; arbitrary: the layout above
BASE: Final = 8  # arbitrary: see KEY
_SIZE: Final = 16  # arbitrary: see KEY
_REST: Final = 24  # arbitrary: see KEY
_RANK: Final = 0xFFFF_FFFF  # arbitrary: a u32 of the rest
_WHOLE: Final = HANDLE_SIZE
_MAGIC: Final = 0x464F  # arbitrary: "OF" in little-endian order
_KEY_SIZE: Final = 8  # bytes; libfabric: keys have 64 bits
_PROTOCOL: Final = b"btl.ofi.keys"
_KEY: Final = Struct("<IIQ")


def remote_of(handle: bytes, rank: int) -> Remote | None:
    """The memory a handle of `rank` names, or None if it is no such handle."""
    if len(handle) != HANDLE_SIZE:
        return None
    key, base, size, owner, access, magic = _HANDLE.unpack(handle)
    if magic != _MAGIC or owner != rank:
        return None
    return Remote(key, base, size, access)


@ccall
def allows(handle: bytes, rank: U64, offset: U64, size: U64, access: int) -> bool:
    """Whether a handle is one of `rank`, and its memory may be used so.

    As `remote_of` and `Remote.allows`, without an object: for every put and get.
    """
    if len(handle) != _WHOLE:
        return False
    rest: U64 = raw.word(handle, _REST)
    whole: U64 = raw.word(handle, _SIZE)
    if rest >> 48 != _MAGIC or rest & _RANK != rank or not rest >> 32 & 0xFFFF & access:
        return False
    return 0 <= offset <= whole and size <= whole - offset


class MemoryTable(DeviceMemoryTable[MemoryRegion]):
    """What one module has registered."""

    __slots__ = ("_domain", "_index", "_next", "_rank", "_seal")

    def __init__(self, domain: FabricDomain, job_key: bytes, rank: int, index: int) -> None:
        """For the `index`th module of a rank: another one's keys are others."""
        super().__init__()
        self._domain = domain
        self._rank = rank
        self._index = index
        self._seal = PacketSeal(job_key, _PROTOCOL)
        self._next = 0

    def add(self, memory: memoryview, flags: int) -> RegisteredMemory[MemoryRegion] | None:
        """Register; None when the device has no room for it."""
        memory = raw.flat(memory)
        if memory.readonly:
            flags &= ~(LOCAL_WRITE | REMOTE_WRITE | REMOTE_ATOMIC)
        region = None
        if len(memory):
            try:
                region = self._domain.register(memory, _access(flags), self._new_key())
            except FabricError:
                return None
        key, base = (region.key, region.base) if region is not None else (0, 0)
        wire = _HANDLE.pack(key, base, len(memory), self._rank, flags & 0xF, _MAGIC)
        return self.keep(region, wire)

    def _new_key(self) -> int:
        self._next += 1
        made = self._seal.mac(_KEY.pack(self._rank, self._index, self._next))
        return int.from_bytes(made[:_KEY_SIZE], "little")


def _access(flags: int) -> Caps:
    """What the device is to allow; reference ofi.md A4 has all four for everything."""
    access = Caps.WRITE | Caps.SEND
    if flags & LOCAL_WRITE:
        access |= Caps.READ | Caps.RECV
    if flags & (REMOTE_READ | REMOTE_ATOMIC):
        access |= Caps.REMOTE_READ
    if flags & (REMOTE_WRITE | REMOTE_ATOMIC):
        access |= Caps.REMOTE_WRITE
    return access
