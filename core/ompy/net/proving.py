"""The handshake's bytes over a stream, for whoever opened the connection and whoever took it."""

from __future__ import annotations

from collections.abc import Callable

from ompy.net.base import Stream
from ompy.net.handshake import Acceptor, Initiator, Outcome


def say(side: Initiator | Acceptor, stream: Stream) -> None:
    """Send what is to be said, as far as it goes. Raises LinkError as the stream does."""
    if side.outgoing:
        taken = stream.send([memoryview(side.outgoing)])
        side.outgoing = side.outgoing[taken:]


def hear(side: Initiator | Acceptor, stream: Stream) -> int:
    """Take in what has arrived of what the other side says next.

    Returns:
        Bytes, as `Stream.receive_into`: 0 when the other side has closed, or `WOULD_BLOCK`.

    Raises:
        HandshakeError: the other side is a stranger.
        LinkError: as the stream does.
    """
    room = memoryview(bytearray(side.wanted()))
    count = stream.receive_into(room)
    if count > 0:
        side.feed(bytes(room[:count]))
    return count


def attend(acceptor: Acceptor, stream: Stream, decide: Callable[[], object]) -> bool:
    """Go on with the side that listened; `decide` is called once, when a verdict is due.

    Returns:
        False when the other side has closed.

    Raises:
        HandshakeError: the other side is a stranger.
        LinkError: as the stream does.
    """
    while acceptor.wanted():
        count = hear(acceptor, stream)
        if count == 0:
            return False
        if count < 0:
            break
    if acceptor.outcome is Outcome.PROVEN:
        decide()
    say(acceptor, stream)
    return True
