"""Regions: which bytes a key and an address stand for, and what peers may do with them.

Virtual addresses are the device's own, not the process's: they begin at 2^32 and leave a page
between two regions that nobody has. So what a peer asks for beside a region is in none, and the
same program sends the same bytes each time.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from ompy.frameworks.nic.fabric import Caps, MemoryRegion
from ompy.net.memory import vm

from ompy_components.nic.ofi_emulated.errors import ENOKEY, refusal

PAGE: Final = 4096  # bytes; x86: regions begin at pages
FIRST_ADDRESS: Final = 1 << 32  # arbitrary: no small number is an address
NO_KEY: Final = (1 << 64) - 1  # reference: libfabric 1.17, FI_KEY_NOTAVAIL
CHANGES: Final = Caps.READ | Caps.RECV | Caps.REMOTE_WRITE  # local READ: what is read goes there


class EmulatedRegion(MemoryRegion):
    """Memory the device may use.

    Attributes:
        access: what it is for.
        closed: it may not be used any more.
        descriptor: itself.
    """

    __slots__ = ("_regions", "access", "base", "closed", "descriptor", "key", "memory")

    def __init__(
        self, regions: Regions, memory: memoryview, access: Caps, key: int, base: int
    ) -> None:
        self._regions = regions
        self.memory = memory
        self.access = access
        self.key = key
        self.base = base
        self.closed = False
        self.descriptor = self

    def close(self) -> None:
        """Take the memory back; harmless the second time."""
        if not self.closed:
            self.closed = True
            self._regions.forget(self)

    def holds(self, memory: memoryview) -> bool:
        """Whether all of `memory` lies in it."""
        if self.closed or not len(memory):
            return not self.closed
        begin = vm.address_of(memory) - (vm.address_of(self.memory) if len(self.memory) else 0)
        return begin >= 0 and begin + len(memory) <= len(self.memory)


class Regions:
    """Of one domain."""

    def __init__(
        self,
        draw: Callable[[], int] | None,
        virtual: bool,
        withdraw: Callable[[EmulatedRegion], object],
    ) -> None:
        """None yet.

        Args:
            draw: makes a key; None where whoever registers chooses it.
            virtual: operations name virtual addresses, not offsets.
            withdraw: called when a region is closed.
        """
        self._draw = draw
        self._virtual = virtual
        self._withdraw = withdraw
        self._next = FIRST_ADDRESS
        self._by_key: dict[int, EmulatedRegion] = {}

    def __len__(self) -> int:
        """How many are open."""
        return len(self._by_key)

    def register(self, memory: memoryview, access: Caps, key: int) -> EmulatedRegion:
        """A new one.

        Raises:
            FabricError: the memory does not allow it, or the key is taken.
        """
        if not memory.c_contiguous:
            raise refusal(errno.EINVAL, "the memory is not contiguous")
        if access & CHANGES and memory.readonly:
            raise refusal(errno.EACCES, "the memory is read-only")
        if self._draw is not None:
            key = self._draw()
            while key in self._by_key or key == NO_KEY:
                key = self._draw()
        elif key in self._by_key or not 0 <= key < NO_KEY:
            raise refusal(ENOKEY, f"the key {key:#x} is taken, or none")
        base = self._next if self._virtual else 0
        self._next += -(-max(1, memory.nbytes) // PAGE) * PAGE + PAGE
        flat = memory.cast("B") if memory.nbytes else memoryview(b"")
        made = EmulatedRegion(self, flat, access, key, base)
        self._by_key[key] = made
        return made

    def forget(self, region: EmulatedRegion) -> None:
        """It is closed."""
        self._by_key.pop(region.key, None)
        self._withdraw(region)

    def close(self) -> None:
        """Close what is open."""
        for region in list(self._by_key.values()):
            region.close()

    def reach(self, key: int, address: int, size: int, access: int) -> EmulatedRegion | int:
        """The region of what a peer has named, or the number of the error that it is."""
        region = self._by_key.get(key)
        if region is None:
            return ENOKEY
        begin = address - region.base
        if begin < 0 or begin + size > len(region.memory):
            return errno.EINVAL
        if access & ~region.access:
            return errno.EACCES
        return region

    def view(self, region: EmulatedRegion, address: int, size: int) -> memoryview:
        """The bytes there, which `reach` has allowed."""
        begin = address - region.base
        return region.memory[begin : begin + size]
