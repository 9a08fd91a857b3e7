"""Matching: which arriving message goes to which posted receive.

One `Matching` per communicator, one `PeerQueue` in it per source that was heard of. Messages
of one sender match in the order they were sent, whatever rail they came over: each carries a
sequence number, and what arrives early waits. Of the posted receives that fit, the one
posted first wins, wildcard or not.

Pure: no clock, no network. Source: reference openmpi.md 3.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import U64, ccall, cclass, cfunc, recycled
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import Convertor
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import MatchedMessage
from ompy.frameworks.proc import Proc
from ompy.trace.tag_names import tag_text

from ompy_components.pml.ob1.flow import Flow, PeerFlow
from ompy_components.pml.ob1.fragment import Fragment
from ompy_components.pml.ob1.headers import SEQUENCE_MASK
from ompy_components.pml.ob1.states import Event, ReceiveState, State, next_state
from ompy_components.pml.ob1.unexpected import SCANNED, UnexpectedQueue

if TYPE_CHECKING:
    from ompy_components.pml.ob1.rendezvous.rdma_put import Incoming
    from ompy_components.pml.ob1.selection import Protocol


_POSTED: Final = ReceiveState.POSTED  # every message asks for it


@recycled
@cclass
class Message(MatchedMessage):
    """A fragment taken out of matching by a matched probe."""

    communicator: Communicator
    fragment: Fragment
    __slots__ = tuple(__annotations__)


@ccall
def taken_message(communicator: Communicator, fragment: Fragment) -> Message:
    """What a matched probe has taken. Made without a constructor's cost."""
    made: Message = Message.__new__(Message)
    made.communicator = communicator
    made.fragment = fragment
    made.source = fragment.source
    made.tag = fragment.tag
    made.length = fragment.length
    return made


@recycled
@cclass
class RecvRequest(Request):
    """A posted receive.

    Attributes:
        communicator: it was posted in.
        convertor: where the message goes.
        wanted_source: a rank, or ANY_SOURCE.
        wanted_tag: a tag, or ANY_TAG.
        posted: its place in the order of posting.
        queued: it is in a queue of posted receives, which nothing has matched.
        before, after: its neighbours there.
        before_of_tag, after_of_tag: those that want the same tag; set where there is an index.
        arrived: bytes of the message that have arrived (rendezvous).
        protocol: the message takes, as this side decided (rendezvous).
        incoming: what comes by RDMA (rendezvous), or None.
        peer_request: the sender's request id (rendezvous).
        state: of the rendezvous.
        id: in the table of receives that peers answer to; 0 while it is not in it.
        sequence: of the message, once matched.
    """

    after: RecvRequest | None
    after_of_tag: RecvRequest | None
    arrived: int
    before: RecvRequest | None
    before_of_tag: RecvRequest | None
    communicator: Communicator
    convertor: Convertor
    id: U64
    incoming: Incoming | None
    peer_request: U64
    posted: U64
    protocol: Protocol | None
    queued: bool
    sequence: int
    state: State
    wanted_source: int
    wanted_tag: int
    __slots__ = tuple(__annotations__)

    @cfunc
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
        self.queued = False
        self.arrived = 0
        self.state = _POSTED
        self.id = 0
        self.sequence = 0

    @ccall
    def open_rendezvous(self, id: U64, peer_request: U64) -> None:  # noqa: A002 - its name
        """Get ready for what comes behind the first fragment, under `id`."""
        self.id = id
        self.peer_request = peer_request
        self.protocol = None
        self.incoming = None

    @ccall
    def advance(self, table: dict[State, dict[Event, State]], event: Event) -> None:
        """The state after `event`; an event that cannot be is an error with the story."""
        self.state = next_state(table, self.state, event, self)

    @ccall
    def is_here(self) -> bool:
        """Whether all bytes have arrived, and all that was asked for has been told of (3.2.5).

        FRAGs may overtake the FIN that tells why they come: it is waited for too.
        """
        if self.arrived < self.length:
            return False
        incoming: Incoming | None = self.incoming
        return incoming is None or not incoming.outstanding

    def story(self) -> str:
        """What is known of it, for messages to people."""
        if not self.id:
            return repr(self)
        return (
            f"receive {self.id} from rank {self.source} with {tag_text(self.tag)} in "
            f"{self.communicator.name}: {self.arrived} of {self.length} bytes"
        )

    def __repr__(self) -> str:
        """What it was posted for: the virtual world names it when all ranks wait."""
        wanted = self.wanted_source
        source = "any rank" if wanted == ANY_SOURCE else f"rank {wanted}"
        return f"receive from {source} with {tag_text(self.wanted_tag)} in {self.communicator.name}"


