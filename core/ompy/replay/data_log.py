"""The received bytes of a rank: entries of its data file, and which receive gets which. Pure.

What a rank served others in windows is there, too.
"""

from __future__ import annotations

from collections import deque
from struct import Struct, error
from typing import Final, NamedTuple

from ompy.replay.entries import RecordingError

# kinds of entries, their first byte
MESSAGE: Final = 1
TAKEN: Final = 2
BODY: Final = 3
SERVED: Final = 4
_MESSAGE: Final = Struct("<BQIiiQ")
_BODY: Final = Struct("<BQ")
_SERVED: Final = Struct("<B?QII")

Stream = tuple[int, int, int]  # context id, source, tag


class Message(NamedTuple):
    """A message that was received.

    Attributes:
        source: rank in the communicator.
        tag: of it.
        length: bytes that were sent.
        data: what was received of them; None of one that was taken and never received.
    """

    source: int
    tag: int
    length: int
    data: memoryview | None


class Served(NamedTuple):
    """A command of another rank that was served in a window.

    Attributes:
        begins: its data were still to come.
        step: so many steps of the rank's own were over.
        context: id of the window's communicator.
        origin: rank there.
        command: as it came; data that followed are a message.
    """

    begins: bool
    step: int
    context: int
    origin: int
    command: memoryview


def served_bytes(served: Served) -> bytes:
    """The entry of a command that was served."""
    return _SERVED.pack(SERVED, *served[:-1]) + served.command


def message_bytes(order: int, stream: Stream, length: int, data: bytes | memoryview) -> bytes:
    """The entry of a message.

    Args:
        order: the how-manieth receive of the rank it is of.
        stream: context id, source and tag.
        length: bytes that were sent.
        data: what was received of them.
    """
    return b"".join((_MESSAGE.pack(MESSAGE, order, *stream, length), data))


def taken_bytes(order: int, stream: Stream, length: int) -> bytes:
    """The entry of a message that a matched probe has taken."""
    return _MESSAGE.pack(TAKEN, order, *stream, length)


def body_bytes(order: int, data: bytes | memoryview) -> bytes:
    """The entry of what such a message had in it, once it was received."""
    return b"".join((_BODY.pack(BODY, order), data))


class Streams:
    """The messages of a rank, by context id, source and tag, each in the order of its receives.

    Attributes:
        served: what the rank served in windows, in that order.
    """

    def __init__(self, bodies: list[memoryview], name: str) -> None:
        """Put them in order.

        Args:
            bodies: of the entries of a data file.
            name: of the file, for errors.

        Raises:
            RecordingError: there is an entry that this version does not know.
        """
        found: dict[Stream, list[tuple[int, int, memoryview | None]]] = {}
        taken: dict[int, memoryview] = {}
        self.served: list[Served] = []
        for body in bodies:
            try:
                if body[0] == BODY:
                    _, order = _BODY.unpack_from(body)
                    taken[order] = body[_BODY.size :]
                    continue
                if body[0] == SERVED:
                    self._add_served(body)
                    continue
                kind, order, context, source, tag, length = _MESSAGE.unpack_from(body)
            except (error, IndexError):
                raise RecordingError(f"{name}: there is an entry that is not whole") from None
            if kind not in (MESSAGE, TAKEN):
                raise RecordingError(
                    f"{name}: there is an entry of a kind {kind} that is not known"
                )
            data = body[_MESSAGE.size :] if kind == MESSAGE else None
            found.setdefault((context, source, tag), []).append((order, length, data))
        self._queues: dict[Stream, deque[Message]] = {}
        for stream, entries in found.items():
            entries.sort(key=lambda entry: entry[0])
            _, source, tag = stream
            self._queues[stream] = deque(
                Message(source, tag, length, taken.get(order) if data is None else data)
                for order, length, data in entries
            )

    def _add_served(self, body: memoryview) -> None:
        _, begins, step, context, origin = _SERVED.unpack_from(body)
        self.served.append(Served(begins, step, context, origin, body[_SERVED.size :]))

    def next_message(self, context: int, source: int, tag: int, *, takes: bool) -> Message | None:
        """The message that the next receive of a stream gets; None if none was recorded.

        Args:
            context: id of the communicator.
            source: rank there.
            tag: of the message.
            takes: it is received, or taken to be received.
        """
        queue = self._queues.get((context, source, tag))
        if not queue:
            return None
        return queue.popleft() if takes else queue[0]
