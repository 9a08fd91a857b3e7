"""The handshake over a stream, for whoever opened the connection and whoever took it.

What comes after it goes through `sealed`.
"""

from __future__ import annotations

from collections.abc import Callable

from ompy.net.base import Readiness, Stream
from ompy.net.seals.handshake import Acceptor, Initiator, Outcome, SealLevel


def send_proof(side: Initiator | Acceptor, stream: Stream) -> None:
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
    send_proof(acceptor, stream)
    return True


def sealed(side: Initiator | Acceptor, key: bytes, stream: Stream, readiness: Readiness) -> Stream:
    """The connection as it is used once it is taken: under the seal both sides have agreed on.

    Args:
        side: that has come to an end.
        key: of the job.
        stream: what the handshake went over.
        readiness: the set the connection is in, or will be.
    """
    assert side.outcome is Outcome.TAKEN, "there is nothing to agree on before"
    if side.seal is SealLevel.NONE:
        return stream
    from ompy.net.seals.records import session_keys  # late: within a host nothing is sealed
    from ompy.net.seals.sealed import SealedStream

    forth, back = session_keys(key, side.transcript)
    keys = (forth, back) if isinstance(side, Initiator) else (back, forth)
    return SealedStream(stream, side.seal, keys, readiness)