@ccall
def receive_request(
    communicator: Communicator, convertor: Convertor, source: int, tag: int
) -> RecvRequest:
    """A receive to be posted. Made without `__init__`, which costs compiled callers the most."""
    made: RecvRequest = RecvRequest.__new__(RecvRequest)
    made.prepare(communicator, convertor, source, tag)
    return made


@cclass
class ReceiveQueue:
    """Posted receives that nothing has matched, in the order of posting.

    A few are looked through: mostly the first one fits. Once that many were looked at in vain and
    there are more, each tag has a line of its own, too, so that none is found in more than a step.

    Attributes:
        passed: looked at in vain by `find`; the first one to fit costs nothing.
    """

    _count: int
    _first: RecvRequest | None
    _firsts: dict[int, RecvRequest] | None
    _last: RecvRequest | None
    _lasts: dict[int, RecvRequest] | None
    passed: U64
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._count = 0
        self.passed = 0
        self._first = None
        self._last = None
        # the first and the last that want each tag, once `SCANNED` were looked at in vain
        self._firsts = None
        self._lasts = None

    @ccall
    def append(self, request: RecvRequest) -> None:
        """Put one behind all others."""
        request.queued = True
        self._count += 1
        last: RecvRequest | None = self._last
        self._last = request
        if last is None:  # mostly there is no other: its neighbours are not looked at
            self._first = request
            return
        if last is self._first:
            last.before = None
        last.after = request
        request.before = last
        request.after = None
        if self._firsts is not None:
            self._index(request)

    @ccall
    def find(self, tag: int) -> RecvRequest | None:
        """The first that takes a message with `tag`; it stays."""
        if self._firsts is not None:
            return self._indexed(tag)
        looked: int = 0
        request: RecvRequest | None = self._first
        while request is not None and not fits(request.wanted_tag, tag):
            looked += 1
            if looked > SCANNED:
                return self._indexed(tag)
            self.passed += 1
            request = request.after if request is not self._last else None
        return request

    @cfunc
    def _indexed(self, tag: int) -> RecvRequest | None:
        if self._firsts is None:
            self._index_all()
        assert self._firsts is not None
        exact: RecvRequest | None = self._firsts.get(tag)
        if not fits(ANY_TAG, tag):
            return exact
        wild: RecvRequest | None = self._firsts.get(ANY_TAG)
        if exact is None or (wild is not None and wild.posted < exact.posted):
            return wild
        return exact

    @ccall
    def remove(self, request: RecvRequest) -> bool:
        """Take one out; false when it is in none, having been matched."""
        if not request.queued:
            return False
        request.queued = False
        self._count -= 1
        if self._count:
            self._unlink(request)
        else:
            self._first = self._last = None
        if self._firsts is not None:
            self._unindex(request)
        return True

    @cfunc
    def _unlink(self, request: RecvRequest) -> None:
        """Take one out of several."""
        before: RecvRequest | None = request.before
        after: RecvRequest | None = request.after
        if before is None:
            self._first = after
        else:
            before.after = after
        if after is None:
            self._last = before
        else:
            after.before = before
        request.before = request.after = None  # no circle keeps it

    @ccall
    def members(self) -> list[RecvRequest]:
        """All of them."""
        found = []
        request: RecvRequest | None = self._first
        while request is not None:
            found.append(request)
            request = request.after if request is not self._last else None
        return found

    @cfunc
    def _index_all(self) -> None:
        self._firsts, self._lasts = {}, {}
        request: RecvRequest | None = self._first
        while request is not None:
            self._index(request)
            request = request.after if request is not self._last else None

    @cfunc
    def _index(self, request: RecvRequest) -> None:
        firsts: dict[int, RecvRequest] | None = self._firsts
        lasts: dict[int, RecvRequest] | None = self._lasts
        assert firsts is not None
        assert lasts is not None
        last: RecvRequest | None = lasts.get(request.wanted_tag)
        request.before_of_tag = last
        request.after_of_tag = None
        if last is None:
            firsts[request.wanted_tag] = request
        else:
            last.after_of_tag = request
        lasts[request.wanted_tag] = request

    @cfunc
    def _unindex(self, request: RecvRequest) -> None:
        firsts: dict[int, RecvRequest] | None = self._firsts
        lasts: dict[int, RecvRequest] | None = self._lasts
        assert firsts is not None
        assert lasts is not None
        tag = request.wanted_tag
        before: RecvRequest | None = request.before_of_tag
        after: RecvRequest | None = request.after_of_tag
        if before is not None:
            before.after_of_tag = after
        elif after is not None:
            firsts[tag] = after
        else:
            del firsts[tag]
        if after is not None:
            after.before_of_tag = before
        elif before is not None:
            lasts[tag] = before
        else:
            del lasts[tag]
        request.before_of_tag = request.after_of_tag = None
        if not self._count:
            self._firsts = self._lasts = None


