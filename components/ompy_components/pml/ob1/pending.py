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
Entry = tuple[Attempt, object]  # and what it needs room on


class PendingQueue(Poller):
    """Things to try again, each until it succeeds.

    Where many wait for room on the same rail or peer, one that fails speaks for those behind it.
    """

    __slots__ = ("_engine", "_fragments", "_packets", "_polled", "_rdma", "_starts")

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._packets: deque[Entry] = deque()
        self._starts: deque[Entry] = deque()
        self._fragments: deque[Entry] = deque()
        self._rdma: deque[Entry] = deque()
        self._polled = False

    def __len__(self) -> int:
        return len(self._packets) + len(self._starts) + len(self._fragments) + len(self._rdma)

    def packet(self, attempt: Attempt, room_on: object) -> None:
        """Try to send a control message (ACK, PUT, FIN) again."""
        self._add(self._packets, attempt, room_on)

    def start(self, attempt: Attempt) -> None:
        """Try to begin a message again: a small one may find room where a large one did not."""
        self._add(self._starts, attempt, None)

    def fragment(self, attempt: Attempt, room_on: object) -> None:
        """Try to go on with a message's fragments again."""
        self._add(self._fragments, attempt, room_on)

    def rdma(self, attempt: Attempt, room_on: object) -> None:
        """Try to put or get again."""
        self._add(self._rdma, attempt, room_on)

    def poll(self) -> int:
        """Try what waits, in the order it came; what fails stays in its place."""
        succeeded = 0
        for queue in (self._packets, self._starts, self._fragments, self._rdma):
            full: set[object] = set()
            for _ in range(len(queue)):
                entry = queue.popleft()
                attempt, room_on = entry
                if room_on is not None and room_on in full:
                    queue.append(entry)
                elif attempt():
                    succeeded += 1
                else:
                    full.add(room_on)
                    queue.append(entry)
        if not len(self):
            self._engine.remove_poller(self)
            self._polled = False
        return succeeded

    def _add(self, queue: deque[Entry], attempt: Attempt, room_on: object) -> None:
        queue.append((attempt, room_on))
        if not self._polled:
            self._polled = True
            self._engine.add_poller(self)
