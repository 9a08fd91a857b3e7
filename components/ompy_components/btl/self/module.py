"""self: a fragment sent is a fragment received, in the next poll; a put or get is one copy.

Fragments are queued and delivered from `poll`, never from within `send`: the PML must not be
called back while it is in the middle of sending. Small ones lie in a ring, as between two ranks.
What finds it full, or does not fit, is queued; what comes behind that is queued, too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from ompy import raw
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.convertor import Convertor
from ompy.frameworks.btl import (
    BAD_PARAM,
    COMPLETED,
    FAILOVER_SUPPORT,
    GET,
    PUT,
    QUEUED,
    RDMA_COMPLETION,
    REMOTE_WRITE,
    SEND,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.registration import HANDLE_SIZE, RegistrationTable
from ompy.frameworks.btl_base.transfers import RdmaModule
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values
from ompy.net.memory.ring import RingReader, RingWriter, ring_size, slot_size_for

if DECLARING:
    from ompy.data.request import Waitable
    from ompy.frameworks.btl import ReceiveCallback

DELIVERIES_PER_POLL: Final = 16  # arbitrary: bounded work a poll
SLOTS: Final = 16  # arbitrary: a program seldom sends itself more before it receives
HEADERS: Final = 64  # bytes; arbitrary: a header in front of an eager message is shorter


@cclass
class SelfModule(RdmaModule):
    """The way of a rank to itself.

    Attributes:
        registered: memory for puts and gets.
    """

    _endpoint: Endpoint
    _handlers: list[ReceiveCallback | None]
    _memory: memoryview[int]
    _queue: deque[Descriptor]
    _reader: RingReader
    _view: memoryview[int]
    _writer: RingWriter
    registered: RegistrationTable
    __slots__ = tuple(__annotations__)

    def __init__(self, context: RankContext, values: Values) -> None:
        super().__init__("self", context, values, SEND | PUT | GET | RDMA_COMPLETION)
        self.registration_handle_size = HANDLE_SIZE
        self._endpoint = Endpoint(self, context.me)
        self._handlers = context.active_messages.handlers
        self._queue = deque()
        slot = slot_size_for(self.eager_limit + HEADERS)
        self._memory = memoryview(bytearray(ring_size(SLOTS, slot)))
        self._view = self._memory[:0]
        self._writer = RingWriter(self._memory, 0, SLOTS, slot)
        self._reader = RingReader(self._memory, 0, SLOTS, slot)
        self.registered = RegistrationTable(context.rank)

    @ccall
    def counters(self) -> dict[str, int]:
        """What is registered."""
        return {"registrations": len(self.registered)}

    @ccall
    def begin_failover(self) -> bool:
        """A path to oneself does not break."""
        self.flags |= FAILOVER_SUPPORT
        return True

    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint | None]:
        """Reach the own rank."""
        return [self._endpoint if proc is self.context.me else None for proc in procs]

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Queue the fragment for the next poll."""
        descriptor.tag = tag
        self._queue.append(descriptor)
        return QUEUED

    @ccall
    def sendi(
        self,
        endpoint: Endpoint,
        convertor: Convertor,
        header: bytes,
        payload_size: int,
        order: int,
        flags: int,
        tag: int,
    ) -> int:
        """Queue a copy of header and payload."""
        begin: int = len(header)
        total: int = begin + payload_size
        at: int = -1
        if total <= self._writer.room and not self._queue:
            at = self._writer.reserve(total)
        if at >= 0:
            raw.copy(self._memory, at, header, 0, begin)
            convertor.pack_at(self._memory, at + begin, payload_size)
            self._writer.publish(total, tag, 0, 0)
            return COMPLETED
        segment = memoryview(bytearray(begin + payload_size))
        raw.copy(segment, 0, header, 0, begin)
        convertor.pack_at(segment, begin, payload_size)
        descriptor = Descriptor(segment, flags, order)
        descriptor.tag = tag
        self._queue.append(descriptor)
        return COMPLETED

    def transfer(
        self, access: int, endpoint: Endpoint, descriptor: Descriptor, identity: int, offset: int
    ) -> int:
        """Copy."""
        local = descriptor.segment
        there = self.registered.find(identity, offset, len(local), access)
        if there is None:
            return BAD_PARAM
        if access == REMOTE_WRITE:
            there[:] = local
        else:
            local[:] = there
        return self.finish(endpoint, descriptor)

    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        """Give it an identity."""
        return self.registered.register_memory(memory, flags)

    def deregister_mem(self, handle: object) -> None:
        """Forget it."""
        self.registered.remove(handle)

    @ccall
    def poll(self) -> int:
        """Deliver what was sent before this call, or as much of it."""
        if self._reader.pending():
            return self._deliver_small()
        queue = self._queue
        if not queue:
            return 0
        handlers = self._handlers
        count: int = min(len(queue), DELIVERIES_PER_POLL)
        for _ in range(count):
            descriptor: Descriptor = queue.popleft()
            handler: ReceiveCallback | None = handlers[descriptor.tag]
            assert handler is not None, f"nobody registered for tag {descriptor.tag}"
            handler.received(self, self._endpoint, descriptor.tag, descriptor.segment)
            if descriptor.callback is not None:
                descriptor.callback.completed(self, self._endpoint, descriptor, 0)
        return count

    @cfunc
    def _deliver_small(self) -> int:
        """Deliver what lies in the ring, until what a blocking call waits for is there."""
        reader: RingReader = self._reader
        awaited: Waitable | None = self.context.engine.awaited
        count: int = 0
        while count < DELIVERIES_PER_POLL and reader.peek():
            handler: ReceiveCallback | None = self._handlers[reader.tag]
            assert handler is not None, f"nobody registered for tag {reader.tag}"
            self._view = raw.moved(self._view, self._memory, reader.payload, reader.length)
            try:
                handler.received(self, self._endpoint, reader.tag, self._view)
            finally:
                reader.release()
            count += 1
            if awaited is not None and awaited.complete:
                break
        return count

    def arm(self) -> bool:
        """Stay awake while something is queued."""
        return not self._queue and not self._reader.pending()

    @ccall
    def finalize(self) -> None:
        """Deliver what is queued."""
        self.context.engine.wait_until(self.arm)
