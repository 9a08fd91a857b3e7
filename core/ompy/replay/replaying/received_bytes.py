"""In a replay: is what the program receives, byte for byte, what it received?

Of messages between two ranks, where the recording has their bytes. Those of collective calls are
not looked at: some are ompy's own, and say what is another in each job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.data.errors import ERR_TRUNCATE

if TYPE_CHECKING:
    from ompy.data.convertor import Convertor
    from ompy.data.request import Request
    from ompy.frameworks.communicator import Communicator
    from ompy.replay.data_log import Message, Streams
    from ompy.replay.follower import Follower


class ReceivedBytes:
    """Compares them, for one rank."""

    def __init__(self, streams: Streams, follower: Follower) -> None:
        """Nothing has come yet.

        Args:
            streams: what the rank received.
            follower: hears of what differs.
        """
        self._streams = streams
        self._follower = follower

    def expected_message(self, communicator: Communicator, source: int, tag: int) -> Message | None:
        """What the receive that is posted now got, or what a matched probe took.

        Args:
            communicator: where.
            source: rank there; no wildcard.
            tag: of the message; no wildcard.
        """
        return self._streams.next_message(communicator.context_id, source, tag, takes=True)

    def compare(self, expected: Message | None, convertor: Convertor, request: Request) -> None:
        """See that a receive which is complete has got the bytes that it got.

        Does not return if it has not, unless the program has been changed since.

        Args:
            expected: its message; None if it never got one.
            convertor: of the memory it was received into.
            request: the receive.
        """
        if expected is None or expected.data is None or not has_come(request):
            return
        said = _difference(expected.data, bytes_in(convertor, request))
        if said:
            self._follower.bytes_differ(f"from rank {request.source}, tag {request.tag}", said)


def _difference(then: memoryview, now: memoryview) -> str:
    """What is not as it was, in words; empty if nothing is."""
    if then == now:
        return ""
    if len(then) != len(now):
        return f"{len(now)} bytes were received, in the recording {len(then)}"
    place = next(place for place in range(len(now)) if then[place] != now[place])
    return f"byte {place} of {len(now)} is 0x{now[place]:02x}, in the recording 0x{then[place]:02x}"


def has_come(request: Request) -> bool:
    """Whether a receive has got a message, be it too long."""
    there = request.complete and not request.cancelled and request.source >= 0
    return there and request.error in (0, ERR_TRUNCATE)


def bytes_in(convertor: Convertor, request: Request) -> memoryview:
    """What was received, out of the memory it was received into."""
    room = memoryview(bytearray(request.received))
    if request.received:
        convertor.pack_at(room, 0, request.received)
    return room
