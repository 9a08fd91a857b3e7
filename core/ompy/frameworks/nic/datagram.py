"""The datagram interface of a NIC: queue pairs that send and receive unreliable messages.

    DatagramNic --domain()--> Domain --register()--------> Registration
    (a fabric,               (a VF)  --completion_queue()-> CompletionQueue
     a PF of a VIC)                  --queue_pair()-------> QueuePair (an endpoint)

**Work** is posted to a queue pair and is done some time later; a completion in the queue's
completion queue says so, once for each post. A queue has as many entries as it was made with:
posting to a full one is an error of the caller, who counts.

**Memory.** A buffer that is posted belongs to the device until its completion has been read.
It has to lie in registered memory, except that of an inline send: those bytes are in the work
entry itself and the caller has them back when `post_send` returns.

**Doorbell.** Work posted with `more` may stay in the queue until `ring` or until work is posted
without it: a device takes many entries at once more cheaply than one at a time.

**Unreliable**: a message may be lost, repeated or overtaken, and altered where the wire has no
checksum. One for which no receive buffer is posted is lost; a device that knows counts it.
That a send completed means that the device has let go of the buffer, and nothing else.

Source: seed usnic (channels, libfabric abstractions); reference usnic.md 3, 20.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from ompy.compiled import ccall, cclass, recycled
from ompy.frameworks.nic.base import Nic
from ompy.net.base import Address


class Work(Enum):
    """What a completion is of."""

    SEND = "send"
    RECEIVE = "receive"


class Status(Enum):
    """How a piece of work ended."""

    OK = "ok"
    TRUNCATED = "truncated"
    LINK_DOWN = "link down"
    FLUSHED = "flushed"


# a name of a module is found faster than one of an enumeration
SENT: Final = Work.SEND
RECEIVED: Final = Work.RECEIVE
OK: Final = Status.OK


@recycled
@cclass
class Completion:
    """A piece of work that is done.

    Attributes:
        work: send or receive.
        status: how it ended; what is not OK has carried nothing that can be used.
        context: what the work was posted with.
        size: bytes received; of a send, bytes handed to the device.
        source: who sent it, where the device tells; None for a send.
    """

    context: object
    size: int
    source: Address | None
    status: Status
    work: Work
    __slots__ = tuple(__annotations__)

    def __init__(
        self, work: Work, status: Status, context: object, size: int, source: Address | None
    ) -> None:
        self.work = work
        self.status = status
        self.context = context
        self.size = size
        self.source = source

    def __repr__(self) -> str:
        return (
            f"Completion(work={self.work!r}, status={self.status!r}, context={self.context!r}, "
            f"size={self.size}, source={self.source!r})"
        )


@ccall
def completion(
    work: Work, status: Status, context: object, size: int, source: Address | None
) -> Completion:
    """A completion, for those who make many."""
    made: Completion = Completion.__new__(Completion)
    made.work = work
    made.status = status
    made.context = context
    made.size = size
    made.source = source
    return made


class Registration:
    """Memory the device may use, until `close`.

    Attributes:
        memory: which.
    """

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory

    def close(self) -> None:
        """Take the memory back. No work may be posted in it."""


@cclass
class CompletionQueue:
    """Where queue pairs report what is done."""

    __slots__ = ()

    @ccall
    def read(self, most: int) -> list[Completion]:
        """Up to `most` completions, oldest first; makes the device look for news.

        Raises:
            NicError: the device is gone.
        """
        raise NotImplementedError

    @ccall
    def ready(self) -> bool:
        """Whether `read` would find something now. A rank that sleeps is woken by news."""
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; its queue pairs are closed already."""
        raise NotImplementedError


@cclass
class QueuePair:
    """A send queue and a receive queue with an address.

    Attributes:
        address: where peers send to.
        send_depth: work entries of the send queue.
        receive_depth: work entries of the receive queue.
        max_message: bytes of one message at most.
        inline_max: bytes an inline send has room for.
        dropped: messages for which no receive buffer was posted, as far as the device knows.
    """

    address: Address
    inline_max: int
    max_message: int
    receive_depth: int
    send_depth: int
    __slots__ = tuple(__annotations__)
    dropped = 0

    def post_send(
        self,
        message: memoryview,
        to: Address,
        context: object,
        *,
        inline: bool = False,
        more: bool = False,
    ) -> None:
        """Send one message.

        Args:
            message: its bytes; registered memory unless `inline`.
            to: address of the peer's queue pair.
            context: the caller's own, handed back in the completion.
            inline: copy the bytes now; at most `inline_max`.
            more: other work follows at once, so the doorbell can wait.

        Raises:
            NicError: the queue is full, the message too long, or the device gone.
        """
        raise NotImplementedError

    @ccall
    def post_receive(self, buffer: memoryview, context: object) -> None:
        """Give the device a buffer for one message.

        Raises:
            NicError: the queue is full, or the device gone.
        """
        raise NotImplementedError

    @ccall
    def ring(self) -> None:
        """The doorbell: the device takes what has been posted."""
        raise NotImplementedError

    def close(self) -> None:
        """Flush: work under way completes as FLUSHED, messages that come are lost."""
        raise NotImplementedError


@cclass
class Domain:
    """The resources of one device that this process has (a virtual function)."""

    __slots__ = ()

    def register(self, memory: memoryview) -> Registration:
        """Let the device use `memory`, which the caller keeps."""
        raise NotImplementedError

    def completion_queue(self, depth: int) -> CompletionQueue:
        """A completion queue with room for `depth` completions.

        Raises:
            NicError: the device has no room for it.
        """
        raise NotImplementedError

    def queue_pair(
        self,
        queue: CompletionQueue,
        send_depth: int,
        receive_depth: int,
        max_message: int,
        *,
        port: int = 0,
    ) -> QueuePair:
        """A queue pair that reports to `queue`.

        Args:
            queue: of this domain; it has room for both depths.
            send_depth: entries of the send queue.
            receive_depth: entries of the receive queue.
            max_message: bytes of one message at most; not more than the device's.
            port: that peers send to; 0 for any.

        Raises:
            NicError: the device has no room for it, no such message size, or the port is taken.
        """
        raise NotImplementedError


class DatagramNic(Nic):
    """A NIC with queue pairs for datagrams.

    Attributes:
        mtu: bytes of one packet of the wire, headers included.
        max_message: bytes of one message at most.
        depth_max: work entries a queue may have.

    All three are known once the device is open.
    """

    mtu: int
    max_message: int
    depth_max: int

    def domain(self) -> Domain:
        """This process's share of the device, which is open; the same each time."""
        raise NotImplementedError
