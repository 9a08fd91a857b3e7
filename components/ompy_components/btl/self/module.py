"""self: a fragment sent is a fragment received, in the next poll.

Fragments are queued and delivered from `poll`, never from within `send`: the PML must not be
called back while it is in the middle of sending.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from ompy.data.convertor import Convertor
from ompy.frameworks.btl import (
    COMPLETED,
    QUEUED,
    SEND,
    BtlModule,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

DELIVERIES_PER_POLL = 16  # arbitrary: bounded work a poll


class SelfModule(BtlModule):
    """The way of a rank to itself."""

    __slots__ = ("_endpoint", "_queue")

    def __init__(self, context: RankContext, values: Values) -> None:
        super().__init__("self", context, values)
        self.flags = SEND
        self._endpoint = Endpoint(self, context.me)
        self._queue: deque[Descriptor] = deque()

    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint | None]:
        """Reach the own rank."""
        return [self._endpoint if proc is self.context.me else None for proc in procs]

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Queue the fragment for the next poll."""
        descriptor.tag = tag
        self._queue.append(descriptor)
        return QUEUED

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
        segment = memoryview(bytearray(len(header) + payload_size))
        segment[: len(header)] = header
        convertor.pack(0, segment[len(header) :])
        descriptor = Descriptor(segment, flags, order)
        descriptor.tag = tag
        self._queue.append(descriptor)
        return COMPLETED

    def poll(self) -> int:
        """Deliver what was queued before this call."""
        queue = self._queue
        if not queue:
            return 0
        handlers = self.context.active_messages.handlers
        count = min(len(queue), DELIVERIES_PER_POLL)
        for _ in range(count):
            descriptor = queue.popleft()
            handler = handlers[descriptor.tag]
            assert handler is not None, f"nobody registered for tag {descriptor.tag}"
            handler.received(self, self._endpoint, descriptor.tag, descriptor.segment)
            if descriptor.callback is not None:
                descriptor.callback.completed(self, self._endpoint, descriptor, 0)
        return count

    def arm(self) -> bool:
        """Stay awake while something is queued."""
        return not self._queue

    def finalize(self) -> None:
        """Deliver what is queued."""
        self.context.engine.wait_until(self.arm)
