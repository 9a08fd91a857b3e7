"""Registered memory that fragments are sent from: free lists of buffers of one size."""

from __future__ import annotations

import mmap

from ompy.frameworks.nic.verbs import Access, MemoryRegion, ProtectionDomain, Span


class Buffer:
    """Room for one fragment, header and footer included.

    Attributes:
        memory: the bytes.
        lkey: of their region.
    """

    __slots__ = ("lkey", "memory")

    def __init__(self, memory: memoryview, lkey: int) -> None:
        self.memory = memory
        self.lkey = lkey

    def span(self, size: int) -> Span:
        """The first `size` bytes, for the device."""
        return Span(self.memory[:size], self.lkey)


class Slab:
    """Buffers of one size in one region, which is given back with `close`.

    Attributes:
        buffers: all of them.
        region: the memory they are in.
    """

    __slots__ = ("buffers", "region")

    def __init__(
        self, domain: ProtectionDomain, size: int, count: int, access: Access = Access.LOCAL_WRITE
    ) -> None:
        """Register memory for `count` buffers of `size` bytes. Raises NicError."""
        # fresh pages of the system cost nothing until they are used
        memory = memoryview(mmap.mmap(-1, size * count))
        self.region: MemoryRegion = domain.register(memory, access)
        lkey = self.region.lkey
        self.buffers = [
            Buffer(memory[start : start + size], lkey) for start in range(0, size * count, size)
        ]

    def close(self) -> None:
        """Take the memory back from the device."""
        self.buffers.clear()
        self.region.close()


class BufferPool:
    """A free list (reference openmpi.md 5.6: free_list_num, free_list_max, free_list_inc).

    Attributes:
        size: bytes of a buffer.
        held: buffers that are in use.
    """

    __slots__ = ("_domain", "_free", "_made", "_most", "_slabs", "_step", "held", "size")

    def __init__(
        self, domain: ProtectionDomain, size: int, first: int, most: int, step: int
    ) -> None:
        """A list of buffers of `size` bytes: `first` at first, `step` more each time, up to `most`.

        With `most` below 0 there is no end.
        """
        self.size = size
        self.held = 0
        self._domain = domain
        self._free: list[Buffer] = []
        self._slabs: list[Slab] = []
        self._made = 0
        self._most = most
        self._step = max(1, step)
        if first:
            self._grow(first)

    def take_buffer(self) -> Buffer | None:
        """A buffer, or None when all are in use."""
        if not self._free:
            self._grow(self._step)
            if not self._free:
                return None
        self.held += 1
        return self._free.pop()

    def give_back(self, buffer: Buffer) -> None:
        """It is not used any more."""
        self.held -= 1
        self._free.append(buffer)

    def close(self) -> None:
        """Give all memory back."""
        self._free.clear()
        for slab in self._slabs:
            slab.close()
        self._slabs.clear()

    def _grow(self, count: int) -> None:
        if self._most >= 0:
            count = min(count, self._most - self._made)
        if count > 0:
            slab = Slab(self._domain, self.size, count)
            self._slabs.append(slab)
            self._made += count
            self._free.extend(slab.buffers)
