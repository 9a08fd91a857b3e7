"""Frames that a stream has not taken whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from ompy.net.base import Stream


class Outgoing:
    """One frame.

    Attributes:
        pieces: what is left of it.
        subject: whose it is.
        taken: called when all is.
        leaves: when it leaves the device, ns; 0: at once.
    """

    __slots__ = ("leaves", "pieces", "subject", "taken")

    def __init__(
        self,
        pieces: Sequence[memoryview],
        subject: object = None,
        taken: Callable[[], object] | None = None,
    ) -> None:
        self.pieces = [piece for piece in pieces if len(piece)]
        self.subject = subject
        self.taken = taken
        self.leaves = 0


class OutgoingQueue:
    """Frames in order."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[Outgoing] = deque()

    def __bool__(self) -> bool:
        """Whether any waits."""
        return bool(self._waiting)

    def add(self, frame: Outgoing) -> None:
        """Send it behind the others with the next `flush`."""
        self._waiting.append(frame)

    def due(self, now: int) -> bool:
        """Whether one waits for the stream, not for the device."""
        return bool(self._waiting) and self._waiting[0].leaves <= now

    def flush(self, stream: Stream, now: int) -> None:
        """Hand over what has left the device by `now` and the stream takes.

        Raises:
            LinkError: it is broken.
        """
        while self._waiting:
            frame = self._waiting[0]
            if frame.leaves > now:
                return
            taken = stream.send(frame.pieces)
            if not taken:
                return
            frame.pieces = _without(frame.pieces, taken)
            if not frame.pieces:
                self._waiting.popleft()
                if frame.taken is not None:
                    frame.taken()

    def hurry(self) -> None:
        """The device is about to close: all leaves at once."""
        for frame in self._waiting:
            frame.leaves = 0

    def withdraw(self, subject: object) -> None:
        """The memory of a subject's frames is about to change: send copies of it."""
        for frame in self._waiting:
            if frame.subject is subject:
                frame.pieces = [memoryview(b"".join(frame.pieces))]
                frame.subject = None

    def clear(self) -> None:
        """Nothing more is sent."""
        self._waiting.clear()


def _without(pieces: list[memoryview], taken: int) -> list[memoryview]:
    """What is left of `pieces` after their first `taken` bytes."""
    for index, piece in enumerate(pieces):
        if taken < len(piece):
            return [piece[taken:], *pieces[index + 1 :]]
        taken -= len(piece)
    return []
