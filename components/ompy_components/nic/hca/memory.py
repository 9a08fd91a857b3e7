"""Memory regions: which bytes a key stands for, and who may do what with them.

Addresses are the device's own, not the process's: they begin at 2^32 and leave a page between two
regions that nobody has. So what a peer asks for beside a region is in none, and the same program
sends the same bytes each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Access, MemoryRegion, ProtectionDomain, Span
from ompy.net.memory import vm

PAGE: Final = 4096  # bytes; x86: regions begin at pages
FIRST_ADDRESS: Final = 1 << 32  # arbitrary: no small number is an address
DEVICES_MAX: Final = 16  # arbitrary: devices of one process; four bits of each key
_KEYS: Final = (1 << 32) // DEVICES_MAX
_SCATTER: Final = 0x9E3779B  # arbitrary: odd, so that keys differ, and a neighbour of one is none
WRITES: Final = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_ATOMIC
assert _SCATTER % 2


class HcaRegion(MemoryRegion):
    """Memory the device may use.

    Attributes:
        domain: whose it is.
        allowed: `access` as a plain number, which is quicker to ask.
        start: where it begins in this process.
        size: bytes.
    """

    __slots__ = (
        "_regions",
        "access",
        "address",
        "allowed",
        "domain",
        "lkey",
        "memory",
        "rkey",
        "size",
        "start",
    )

    def __init__(
        self,
        regions: Regions,
        domain: ProtectionDomain,
        memory: memoryview,
        access: Access,
        place: tuple[int, int, int],
    ) -> None:
        self._regions: Regions | None = regions
        self.domain = domain
        self.memory = memory
        self.access = access
        self.allowed = int(access)
        self.address, self.lkey, self.rkey = place
        self.start = vm.address_of(memory) if len(memory) else 0
        self.size = len(memory)

    def close(self) -> None:
        """Take the memory back; harmless the second time."""
        if self._regions is not None:
            self._regions.forget(self)
            self._regions = None


class Regions:
    """The regions of one device."""

    def __init__(self, index: int, given_back: Callable[[], None]) -> None:
        """For the process's device of this index; `given_back` hears of each that is closed."""
        self._index = index
        self._given_back = given_back
        self._made = 0
        self._next = FIRST_ADDRESS
        self._local: dict[int, HcaRegion] = {}
        self._remote: dict[int, HcaRegion] = {}

    def register(self, domain: ProtectionDomain, memory: memoryview, access: Access) -> HcaRegion:
        """A new region.

        Raises:
            NicError: the access makes no sense for it, or no key is left.
        """
        if access & WRITES and memory.readonly:
            raise NicError("the memory is read-only")
        if access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC) and not access & 1:
            raise NicError("what peers may write the device has to write: LOCAL_WRITE is missing")
        if not memory.c_contiguous:
            raise NicError("the memory is not contiguous")
        if self._made + 2 > _KEYS:
            raise NicError("no key is left for it")
        place = (self._next, self._key(), self._key())
        self._next += -(-max(1, memory.nbytes) // PAGE) * PAGE + PAGE
        region = HcaRegion(self, domain, memory.cast("B"), access, place)
        self._local[region.lkey] = region
        self._remote[region.rkey] = region
        return region

    def _key(self) -> int:
        self._made += 1
        return self._made * _SCATTER % _KEYS * DEVICES_MAX + self._index

    def forget(self, region: HcaRegion) -> None:
        """It is closed."""
        self._local.pop(region.lkey, None)
        self._remote.pop(region.rkey, None)
        self._given_back()

    def clear(self) -> None:
        """The device is closed."""
        for region in list(self._local.values()):
            region.close()

    def unsuitable(self, domain: ProtectionDomain, spans: Sequence[Span], access: int) -> str:
        """Why local memory may not be used in this way; empty when it may."""
        for span in spans:
            size = span.memory.nbytes
            if not size:
                continue
            region = self._local.get(span.lkey)
            if region is None or region.domain is not domain:
                return f"no region of the domain has lkey {span.lkey:#x}"
            begin = vm.address_of(span.memory) - region.start
            if begin < 0 or begin + size > region.size:
                return f"{size} bytes at {begin} of a region of {region.size}"
            if access & ~region.allowed:
                return f"the region allows {region.access!r}"
        return ""

    def reach(
        self, domain: ProtectionDomain, rkey: int, address: int, size: int, access: int
    ) -> memoryview | None:
        """What a peer has named, or None if it may not be used in this way."""
        region = self._remote.get(rkey)
        if region is None or region.domain is not domain or access & ~region.allowed:
            return None
        begin = address - region.address
        if begin < 0 or begin + size > region.size:
            return None
        return region.memory[begin : begin + size]