@cclass
class PeerQueue:
    """What one source has to do with one communicator.

    Attributes:
        flow: of the process that it is.
        expected: sequence number of the next message to match.
        sent: sequence number of the last message to it.
        posted: receives that name this source, in the order of posting.
        unexpected: messages in order that no receive fitted.
        early: messages that arrived ahead of their order, by sequence number.
    """

    early: dict[int, Fragment]
    expected: int
    flow: PeerFlow
    posted: ReceiveQueue
    sent: int
    unexpected: UnexpectedQueue
    __slots__ = tuple(__annotations__)

    def __init__(self, flow: PeerFlow) -> None:
        self.flow = flow
        self.expected = 1  # reference openmpi.md 3.1: starts at 1, the sender increments first
        self.sent = 0
        self.posted = ReceiveQueue()
        self.unexpected = UnexpectedQueue()
        self.early = {}

    @ccall
    def next_sequence(self) -> int:
        """The sequence number of the next message to this rank."""
        self.sent = (self.sent + 1) & SEQUENCE_MASK
        return self.sent

    @ccall
    def held(self) -> list[Fragment]:
        """What has come from it and was not received."""
        return [*self.unexpected.members(), *self.early.values()]


@cclass
class Matching:
    """Matching state of one communicator.

    Attributes:
        communicator: whose.
        wild: receives from ANY_SOURCE, in the order of posting.
    """

    _flow: Flow
    _last_probed: int
    _peers: list[PeerQueue | None]
    _posted: U64
    communicator: Communicator
    wild: ReceiveQueue
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator, flow: Flow) -> None:
        self.communicator = communicator
        self._flow = flow
        self.wild = ReceiveQueue()
        self._peers = [None] * communicator.size
        self._posted = 0
        self._last_probed = -1

    @ccall
    def peer(self, rank: int) -> PeerQueue:
        """The queue of a rank, made on first use."""
        queue: PeerQueue | None = self._peers[rank]
        if queue is None:
            queue = PeerQueue(self._flow.peer(self.communicator.procs[rank]))
            self._peers[rank] = queue
        return queue

    @ccall
    def known_peer(self, rank: int) -> PeerQueue | None:
        """The queue of a rank that was heard of, sent to or waited for."""
        return self._peers[rank]

    @ccall
    def waits_for(self, rank: int) -> bool:
        """Whether a receive is posted that names a rank."""
        queue: PeerQueue | None = self._peers[rank]
        return queue is not None and len(queue.posted.members()) > 0

    def posted_with(self, rank: int, tag: int) -> list[RecvRequest]:
        """The receives posted for messages of a rank with exactly this tag."""
        queue = self._peers[rank]
        posted = queue.posted.members() if queue is not None else []
        return [request for request in posted if request.wanted_tag == tag]

    @ccall
    def posted(self) -> list[RecvRequest]:
        """All receives that nothing has matched."""
        found: list[RecvRequest] = self.wild.members()
        queue: PeerQueue
        for queue in self.peers():
            found += queue.posted.members()
        return found

    @ccall
    def has_peers(self) -> bool:
        """Whether any rank was heard of, sent to or waited for."""
        queue: PeerQueue | None
        for queue in self._peers:  # noqa: SIM110 - no closures where this is compiled
            if queue is not None:
                return True
        return False

    def peers(self) -> list[PeerQueue]:
        """The queues of all ranks that were heard of or sent to."""
        return [queue for queue in self._peers if queue is not None]

    @ccall
    def count_passed(self) -> int:
        """How many receives and messages were looked at in vain."""
        found = self.wild.passed
        queue: PeerQueue
        for queue in self.peers():
            found += queue.posted.passed + queue.unexpected.count_passed()
        return found

    def unmatched(self) -> list[Fragment]:
        """Messages that are here and that no receive has taken, early ones among them."""
        found: list[Fragment] = []
        for queue in self.peers():
            found += queue.held()
        return found

    @ccall
    def post(self, request: RecvRequest) -> Fragment | None:
        """Match a receive with an unexpected message, or queue it.

        Returns:
            The message, no longer unexpected; or None when the receive was queued.
        """
        fragment: Fragment | None = self.take(request.wanted_source, request.wanted_tag)
        if fragment is not None:
            return fragment
        self._posted += 1
        request.posted = self._posted
        if request.wanted_source == ANY_SOURCE:
            self.wild.append(request)
        else:
            self.peer(request.wanted_source).posted.append(request)
        return None

    @ccall
    def claim(self, queue: PeerQueue, tag: int) -> RecvRequest | None:
        """Take the receive that a message of this source with this tag goes to, or None."""
        specific: RecvRequest | None = queue.posted.find(tag)
        wild: RecvRequest | None = self.wild.find(tag)
        if specific is not None and (wild is None or specific.posted < wild.posted):
            queue.posted.remove(specific)
            return specific
        if wild is not None:
            self.wild.remove(wild)
        return wild

    @ccall
    def peek(self, source: int, tag: int) -> Fragment | None:
        """The unexpected message a receive would get; it stays where it is."""
        return self._find(source, tag, False)

    @ccall
    def take(self, source: int, tag: int) -> Fragment | None:
        """The unexpected message a receive would get, taken out."""
        return self._find(source, tag, True)

    @ccall
    def cancel(self, request: RecvRequest) -> bool:
        """Take a receive out of the queues; false when it is matched already."""
        if request.wanted_source == ANY_SOURCE:
            return self.wild.remove(request)
        return self.peer(request.wanted_source).posted.remove(request)

    @ccall
    def forget_source(self, proc: Proc) -> list[RecvRequest]:
        """Take out every receive that names `proc` as its source."""
        gone: list[RecvRequest] = []
        for rank, other in enumerate(self.communicator.procs):
            queue = self._peers[rank]
            if other is proc and queue is not None:
                for request in queue.posted.members():
                    queue.posted.remove(request)
                    gone.append(request)
        return gone

    @cfunc
    def _find(self, source: int, tag: int, remove: bool) -> Fragment | None:
        if source != ANY_SOURCE:
            queue: PeerQueue | None = self._peers[source]
            if queue is None or not queue.unexpected.count:
                return None
            return _unexpected(queue, tag, remove)
        # round-robin from the source behind the last one found, so that none starves
        size: int = len(self._peers)
        step: int
        for step in range(1, size + 1):
            rank: int = (self._last_probed + step) % size
            queue = self._peers[rank]
            if queue is not None and queue.unexpected.count:
                fragment: Fragment | None = _unexpected(queue, tag, remove)
                if fragment is not None:
                    self._last_probed = rank
                    return fragment
        return None


@ccall
def fits(wanted: int, tag: int) -> bool:
    """Whether a receive for tag `wanted` takes a message with `tag`.

    ANY_TAG takes users' tags only: the negative ones are internal.
    """
    return wanted == tag or (wanted == ANY_TAG and tag >= 0)


@cfunc
def _unexpected(queue: PeerQueue, tag: int, remove: bool) -> Fragment | None:
    fragment: Fragment | None = queue.unexpected.find(tag)
    if fragment is not None and remove:
        queue.unexpected.remove(fragment)
    return fragment
