"""Fragments in registered memory: a free list for each queue, and one for messages of our own."""

from __future__ import annotations

from collections.abc import Sequence

from ompy.frameworks.btl import BTL_OWNERSHIP, NO_ORDER, PRIORITY
from ompy.frameworks.nic.verbs import ProtectionDomain

from ompy_components.btl.openib.fragments import OpenibFragment
from ompy_components.btl.openib.headers import CONTROL, CONTROL_MAX, HEADER_SIZE, MARGIN
from ompy_components.btl.openib.memory.buffers import BufferPool
from ompy_components.btl.openib.queues.receive_queues import Entry


class FreeLists:
    """Those of one module."""

    __slots__ = ("_entries", "_own", "_pools")

    def __init__(
        self, domain: ProtectionDomain, entries: Sequence[Entry], first: int, most: int, step: int
    ) -> None:
        """Register the first buffers.

        Args:
            domain: of the module.
            entries: of `receive_queues`.
            first: buffers of each list at first.
            most: at most; below 0 there is no end.
            step: that are made when there is none left.

        Raises:
            NicError: the device has no room for them.
        """
        self._entries = entries
        self._pools = [
            BufferPool(domain, entry.size + MARGIN, first, most, step) for entry in entries
        ]
        self._own = BufferPool(domain, CONTROL_MAX + MARGIN, 8, -1, 32)

    def queue_for(self, size: int) -> int:
        """The first queue that a fragment of `size` bytes fits."""
        for index, entry in enumerate(self._entries):
            if size <= entry.size:
                return index
        return len(self._entries) - 1

    def largest(self, queue: int) -> int:
        """Bytes of the longest fragment of a queue."""
        return self._entries[queue].size

    def allocate_fragment(
        self, queue: int, size: int, flags: int, order: int
    ) -> OpenibFragment | None:
        """A fragment of `size` bytes; None when all of the queue's are in use."""
        return _taken(self._pools[queue], queue, size, flags, order)

    def message(self, message: bytes, queue: int) -> OpenibFragment:
        """A control message, of high priority."""
        flags = PRIORITY | BTL_OWNERSHIP
        fragment = _taken(self._own, queue, len(message), flags, NO_ORDER)
        assert fragment is not None, "messages of our own have buffers without end"
        fragment.segment[:] = message
        fragment.tag = CONTROL
        fragment.own = True
        return fragment

    def close(self) -> None:
        """Give all memory back."""
        for pool in (*self._pools, self._own):
            pool.close()


def _taken(
    pool: BufferPool, queue: int, size: int, flags: int, order: int
) -> OpenibFragment | None:
    buffer = pool.take_buffer()
    if buffer is None:
        return None
    segment = buffer.memory[HEADER_SIZE : HEADER_SIZE + size]
    made = OpenibFragment(segment, flags, order, buffer, queue)
    made.pool = pool
    return made
