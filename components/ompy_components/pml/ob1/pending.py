"""What could not be sent because a BTL was out of resources, and is tried again.

Control messages first, then messages not begun, then fragments, then put and get: the order of
reference openmpi.md 3.8. The queue is polled while it is not empty, so nothing waits for a
completion that may never come (3.8.2 names the hang that such waiting caused).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ompy.engine.base import Engine, Poller

Attempt = Callable[[], bool]  # true when it went out


class PendingQueue(Poller):
    """Things to try again, each until it succeeds."""

    __slots__ = ("_engine", "_fragments", "_packets", "_polled", "_rdma", "_starts")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._packets: deque[Attempt] = deque()
        self._starts: deque[Attempt] = deque()
        self._fragments: deque[Attempt] = deque()
        self._rdma: deque[Attempt] = deque()
        self._polled = False

    def __len__(self) -> int:
        return len(self._packets) + len(self._starts) + len(self._fragments) + len(self._rdma)

    def packet(self, attempt: Attempt) -> None:
        """Try to send a control message (ACK, PUT, FIN) again."""
        self._add(self._packets, attempt)

    def start(self, attempt: Attempt) -> None:
        """Try to begin a message again."""
        self._add(self._starts, attempt)

    def fragment(self, attempt: Attempt) -> None:
        """Try to go on with a message's fragments again."""
        self._add(self._fragments, attempt)

    def rdma(self, attempt: Attempt) -> None:
        """Try to put or get again."""
        self._add(self._rdma, attempt)

    def poll(self) -> int:
        """Try everything once, in the order it came; what fails stays in its place."""
        succeeded = 0
        for queue in (self._packets, self._starts, self._fragments, self._rdma):
            for _ in range(len(queue)):
                attempt = queue.popleft()
                if attempt():
                    succeeded += 1
                else:
                    queue.append(attempt)
        if not len(self):
            self._engine.remove_poller(self)
            self._polled = False
        return succeeded

    def _add(self, queue: deque[Attempt], attempt: Attempt) -> None:
        queue.append(attempt)
        if not self._polled:
            self._polled = True
            self._engine.add_poller(self)
