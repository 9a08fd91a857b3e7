"""What carries active messages to some of the peers.

A conduit has one for the ranks it reaches by the NIC, and perhaps one for those of its host.
Credits are the conduit's: a transport is never given more than two messages per credit and peer
that it has not delivered, and one for each round of the exit.

All calls but `poll` come with the NIC's lock held; `poll` takes it, and lets go of it while it
delivers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from ompy_components.conduit.gni import headers

Deliver = Callable[[int, memoryview], None]
Credited = Callable[[int, int], None]


class Transport:
    """Carries messages, in the order they were given, peer by peer.

    Attributes:
        name: what it is, in a trace.
        max_message: bytes of a message, header included.
        max_packed: the same of a LONG that brings its bytes along.
        deliver: what `poll` calls with who sent it and each message. It has its place no more by
            then: whoever is called may send and poll. The bytes stay as they are meanwhile.
        credited: what `poll` calls when a peer has given credits back by other means.
    """

    name: ClassVar[str]
    max_message: int
    max_packed: int
    deliver: Deliver
    credited: Credited

    def send(self, node: int, message: bytearray) -> bool:
        """Begin to send; the message is the transport's from now on.

        Returns:
            Whether it could. If not nothing has happened, and it is tried again in a later poll.
        """
        raise NotImplementedError

    def return_credit(self, node: int) -> bool:
        """Give a peer a credit back, as its handler here has not replied.

        Returns:
            As `send`. True also where it is kept, to go along with something else.
        """
        return self.send(node, headers.credit_message())

    def returning(self, node: int) -> int:
        """How many credits the next `return_credit` gives back: none where it only keeps one."""
        return 1

    def tell_exit(self, node: int, shift: int, code: int) -> bool:
        """Send a peer what a round of the exit tells. Returns as `send`."""
        return self.send(node, headers.shutdown(shift, code))

    def poll(self) -> int:
        """Deliver what has come, a bounded amount. Returns how much was done."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Whether there is something to do, so that the rank must not sleep. News wake it."""
        raise NotImplementedError

    def expects(self) -> bool:
        """Whether something is to be looked for again soon, though nothing will wake the rank."""
        return False

    def waiting(self) -> list[str]:
        """What it expects, in words (`Conduit.waiting`)."""
        return []

    def close(self) -> None:
        """Give everything back."""
        raise NotImplementedError
