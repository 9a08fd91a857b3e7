"""How far a sender may be ahead of a receiver: a window of messages, and credit of bytes.

Both are between two processes, whatever the communicators. The receiver tells in CREDIT how many
first fragments it has *taken* in order, matched or not, and how many bytes it has given *back* by
delivering to receives. The counts only grow and never wrap, so one that comes late, twice or not
at all does no harm. The README of this component has the contract.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import ccall, cclass, cfunc
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.frameworks.pml import BUFFERED
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.pml.ob1.component import WINDOW_MOST
from ompy_components.pml.ob1.fragment import Fragment
from ompy_components.pml.ob1.headers import (
    CREDIT,
    CREDIT_SIZE,
    FLAG_ASK,
    FLAG_BARE,
    SEQUENCES,
    check,
    credit_words,
)
from ompy_components.pml.ob1.sendrequest import SendRequest

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

MESSAGE_COST: Final = 64  # bytes; arbitrary: some of what a message takes beside its payload
# bytes of a payload that are counted; arbitrary: the largest eager limit of our BTLs. What is sent
# again over another rail may be a RNDV in place of a MATCH, and has to count the same
PAYLOAD_MOST: Final = 128 * 1024
assert WINDOW_MOST * 2 < SEQUENCES // 2, "what is ahead and what is behind can be told apart"
_COST: Final = MESSAGE_COST
_MOST: Final = PAYLOAD_MOST
_NO_LIMIT: Final = 1 << 62  # arbitrary: more than is ever sent


@cclass
class PeerFlow:
    """What one process may be sent, and what it is to be told.

    Attributes:
        proc: the process.
        sent: messages for it that have a number, those that wait among them.
        sent_max: how many it may be sent.
        spent: bytes counted of those that were sent.
        spent_max: how many may be counted.
        waiting: messages that the window is too full for.
        polled: something looks after these.
        taken: messages from it that were taken in order, or had no communicator yet.
        taken_next: when it is told the next time.
        taken_step: how often.
        back: bytes given back.
        back_next: when it is told the next time.
        back_step: how often.
        orphans: messages that had no communicator when they came.
    """

    back: int
    back_next: int
    back_step: int
    orphans: int
    polled: bool
    proc: Proc
    sent: int
    sent_max: int
    spent: int
    spent_max: int
    taken: int
    taken_next: int
    taken_step: int
    waiting: deque[SendRequest]
    __slots__ = tuple(__annotations__)

    def __init__(self, proc: Proc) -> None:
        self.proc = proc
        self.sent = self.spent = 0
        self.sent_max = self.spent_max = 0
        self.waiting = deque()
        self.polled = False
        self.taken = self.back = self.orphans = 0
        self.taken_next = self.back_next = self.taken_step = self.back_step = 0


@cclass
class Flow:
    """The flow of one rank's messages.

    Attributes:
        peers: the processes that were heard of or sent to.
        window: messages that a sender may be ahead.
    """

    _bytes: int
    _ob1: Ob1
    peers: dict[Proc, PeerFlow]
    window: int
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, values: Values) -> None:
        self._ob1 = ob1
        self.window = values.message_window
        self._bytes = values.unexpected_bytes or _NO_LIMIT
        self.peers = {}

    @ccall
    def peer(self, proc: Proc) -> PeerFlow:
        """The flow to and from a process, made on first use."""
        peer: PeerFlow | None = self.peers.get(proc)
        if peer is None:
            peer = self.peers[proc] = PeerFlow(proc)
            peer.sent_max, peer.spent_max = self.window, self._bytes
            self._pace(peer, self.window)
            peer.taken_next, peer.back_next = peer.taken_step, peer.back_step
        return peer

    @cfunc
    def _pace(self, peer: PeerFlow, window: int) -> None:
        """Settle how often a sender is told that may be so many messages ahead."""
        window = min(window, self.window)
        peer.taken_step = max(window // 2, 1)
        # each message that is delivered at once gives back its cost: so these are told in time too
        peer.back_step = max(min(self._bytes // 2, window // 4 * _COST), 1)

    # -- the sender

    @ccall
    def charge(self, peer: PeerFlow, request: SendRequest) -> None:
        """Count a message that goes out; one that there is no credit for goes without payload."""
        cost: int = cost_of_bytes(request.convertor.size)
        if peer.spent + cost > peer.spent_max:
            request.bare = True
            cost = _COST
        peer.spent += cost

    @ccall
    def hold(self, peer: PeerFlow, request: SendRequest) -> None:
        """Keep a message until the receiver has taken others."""
        if request.mode == BUFFERED:
            request.convertor.keep(0)
        peer.waiting.append(request)
        if not peer.polled:
            peer.polled = True
            # the queue of what waits knows of it, and looks whether the peer is still there
            self._ob1.pending.start(partial(self._advance, peer), peer)
            self._tell(peer, FLAG_ASK)

    @ccall
    def credit_arrived(self, proc: Proc, data: memoryview) -> None:
        """CREDIT: the receiver has taken messages, and given back bytes; or it asks how many."""
        check(CREDIT, CREDIT_SIZE, data)
        peer: PeerFlow = self.peer(proc)
        sent_max: int = raw.word(data, 8) + self.window
        peer.sent_max = max(peer.sent_max, sent_max)
        spent_max: int = raw.word(data, 16) + self._bytes
        peer.spent_max = max(peer.spent_max, spent_max)
        if raw.word(data, 0) >> 8 & FLAG_ASK:
            self._pace(peer, raw.word(data, 0) >> 32)
            self._tell(peer, 0)
        if peer.waiting:
            self._release(peer)

    @cfunc
    def _release(self, peer: PeerFlow) -> None:
        """Send what the window has room for now."""
        waiting, sending = peer.waiting, self._ob1.sending
        while waiting and peer.sent - len(waiting) < peer.sent_max:
            request: SendRequest = waiting.popleft()
            self.charge(peer, request)
            if not sending.start(request):
                self._ob1.pending.start(partial(sending.start, request), request.endpoint)

    def _advance(self, peer: PeerFlow) -> bool:
        """Whether nothing waits for the window any more; to a peer that has gone all fails."""
        self._release(peer)
        while peer.waiting and self._ob1.sending.given_up(peer.waiting[0]):
            peer.waiting.popleft()
        peer.polled = bool(peer.waiting)
        return not peer.polled

    def fail_peer(self, proc: Proc, reason: str) -> None:
        """No path leads to `proc` any more: fail what waits for its window."""
        peer = self.peer(proc)
        while peer.waiting:
            request = peer.waiting.popleft()
            self._ob1.sending.give_up(request, ERR_PROC_FAILED, f"{reason}: {request.story()}")

    # -- the receiver

    @ccall
    def give_back(self, peer: PeerFlow, fragment: Fragment) -> None:
        """A message was delivered, or will never be."""
        peer.back += cost_of(fragment)
        if peer.back >= peer.back_next:
            self.tell(peer)

    @ccall
    def give_back_bytes(self, peer: PeerFlow, length: int) -> None:
        """A message of so many bytes was delivered as it came."""
        peer.back += cost_of_bytes(length)
        if peer.back >= peer.back_next:
            self.tell(peer)

    @ccall
    def orphan_came(self, proc: Proc) -> None:
        """A message had no communicator yet: it counts as taken, or others would wait for it."""
        peer: PeerFlow = self.peer(proc)
        peer.orphans += 1
        peer.taken += 1
        if peer.taken >= peer.taken_next:
            self.tell(peer)

    @ccall
    def tell(self, peer: PeerFlow) -> None:
        """Tell a sender how far this rank is."""
        self._tell(peer, 0)

    @cfunc
    def _tell(self, peer: PeerFlow, flags: int) -> None:
        peer.taken_next = peer.taken + peer.taken_step
        peer.back_next = peer.back + peer.back_step
        if peer.proc.departed:
            return
        try:
            endpoint = self._ob1.endpoint(peer.proc)
        except MPIError:
            return  # no path leads there any more
        message = credit_words(flags, self.window, peer.taken, peer.back)
        self._ob1.control.send(endpoint, message, CREDIT)


@ccall
def cost_of(fragment: Fragment) -> int:
    """Bytes that the sender has counted of a message."""
    if fragment.flags & FLAG_BARE:
        return _COST
    return cost_of_bytes(fragment.length)


@ccall
def cost_of_bytes(length: int) -> int:
    """Bytes that are counted of a message of so many."""
    return _COST + (length if length < _MOST else _MOST)
