"""What carries active messages to some of the peers.

A conduit has one for the ranks it reaches by the NIC, and perhaps one for those of its host. Credits
are the conduit's: a transport is never given more than two messages per credit and peer, and a
message for exit now and then, that it has not delivered.
"""

from __future__ import annotations

from collections.abc import Callable

# who sent it, and all of it; the memory is the transport's, but it stays as it is during the call
Deliver = Callable[[int, memoryview], None]


class Transport:
    """Carries messages, in the order they were given, peer by peer.

    Attributes:
        max_message: bytes of a message, header included.
        max_packed: the same of a LONG that brings its bytes along.
        delivered: called from within `poll` with each message, outside of the NIC's lock; its
            place is free again by then, and it may send.
    """

    max_message: int
    max_packed: int
    deliver: Deliver

    def send(self, node: int, message: bytearray) -> bool:
        """Begin to send; the message is the transport's from now on.

        Returns:
            Whether it could: if not nothing has happened, and it is tried again in a later poll.
        """
        raise NotImplementedError

    def return_credit(self, node: int) -> bool:
        """Give a peer a credit back, as its handler here has not replied.

        Returns:
            As `send`. True also where it is kept, to go along with something else.
        """
        raise NotImplementedError

    def poll(self) -> int:
        """Deliver what has come, a bounded amount. Returns how many messages."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Whether there is something to do: the rank must not sleep. News wake it."""
        raise NotImplementedError

    def close(self) -> None:
        """Give everything back."""
        raise NotImplementedError
