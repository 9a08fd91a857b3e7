"""self: a fragment sent is a fragment received, in the next poll; a put or get is one copy.

Fragments are queued and delivered from `poll`, never from within `send`: the PML must not be
called back while it is in the middle of sending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ompy import raw
from ompy.compiled import DECLARING, ccall, cclass
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

if DECLARING:
    from ompy.frameworks.btl import ReceiveCallback

DELIVERIES_PER_POLL = 16  # arbitrary: bounded work a poll


@cclass
class SelfModule(RdmaModule):
    """The way of a rank to itself.

    Attributes:
        registered: memory for puts and gets.
    """

    _endpoint: Endpoint
    _handlers: list[ReceiveCallback | None]
    _queue: deque[Descriptor]
    registered: RegistrationTable
    __slots__ = tuple(__annotations__)

    def __init__(self, context: RankContext, values: Values) -> None:
        super().__init__("self", context, values, SEND | PUT | GET | RDMA_COMPLETION)
        self.registration_handle_size = HANDLE_SIZE
        self._endpoint = Endpoint(self, context.me)
        self._handlers = context.active_messages.handlers
        self._queue = deque()
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
        begin = len(header)
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
        """Deliver what was queued before this call."""
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

    def arm(self) -> bool:
        """Stay awake while something is queued."""
        return not self._queue

    @ccall
    def finalize(self) -> None:
        """Deliver what is queued."""
        self.context.engine.wait_until(self.arm)
