"""Matching: which arriving message goes to which posted receive.

One `Matching` per communicator, one `PeerQueue` in it per source that was heard of. Messages
of one sender match in the order they were sent, whatever rail they came over: each carries a
sequence number, and what arrives early waits. Of the posted receives that fit, the one
posted first wins, wildcard or not.

Pure: no clock, no network. Source: reference openmpi.md 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import Convertor
from ompy.data.request import Request
from ompy.frameworks.btl import BtlModule
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import MatchedMessage
from ompy.frameworks.proc import Proc

from ompy_components.pml.ob1.headers import SEQUENCE_MASK
from ompy_components.pml.ob1.states import ReceiveState

if TYPE_CHECKING:
    from ompy_components.pml.ob1.rdma_put import Incoming
    from ompy_components.pml.ob1.selection import Protocol


_POSTED: Final = ReceiveState.POSTED  # every message asks for it


class RemoteMemory:
    """What a RGET says of the sender's memory.

    Attributes:
        module: that it came over, and that can get.
        fragment_id: the sender's, for the FINs.
        address: of the message, in the memory registered there; negative when that begins later.
        handle: of that memory.
        others: names of other rails, each with the handle there.
    """

    __slots__ = ("address", "fragment_id", "handle", "module", "others")

    module: BtlModule
    fragment_id: int
    address: int
    handle: bytes
    others: list[tuple[bytes, bytes]]


class Fragment:
    """A message that arrived before its receive, with its first bytes.

    Attributes:
        kind: header type, MATCH, RNDV or RGET.
        flags: of the header.
        source: sender's rank in the communicator.
        tag: of the message.
        sequence: of the message.
        length: bytes of the whole message.
        sender_request: the sender's request id (RNDV, RGET).
        payload: its first bytes; our own copy once `keep` was called.
        remote: the sender's memory (RGET), or None.
    """

    __slots__ = (
        "flags",
        "kind",
        "length",
        "payload",
        "remote",
        "sender_request",
        "sequence",
        "source",
        "tag",
    )

    kind: int
    flags: int
    source: int
    tag: int
    sequence: int
    length: int
    sender_request: int
    payload: bytes | memoryview
    remote: RemoteMemory | None

    def keep(self) -> None:
        """Have the payload outlive the BTL's memory that it arrived in."""
        self.payload = bytes(self.payload)


def fragment_of(
    kind: int,
    flags: int,
    source: int,
    tag: int,
    sequence: int,
    length: int,
    sender_request: int,
    payload: bytes | memoryview,
) -> Fragment:
    """A fragment without remote memory. No `__init__`: it costs compiled callers the most."""
    made = Fragment.__new__(Fragment)
    made.kind = kind
    made.flags = flags
    made.source = source
    made.tag = tag
    made.sequence = sequence
    made.length = length
    made.sender_request = sender_request
    made.payload = payload
    made.remote = None
    return made


class Message(MatchedMessage):
    """A fragment taken out of matching by a matched probe."""

    __slots__ = ("communicator", "fragment")

    def __init__(self, communicator: Communicator, fragment: Fragment) -> None:
        self.communicator = communicator
        self.fragment = fragment
        self.source = fragment.source
        self.tag = fragment.tag
        self.length = fragment.length


