"""What was sent over a connection, and the peer has not acknowledged yet.

README.md, "Failover", says what is kept of a fragment, and why.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import cclass, cfunc
from ompy.frameworks.btl import UNREACHABLE, Descriptor, Endpoint

from ompy_components.btl.tcp.fifo import Fifo
from ompy_components.btl.tcp.framing import FRAME_SIZE

if TYPE_CHECKING:
    from typing import Any

Entry = Descriptor | memoryview  # of a fragment that was complete at once there is only its frame

OVERHEAD: Final = 256  # bytes; arbitrary: about what an object takes beside its bytes


@cclass
class Kept(Fifo):
    """Fragments that a peer has not acknowledged, oldest first; none where there is no failover.

    Attributes:
        size: bytes that are kept.
        size_max: so many, and no fragment more is accepted.
        acknowledged: fragments that the peer has, so far, over all connections.
    """

    acknowledged: int
    size: int
    size_max: int
    __slots__ = tuple(__annotations__)

    def __init__(self, size_max: int) -> None:
        super().__init__()
        self.size_max = size_max
        self.size = self.acknowledged = 0

    @cfunc
    def has_room(self) -> bool:
        """One more fragment may be kept."""
        return self.size < self.size_max

    @cfunc
    def keep_sent(self, entry: Entry, size: int) -> None:
        """A fragment of `size` bytes was sent: a descriptor, or a frame."""
        self.append(entry)
        self.size += size + OVERHEAD

    @cfunc
    def complete_oldest(self, endpoint: Endpoint, count: int) -> None:
        """The peer has taken so many more; there are as many."""
        self.acknowledged += count
        if count == 1:
            self._complete(endpoint, self.popleft())
            return
        done: list[Any] = [self.popleft() for _ in range(count)]  # a completion may break the path
        for entry in done:
            self._complete(endpoint, entry)

    @cfunc
    def _complete(self, endpoint: Endpoint, entry: Entry) -> None:
        if not isinstance(entry, Descriptor):
            self.size -= len(entry) - FRAME_SIZE + OVERHEAD
            return
        descriptor: Descriptor = entry
        payload = descriptor.payload
        size: int = len(descriptor.segment) + (len(payload) if payload is not None else 0)
        self.size -= size + OVERHEAD
        if descriptor.callback is not None:
            descriptor.callback.completed(endpoint.module, endpoint, descriptor, 0)

    @cfunc
    def fail_all(self, endpoint: Endpoint) -> None:
        """Complete descriptors badly, and give the frames back, oldest first."""
        entries: list[Any] = self.take_all()
        self.size = 0
        errors = endpoint.module.error_callback
        for entry in entries:
            if isinstance(entry, Descriptor):
                if entry.callback is not None:
                    entry.callback.completed(endpoint.module, endpoint, entry, UNREACHABLE)
            elif errors is not None:
                errors.returned(endpoint.module, endpoint.proc, entry[0], entry[FRAME_SIZE:])
