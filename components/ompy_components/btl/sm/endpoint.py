"""A peer on the same host."""

from __future__ import annotations

from collections import deque

from ompy.compiled import ccall, cclass
from ompy.frameworks.btl import BtlModule, Descriptor, Endpoint
from ompy.frameworks.proc import Proc
from ompy.net.base import Doorbell
from ompy.net.memory.ring import RingWriter
from ompy.net.memory.streaming import Streaming

from ompy_components.btl.sm.lending_choice import LendingChoice


@cclass
class SmDescriptor(Descriptor):
    """A fragment in private memory (small) or in a block of the shared pool (large).

    Attributes:
        block: index of the block, or -1.
        endpoint: where it was sent.
    """

    block: int
    endpoint: SmEndpoint | None
    __slots__ = tuple(__annotations__)


@ccall
def descriptor_of(segment: memoryview, flags: int, order: int, block: int) -> SmDescriptor:
    """A descriptor that was not sent. No `__init__`: it costs compiled callers the most."""
    made: SmDescriptor = SmDescriptor.__new__(SmDescriptor)
    made.prepare(segment, flags, order)
    made.block = block
    made.endpoint = None
    return made


@cclass
class SmEndpoint(Endpoint):
    """The way to one rank of this host.

    Attributes:
        writer: our end of the ring to it.
        parked: index of its parked word, in 8-byte words.
        table: index of its table of registrations, likewise.
        queue: fragments that found the ring full, in order.
        streaming: how messages are copied to where it reads them.
        copies: whether the kernel copies with it: 1 or 0, -1 before it was tried.
        lends: it may read this rank's memory, as far as is known.
        choice: whether large messages to it are lent.
    """

    bell: Doorbell | None
    choice: LendingChoice
    copies: int
    lends: bool
    parked: int
    queue: deque[SmDescriptor]
    streaming: Streaming
    table: int
    writer: RingWriter
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: BtlModule,
        proc: Proc,
        writer: RingWriter,
        parked: int,
        table: int,
        streaming: Streaming,
    ) -> None:
        super().__init__(module, proc)
        self.writer = writer
        self.parked = parked
        self.table = table
        self.streaming = streaming
        self.queue = deque()
        self.bell = None
        self.copies = -1
        self.lends = True
        self.choice = LendingChoice()