class RecvRequest(Request):
    """A posted receive.

    Attributes:
        communicator: it was posted in.
        convertor: where the message goes.
        wanted_source: a rank, or ANY_SOURCE.
        wanted_tag: a tag, or ANY_TAG.
        posted: its place in the order of posting.
        arrived: bytes of the message that have arrived (rendezvous).
        protocol: the message takes, as this side decided (rendezvous).
        incoming: what comes by RDMA (rendezvous), or None.
        peer_request: the sender's request id (rendezvous).
        state: of the rendezvous.
        id: in the table of receives that peers answer to; 0 while it is not in it.
        sequence: of the message, once matched.
    """

    __slots__ = (
        "arrived",
        "communicator",
        "convertor",
        "id",
        "incoming",
        "peer_request",
        "posted",
        "protocol",
        "sequence",
        "state",
        "wanted_source",
        "wanted_tag",
    )

    def prepare(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> None:
        """Set what a receive begins with."""
        self.reset()
        self.communicator = communicator
        self.convertor = convertor
        self.wanted_source = source
        self.wanted_tag = tag
        self.posted = 0
        self.arrived = 0
        self.state = _POSTED
        self.id = 0
        self.sequence = 0

    def open_rendezvous(self, id: int, peer_request: int) -> None:  # noqa: A002 - its name
        """Get ready for what comes behind the first fragment, under `id`."""
        self.id = id
        self.peer_request = peer_request
        self.protocol: Protocol | None = None
        self.incoming: Incoming | None = None

    def story(self) -> str:
        """What is known of it, for messages to people."""
        if not self.id:
            return repr(self)
        return (
            f"receive {self.id} from rank {self.source} tag {self.tag} in "
            f"{self.communicator.name}: {self.arrived} of {self.length} bytes"
        )

    def __repr__(self) -> str:
        """What it was posted for: the virtual world names it when all ranks wait."""
        wanted = self.wanted_source
        source = "any rank" if wanted == ANY_SOURCE else f"rank {wanted}"
        return f"receive from {source} with {tag_text(self.wanted_tag)} in {self.communicator.name}"


def receive_request(
    communicator: Communicator, convertor: Convertor, source: int, tag: int
) -> RecvRequest:
    """A receive to be posted. Made without `__init__`, which costs compiled callers the most."""
    made = RecvRequest.__new__(RecvRequest)
    made.prepare(communicator, convertor, source, tag)
    return made


class ReceiveQueue:
    """Posted receives that nothing has matched, in the order of posting.

    The first has a place of its own: mostly there is no other, and a list that goes from empty to
    one and back asks for memory each time.
    """

    __slots__ = ("_first", "_others")

    def __init__(self) -> None:
        self._first: RecvRequest | None = None
        self._others: list[RecvRequest] = []

    def append(self, request: RecvRequest) -> None:
        """Put one behind all others."""
        if self._first is None:
            self._first = request
        else:
            self._others.append(request)

    def find(self, tag: int) -> RecvRequest | None:
        """The first that takes a message with `tag`; it stays."""
        first = self._first
        if first is None or fits(first.wanted_tag, tag):
            return first
        for request in self._others:
            if fits(request.wanted_tag, tag):
                return request
        return None

    def remove(self, request: RecvRequest) -> bool:
        """Take one out; false when it is not here."""
        if request is not self._first:
            for index, other in enumerate(self._others):
                if other is request:
                    del self._others[index]
                    return True
            return False
        self._first = self._others.pop(0) if self._others else None
        return True

    def members(self) -> list[RecvRequest]:
        """All of them."""
        return [self._first, *self._others] if self._first is not None else []


class PeerQueue:
    """What one source has to do with one communicator.

    Attributes:
        expected: sequence number of the next message to match.
        sent: sequence number of the last message sent to it.
        posted: receives that name this source, in the order of posting.
        unexpected: messages in order that no receive fitted.
        early: messages that arrived ahead of their order, by sequence number.
    """

    __slots__ = ("early", "expected", "posted", "sent", "unexpected")

    def __init__(self) -> None:
        self.expected = 1  # reference openmpi.md 3.1: starts at 1, the sender increments first
        self.sent = 0
        self.posted = ReceiveQueue()
        self.unexpected: list[Fragment] = []
        self.early: dict[int, Fragment] = {}


class Matching:
    """Matching state of one communicator.

    Attributes:
        communicator: whose.
        wild: receives from ANY_SOURCE, in the order of posting.
    """

    __slots__ = ("_last_probed", "_peers", "_posted", "communicator", "wild")

    def __init__(self, communicator: Communicator) -> None:
        self.communicator = communicator
        self.wild = ReceiveQueue()
        self._peers: list[PeerQueue | None] = [None] * communicator.size
        self._posted = 0
        self._last_probed = -1

    def peer(self, rank: int) -> PeerQueue:
        """The queue of a rank, made on first use."""
        queue = self._peers[rank]
        if queue is None:
            queue = PeerQueue()
            self._peers[rank] = queue
        return queue

    def peers(self) -> list[PeerQueue]:
        """The queues of all ranks that were heard of or sent to."""
        return [queue for queue in self._peers if queue is not None]

    def next_sequence(self, target: int) -> int:
        """The sequence number of the next message to `target`."""
        queue = self.peer(target)
        queue.sent = (queue.sent + 1) & SEQUENCE_MASK
        return queue.sent

    def post(self, request: RecvRequest) -> Fragment | None:
        """Match a receive with an unexpected message, or queue it.

        Returns:
            The message, no longer unexpected; or None when the receive was queued.
        """
        fragment = self.take(request.wanted_source, request.wanted_tag)
        if fragment is not None:
            return fragment
        self._posted += 1
        request.posted = self._posted
        if request.wanted_source == ANY_SOURCE:
            self.wild.append(request)
        else:
            self.peer(request.wanted_source).posted.append(request)
        return None

    def claim(self, queue: PeerQueue, tag: int) -> RecvRequest | None:
        """Take the receive that a message of this source with this tag goes to, or None."""
        specific = queue.posted.find(tag)
        wild = self.wild.find(tag)
        if specific is not None and (wild is None or specific.posted < wild.posted):
            queue.posted.remove(specific)
            return specific
        if wild is not None:
            self.wild.remove(wild)
        return wild

    def peek(self, source: int, tag: int) -> Fragment | None:
        """The unexpected message a receive would get; it stays where it is."""
        return self._find(source, tag, False)

    def take(self, source: int, tag: int) -> Fragment | None:
        """The unexpected message a receive would get, taken out."""
        return self._find(source, tag, True)

    def cancel(self, request: RecvRequest) -> bool:
        """Take a receive out of the queues; false when it is matched already."""
        if request.wanted_source == ANY_SOURCE:
            return self.wild.remove(request)
        return self.peer(request.wanted_source).posted.remove(request)

    def forget_source(self, proc: Proc) -> list[RecvRequest]:
        """Take out every receive that names `proc` as its source."""
        gone: list[RecvRequest] = []
        for rank, other in enumerate(self.communicator.procs):
            queue = self._peers[rank]
            if other is proc and queue is not None:
                gone += queue.posted.members()
                queue.posted = ReceiveQueue()
        return gone

    def _find(self, source: int, tag: int, remove: bool) -> Fragment | None:
        if source != ANY_SOURCE:
            queue = self._peers[source]
            return _unexpected(queue, tag, remove) if queue is not None else None
        # round-robin from the source behind the last one found, so that none starves
        size = len(self._peers)
        for step in range(1, size + 1):
            rank = (self._last_probed + step) % size
            queue = self._peers[rank]
            if queue is not None and queue.unexpected:
                fragment = _unexpected(queue, tag, remove)
                if fragment is not None:
                    self._last_probed = rank
                    return fragment
        return None


def tag_text(tag: int) -> str:
    """A tag as people know it; the negative ones are internal."""
    if tag == ANY_TAG:
        return "any tag"
    return f"tag {tag}" if tag >= 0 else f"tag {tag} (of a collective)"


def fits(wanted: int, tag: int) -> bool:
    """Whether a receive for tag `wanted` takes a message with `tag`.

    ANY_TAG takes users' tags only: the negative ones are internal.
    """
    return wanted == tag or (wanted == ANY_TAG and tag >= 0)


def _unexpected(queue: PeerQueue, tag: int, remove: bool) -> Fragment | None:
    index = 0
    for fragment in queue.unexpected:
        if fits(tag, fragment.tag):
            if remove:
                del queue.unexpected[index]
            return fragment
        index += 1  # noqa: SIM113 - enumerate costs a tuple a turn when this is compiled
    return None
