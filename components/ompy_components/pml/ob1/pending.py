"""What could not be sent because a BTL was out of resources, and is tried again.

Control messages first, then messages not begun, then fragments, then put and get: the order of
reference openmpi.md 3.8. The queue is polled while it is not empty, so nothing waits for a
completion that may never come (3.8.2 names the hang that such waiting caused).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ompy.engine.base import Engine, Poller
from ompy.trace.sink import Trace

Attempt = Callable[[], bool]  # true when it went out


class Lines:
    """Attempts of one kind: a line for each rail or peer they need room on."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: dict[object, deque[Attempt]] = {}

    def __len__(self) -> int:
        return sum([len(line) for line in self._lines.values()])

    def add(self, attempt: Attempt, room_on: object) -> None:
        """Queue behind those that wait for the same room."""
        line = self._lines.get(room_on)
        if line is None:
            line = self._lines[room_on] = deque()
        line.append(attempt)

    def advance(self) -> int:
        """Try the first of each line, and of those that went out the next, in turn.

        One that fails stays in its place and speaks for those behind it: an idle round costs
        an attempt a line. A line that got on is the last to be tried the next time, so that none
        takes all the room.

        Returns:
            How many went out.
        """
        succeeded = 0
        rooms = list(self._lines)
        while rooms:
            moving = []
            for room_on in rooms:
                line = self._lines[room_on]
                if not line[0]():
                    continue
                succeeded += 1
                line.popleft()
                del self._lines[room_on]
                if line:
                    self._lines[room_on] = line
                    moving.append(room_on)
            rooms = moving
        return succeeded


class PendingQueue(Poller):
    """Things to try again, each until it succeeds.

    Where many wait for room on the same rail or peer, one that fails speaks for those behind it.
    """

    __slots__ = ("_engine", "_fragments", "_packets", "_polled", "_rdma", "_starts", "_trace")

    def __init__(self, engine: Engine, trace: Trace) -> None:
        self._engine = engine
        self._trace = trace
        self._packets = Lines()
        self._starts = Lines()
        self._fragments = Lines()
        self._rdma = Lines()
        self._polled = False

    def __len__(self) -> int:
        return len(self._packets) + len(self._starts) + len(self._fragments) + len(self._rdma)

    def is_empty(self) -> bool:
        """Whether nothing waits."""
        return not len(self)

    def packet(self, attempt: Attempt, room_on: object) -> None:
        """Try to send a control message (ACK, PUT, FIN) again."""
        self._add(self._packets, attempt, room_on)

    def start(self, attempt: Attempt, room_on: object) -> None:
        """Try to begin a message again."""
        self._add(self._starts, attempt, room_on)

    def fragment(self, attempt: Attempt, room_on: object) -> None:
        """Try to go on with a message's fragments again."""
        self._add(self._fragments, attempt, room_on)

    def rdma(self, attempt: Attempt, room_on: object) -> None:
        """Try to put or get again."""
        self._add(self._rdma, attempt, room_on)

    def poll(self) -> int:
        """Try what waits, in the order it came; what fails stays in its place."""
        succeeded = 0
        for lines in (self._packets, self._starts, self._fragments, self._rdma):
            succeeded += lines.advance()
        if succeeded and self._trace.active:
            self._trace.record("pml.ob1", "PENDING", count=len(self))
        if not len(self):
            self._engine.remove_poller(self)
            self._polled = False
        return succeeded

    def _add(self, lines: Lines, attempt: Attempt, room_on: object) -> None:
        lines.add(attempt, room_on)
        if self._trace.active:
            self._trace.record("pml.ob1", "PENDING", count=len(self))
        if not self._polled:
            self._polled = True
            self._engine.add_poller(self)
