"""What an endpoint has on its way: fragments, messages of our own, puts and gets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.btl import PRIORITY, Descriptor
from ompy.frameworks.nic.verbs import Opcode

from ompy_components.btl.openib.headers import HEADER_SIZE

if TYPE_CHECKING:
    from ompy_components.btl.openib.memory.buffers import Buffer, BufferPool

NO_NUMBER: Final = -1


class OpenibFragment(Descriptor):
    """A fragment of the PML, a control message, or a COALESCED one that carries several.

    Attributes:
        buffer: registered memory: header, segment, room for a footer; None for what can only be
            refused.
        pool: where that goes back to.
        queue: index of the queue pair it takes.
        serial: when it was accepted, counted by the module; -1: it was not.
        number: of its write to the peer's ring, or `NO_NUMBER`.
        token: it holds a token of its queue.
        reserved: a CREDITS message on a reserved buffer.
        immediate: of `sendi`; nobody is told when it is done, but what is lost is returned.
        own: a message of this BTL: nobody is told.
        parts: the fragments it carries; none for a plain one.
    """

    __slots__ = (
        "buffer",
        "immediate",
        "number",
        "own",
        "parts",
        "pool",
        "queue",
        "reserved",
        "serial",
        "token",
    )

    def __init__(
        self, segment: memoryview, flags: int, order: int, buffer: Buffer | None, queue: int
    ) -> None:
        super().__init__(segment, flags, order)
        self.buffer = buffer
        self.pool: BufferPool | None = None
        self.queue = queue
        self.serial = -1
        self.number = NO_NUMBER
        self.token = self.reserved = self.immediate = self.own = False
        self.parts: list[OpenibFragment] = []

    @property
    def high(self) -> bool:
        """Of high priority."""
        return bool(self.flags & PRIORITY)

    @property
    def size(self) -> int:
        """Bytes on the wire, header included, footer not."""
        return HEADER_SIZE + len(self.segment)

    def release(self) -> None:
        """Give the buffer back; harmless the second time."""
        buffer, self.buffer = self.buffer, None
        if buffer is not None and self.pool is not None:
            self.pool.give_back(buffer)


class Transfer(Descriptor):
    """A put or get.

    Attributes:
        opcode: RDMA_WRITE or RDMA_READ.
        lkey: of the local memory, which is the segment.
        address, rkey: of the peer's.
        queue: index of the queue pair for them.
        serial: when it was accepted, counted by the module.
    """

    __slots__ = ("address", "lkey", "opcode", "queue", "rkey", "serial")

    def __init__(self, opcode: Opcode, local: memoryview, flags: int, order: int) -> None:
        super().__init__(local, flags, order)
        self.payload_size = len(local)
        self.opcode = opcode
        self.lkey = self.address = self.rkey = 0
        self.queue = self.serial = -1


Outgoing = OpenibFragment | Transfer
