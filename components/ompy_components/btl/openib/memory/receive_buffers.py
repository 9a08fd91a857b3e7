"""Buffers that wait for what peers send: of a module for all peers, or of one peer.

Source: reference openmpi.md 5.2 (low, rd_init, srq_limit) and 5.6 (enable_srq_resize).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.nic.verbs import ProtectionDomain, QueuePair, SharedReceiveQueue

from ompy_components.btl.openib.memory.buffers import Buffer, Slab
from ompy_components.btl.openib.queues.receive_queues import PerPeer, Shared

if TYPE_CHECKING:
    from ompy_components.btl.openib.queues.completions import CompletionRoom


class ReceiveBuffer:
    """One that is posted, with whom it belongs to: the context of its completion.

    Attributes:
        buffer: the memory.
        owner: who posts it again.
    """

    __slots__ = ("buffer", "owner")

    def __init__(self, buffer: Buffer, owner: SharedBuffers | PeerBuffers) -> None:
        self.buffer = buffer
        self.owner = owner


class SharedBuffers:
    """The buffers of one `S` entry.

    Attributes:
        queue: they are posted to.
        current: how many there are by now.
        resizes: how often there became more.
    """

    __slots__ = (
        "_domain",
        "_entry",
        "_resize",
        "_room",
        "_size",
        "_slabs",
        "_spent",
        "current",
        "queue",
        "resizes",
    )

    def __init__(
        self,
        domain: ProtectionDomain,
        entry: Shared,
        size: int,
        room: CompletionRoom,
        *,
        resize: bool,
    ) -> None:
        """Post the first ones.

        Args:
            domain: of the module.
            entry: of `receive_queues`.
            size: bytes of a buffer, header and footer included.
            room: for their completions.
            resize: more are posted when few are left; otherwise all are there from the beginning.
        """
        self._domain = domain
        self._entry = entry
        self._size = size
        self._room = room
        self._resize = resize
        self._slabs: list[Slab] = []
        self._spent: list[ReceiveBuffer] = []
        self.queue: SharedReceiveQueue = domain.shared_queue(entry.num)
        self.current = self.resizes = 0
        self._add(entry.rd_init if resize else entry.num)

    def used(self, one: ReceiveBuffer) -> None:
        """A buffer has been read; it is posted again when enough have been."""
        self._spent.append(one)
        low = self.current * self._entry.low // self._entry.num
        if self.current - len(self._spent) <= low:
            for other in self._spent:
                self._post(other)
            self._spent.clear()
            self._arm()

    def few_left(self) -> None:
        """The device says that few are left: have twice as many."""
        if self.current < self._entry.num:
            self.resizes += 1
            self._add(min(self.current, self._entry.num - self.current))

    def close(self) -> None:
        """Give everything back; its queue pairs are closed already."""
        self.queue.close()
        self._spent.clear()
        for slab in self._slabs:
            slab.close()

    def _add(self, count: int) -> None:
        slab = Slab(self._domain, self._size, count)
        self._slabs.append(slab)
        self.current += count
        for buffer in slab.buffers:
            self._post(ReceiveBuffer(buffer, self))
        self._arm()

    def _arm(self) -> None:
        if self._resize and self.current < self._entry.num:
            self.queue.arm(self._entry.srq_limit)

    def _post(self, one: ReceiveBuffer) -> None:
        self._room.reserve_entry()
        self.queue.post_receive(one.buffer.span(self._size), one)


class PeerBuffers:
    """The buffers of one `P` queue pair, reserved ones included."""

    __slots__ = ("_pair", "_room", "_size", "_slab", "_spent", "posted")

    def __init__(
        self,
        domain: ProtectionDomain,
        entry: PerPeer,
        size: int,
        room: CompletionRoom,
        pair: QueuePair,
    ) -> None:
        """Post all. The queue pair is in INIT."""
        self._pair = pair
        self._size = size
        self._room = room
        self._spent: list[ReceiveBuffer] = []
        self.posted = 0
        self._slab = Slab(domain, size, entry.num + entry.rsv)
        for buffer in self._slab.buffers:
            self._post(ReceiveBuffer(buffer, self))

    def used(self, one: ReceiveBuffer) -> None:
        """One has been read; `repost` says when it is posted again."""
        self.posted -= 1
        self._spent.append(one)

    def repost(self, count: int) -> None:
        """Post `count` of those that have been read."""
        for _ in range(count):
            self._post(self._spent.pop())

    def close(self) -> None:
        """Give everything back; the queue pair is closed already, and nothing is reported."""
        for _ in range(self.posted):
            self._room.give_back()
        self.posted = 0
        self._spent.clear()
        self._slab.close()

    def _post(self, one: ReceiveBuffer) -> None:
        self._room.reserve_entry()
        self.posted += 1
        self._pair.post_receive(one.buffer.span(self._size), one)
