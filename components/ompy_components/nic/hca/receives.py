"""Receive queues: buffers that wait for messages, of one queue pair or of several."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ompy.frameworks.nic.base import EventKind, NicError
from ompy.frameworks.nic.verbs import SharedReceiveQueue, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy_components.nic.hca.resources import Resources


class Buffer(NamedTuple):
    """Room for one message."""

    span: Span
    context: object


class ReceiveQueue:
    """The buffers of one queue pair.

    Attributes:
        depth: entries.
    """

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self._buffers: deque[Buffer] = deque()

    def add(self, span: Span, context: object) -> None:
        """Put one into it. Raises NicError when it is full."""
        if len(self._buffers) >= self.depth:
            raise NicError(f"the receive queue is full: {self.depth} entries")
        self._buffers.append(Buffer(span, context))

    def take(self) -> Buffer | None:
        """The oldest one, which is for a message that begins; None when there is none."""
        return self._buffers.popleft() if self._buffers else None

    def empty(self) -> list[Buffer]:
        """All that are left, oldest first."""
        found = list(self._buffers)
        self._buffers.clear()
        return found


class HcaSharedQueue(SharedReceiveQueue):
    """The buffers of several queue pairs."""

    def __init__(
        self, resources: Resources, depth: int, closed: Callable[[HcaSharedQueue], None]
    ) -> None:
        """Of a device's domain, which `closed` tells that it has been closed."""
        self._name = resources.name
        self._usable = resources.usable
        self._report = resources.report
        self._closed = closed
        self.depth = depth
        self._buffers = ReceiveQueue(depth)
        self._limit = 0
        self._open = True
        self.posted = 0

    def post_receive(self, span: Span, context: object) -> None:
        """Put a buffer into it."""
        self._usable()
        if not self._open:
            raise NicError("the shared receive queue is closed")
        self._buffers.add(span, context)
        self.posted += 1

    def take(self) -> Buffer | None:
        """The oldest one; None when there is none."""
        found = self._buffers.take()
        if found is not None:
            self.posted -= 1
            assert self.posted >= 0, "no more is taken than was posted"
            self._look()
        return found

    def arm(self, limit: int) -> None:
        """Report when fewer than `limit` are left, at once if they are; 0 disarms."""
        if not 0 <= limit <= self.depth:
            raise NicError(f"a limit of {limit}, where {self.depth} buffers have room")
        self._limit = limit
        self._look()

    def _look(self) -> None:
        if self.posted >= self._limit:
            return
        reason = f"{self._name}: {self.posted} buffers are left, {self._limit} wanted"
        self._limit = 0
        self._report(EventKind.SRQ_LIMIT_REACHED, reason, self)

    def close(self) -> None:
        """Forget the buffers."""
        self._open = False
        self._limit = 0
        self._buffers.empty()
        self.posted = 0
        self._closed(self)
