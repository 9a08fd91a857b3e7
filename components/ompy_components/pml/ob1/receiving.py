"""The receiver's side of every protocol: match, answer, gather the fragments.

Source: seed ob1, step by step; reference openmpi.md 3.1 and 3.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.constants import ANY_TAG, LOWEST_TAG
from ompy.data.errors import ERR_INTERN, ERR_PROC_FAILED, ERR_TRUNCATE, SUCCESS, MPIError
from ompy.frameworks.btl import BtlModule
from ompy.frameworks.btl_base.lent_payload import LentPayload, fetched
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values
from ompy.trace.tag_names import tag_text

from ompy_components.pml.ob1.diagnosis.steps import COMPLETE
from ompy_components.pml.ob1.fragment import (
    Fragment,
    fragment_of,
    kept_fragment,
    lent_fragment,
    remote_of,
    whole_fragment,
)
from ompy_components.pml.ob1.halves import ReceiverHalf
from ompy_components.pml.ob1.headers import (
    FLAG_ACK,
    FLAG_BARE,
    FRAG,
    FRAG_SIZE,
    MATCH,
    MATCH_SIZE,
    NAMES,
    RGET,
    RGET_SIZE,
    RNDV,
    RNDV_SIZE,
    SEQUENCE_MASK,
    SEQUENCES,
    as_signed,
    check,
)
from ompy_components.pml.ob1.matching import Matching, PeerQueue, RecvRequest
from ompy_components.pml.ob1.rendezvous.rendezvous_receive import RendezvousReceive
from ompy_components.pml.ob1.selection import EAGER_ALLOCATED
from ompy_components.pml.ob1.states import RECEIVE_TABLE, ReceiveEvent, ReceiveState, rows_of

if TYPE_CHECKING:
    from ompy.data.request import Request
    from ompy.frameworks.communicator import Communicator

    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.data.convertor import Convertor
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.flow import Flow, PeerFlow
    from ompy_components.pml.ob1.rendezvous.rdma import Rdma

# members of enums are found by a call; every message asks for these
_MATCHED: Final = ReceiveEvent.MATCHED
_ALL_HERE: Final = ReceiveEvent.ALL_HERE
_NO_HEADER: Final = memoryview(b"")


@cclass
class Receiving(ReceiverHalf):
    """The receiver's half of ob1 for one rank.

    Attributes:
        matchings: the matching state of every communicator, by context id.
        watched_below: what begins with a lower tag is looked at by `departures/gone.py`.
        orphans: fragments of communicators that this rank has not made yet, by context id.
        orphaned: such a one has just come.
        passed: by the matching of communicators that are gone.
        rendezvous: decides what becomes of a RNDV or RGET.
        straight: what comes whole, or by one copy, is answered and received like a MATCH.
    """

    _flow: Flow
    _next_id: U64
    _ob1: Ob1
    _rdma: Rdma
    _recent: Matching | None
    _trace: Trace
    watched_below: int
    matchings: dict[int, Matching]
    orphaned: bool
    orphans: dict[int, list[Fragment]]
    passed: U64
    rendezvous: RendezvousReceive
    straight: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, values: Values) -> None:
        self._ob1 = ob1
        self._trace = ob1.trace
        self._rdma = ob1.rdma
        self._flow = ob1.flow
        self.rendezvous = RendezvousReceive(ob1, self, values)
        self._next_id = 0
        self.watched_below = LOWEST_TAG
        self.straight = True
        self.requests = {}
        self.table = rows_of(RECEIVE_TABLE)
        self.matchings = {}
        self._recent = None  # the one looked for last
        self.orphans = {}
        self.orphaned = False
        self.passed = 0

    @ccall
    def post(self, request: RecvRequest) -> None:
        """Match a receive with a message that is here, or queue it."""
        matching = request.communicator.pml_state
        assert isinstance(matching, Matching), f"{request.communicator.name} was never added"
        fragment: Fragment | None = matching.post(request)
        if fragment is not None:
            self._flow.give_back(matching.peer(fragment.source).flow, fragment)
            self.deliver(request, fragment)
            return
        if request.wanted_tag < self.watched_below:
            self._ob1.gone.posted(request)
        if self._trace.active:
            self._ob1.steps.posted(request)

    @cfunc
    def _matching(self, context_id: int) -> Matching | None:
        """A communicator's matching state; None while there is no such communicator here."""
        matching: Matching | None = self._recent
        if matching is None or matching.communicator.context_id != context_id:
            matching = self.matchings.get(context_id)
            self._recent = matching
        return matching

    @ccall
    def forget(self, context_id: int) -> None:
        """A communicator has gone. What nobody has received of it will not be."""
        matching: Matching | None = self.matchings.pop(context_id, None)
        if matching is not None:
            self.passed += matching.count_passed()
        queue: PeerQueue
        for queue in matching.peers() if matching is not None else ():
            queue.flow.taken += len(queue.early)
            fragment: Fragment
            for fragment in queue.held():
                self._flow.give_back(queue.flow, fragment)
        self._recent = None

    def pending(self, communicator: Communicator) -> list[Request]:
        """The program's receives in a communicator: posted, or with more to come."""
        matching = communicator.pml_state
        assert isinstance(matching, Matching), f"{communicator.name} was never added"
        begun = [one for one in self.requests.values() if one.communicator is communicator]
        every = [*matching.posted(), *begun]
        return [one for one in every if one.wanted_tag >= 0 or one.wanted_tag == ANY_TAG]

    @ccall
    def match_arrived(self, data: memoryview) -> None:
        """A MATCH fragment: a whole eager message."""
        check(MATCH, MATCH_SIZE, data)
        self.match_eager(data, raw.size(data) - MATCH_SIZE, None)

    @ccall
    def match_eager(self, data: memoryview, length: int, lent: LentPayload | None) -> None:
        """A whole eager message.

        Args:
            data: its MATCH fragment, or what of that is no payload.
            length: bytes of payload.
            lent: the payload, if it is still in the sender's memory.
        """
        first: U64 = raw.word(data, 0)
        second: U64 = raw.word(data, 8)
        context_id: int = first >> 16 & 0xFFFF
        source: int = as_signed(first >> 32)
        tag: int = as_signed(second)
        sequence: int = second >> 32 & SEQUENCE_MASK
        if self._trace.noting:
            self._trace.note("< MATCH", context_id, source, tag, sequence, length)
        if self._trace.active:
            self._note_arrived(MATCH, context_id, source, tag, sequence, length)
        matching: Matching | None = self._matching(context_id)
        if matching is not None:
            queue: PeerQueue = matching.peer(source)
            if sequence == queue.expected and not queue.early:
                queue.expected = (sequence + 1) & SEQUENCE_MASK
                flow: PeerFlow = queue.flow
                flow.taken += 1
                request: RecvRequest | None = matching.claim(queue, tag)
                if request is not None:
                    request.sequence = sequence
                    self._flow.give_back_bytes(flow, length)
                    if lent is None:
                        self._eager(request, source, tag, data, MATCH_SIZE)
                    else:
                        self._borrowed(request, source, tag, lent)
                    return
                kept = kept_fragment(first >> 8 & 0xFF, source, tag, sequence, data, lent)
                if kept is not None:
                    self._wait(queue, kept)
                return
        if lent is not None:
            fragment = lent_fragment(first >> 8 & 0xFF, source, tag, sequence, lent)
        else:
            fragment = whole_fragment(first >> 8 & 0xFF, source, tag, sequence, data)
        if fragment is not None:
            self._arrived(matching, context_id, fragment)

    @ccall
    def rndv_arrived(self, data: memoryview) -> None:
        """A RNDV fragment: the beginning of a message, or all of a synchronous one."""
        if self.straight and not self._trace.active and self._whole_arrived(data):
            return
        self.arrived(raw.word(data, 0) >> 16 & 0xFFFF, self.rndv_fragment(data))

    @cfunc
    def _whole_arrived(self, data: memoryview) -> bool:
        """A RNDV with a whole message whose turn it is; false for any other."""
        check(RNDV, RNDV_SIZE, data)
        length: int = raw.word(data, 16)
        first: U64 = raw.word(data, 0)
        flags: int = first >> 8 & 0xFF
        if length != raw.size(data) - RNDV_SIZE or flags & FLAG_BARE or not flags & FLAG_ACK:
            return False
        second: U64 = raw.word(data, 8)
        context_id: int = first >> 16 & 0xFFFF
        sequence: int = second >> 32 & SEQUENCE_MASK
        source: int = as_signed(first >> 32)
        matching: Matching | None = self._matching(context_id)
        if matching is None:
            return False
        queue: PeerQueue = matching.peer(source)
        if sequence != queue.expected or queue.early:
            return False
        queue.expected = (sequence + 1) & SEQUENCE_MASK
        queue.flow.taken += 1
        tag: int = as_signed(second)
        request: RecvRequest | None = matching.claim(queue, tag)
        if request is None:
            payload = raw.part(data, RNDV_SIZE, length)
            self._wait(queue, self._announced(RNDV, "< RNDV", data, payload))
            return True
        if self._trace.noting:
            self._trace.note("< RNDV", context_id, source, tag, sequence, length)
        request.sequence = sequence
        self._flow.give_back_bytes(queue.flow, length)
        self.rendezvous.say_received(matching.communicator, source, raw.word(data, 24), length)
        self._eager(request, source, tag, data, RNDV_SIZE)
        return True

    @ccall
    def rndv_fragment(self, data: memoryview) -> Fragment:
        """What a RNDV says."""
        check(RNDV, RNDV_SIZE, data)
        return self._announced(RNDV, "< RNDV", data, data[RNDV_SIZE:])

    @ccall
    def rget_arrived(self, module: BtlModule, data: memoryview) -> None:
        """A RGET: a message that may be read from the sender's memory."""
        fragment: Fragment = self.rget_fragment(module, data)
        self.arrived(raw.word(data, 0) >> 16 & 0xFFFF, fragment)

    @ccall
    def rget_fragment(self, module: BtlModule, data: memoryview) -> Fragment:
        """What a RGET says."""
        check(RGET, RGET_SIZE, data)
        address: int = raw.signed_word(data, 40)
        # the message's first bytes may lie at the end
        payload = data[address:] if address < 0 else b""
        fragment: Fragment = self._announced(RGET, "< RGET", data, payload)
        fragment.remote = remote_of(module, data)
        return fragment

    @cfunc
    def _announced(
        self, kind: int, name: str, data: memoryview, payload: memoryview | bytes
    ) -> Fragment:
        """What the headers of RNDV and RGET say alike."""
        first: U64 = raw.word(data, 0)
        second: U64 = raw.word(data, 8)
        flags: int = first >> 8 & 0xFF
        context_id: int = first >> 16 & 0xFFFF
        source: int = as_signed(first >> 32)
        tag: int = as_signed(second)
        sequence: int = second >> 32 & SEQUENCE_MASK
        length: int = raw.word(data, 16)
        send_id: U64 = raw.word(data, 24)
        if self._trace.noting:
            self._trace.note(name, context_id, source, tag, sequence, length)
        if self._trace.active:
            self._note_arrived(kind, context_id, source, tag, sequence, len(payload))
        return fragment_of(kind, flags, source, tag, sequence, length, send_id, payload)

    @ccall
    def arrived(self, context_id: int, fragment: Fragment) -> None:
        """Take in the first fragment of a message."""
        self._arrived(self._matching(context_id), context_id, fragment)

    @cfunc
    def _arrived(self, matching: Matching | None, context_id: int, fragment: Fragment) -> None:
        """Match a fragment when it is its turn, and those that waited for it."""
        if matching is None:
            fragment.keep()
            self.orphans.setdefault(context_id, []).append(fragment)
            self.orphaned = True
            return
        queue: PeerQueue = matching.peer(fragment.source)
        if fragment.sequence != queue.expected:
            self.out_of_turn(queue, fragment)
            return
        following: Fragment | None = fragment
        while following is not None:
            queue.expected = (queue.expected + 1) & SEQUENCE_MASK
            queue.flow.taken += 1
            self._match(matching, queue, following)
            following = queue.early.pop(queue.expected, None)

    @ccall
    def out_of_turn(self, queue: PeerQueue, fragment: Fragment) -> None:
        """A message with another number than the next: others of its sender have to come first.

        Raises:
            MPIError: ERR_INTERN, it was here before, or its sender may not be so far. Rails lose
                and double nothing.
        """
        sequence: int = fragment.sequence
        ahead: int = (sequence - queue.expected) & SEQUENCE_MASK
        if sequence in queue.early or ahead >= self._flow.window + queue.flow.orphans:
            raise MPIError(ERR_INTERN, _impossible(queue, fragment))
        fragment.keep()
        queue.early[sequence] = fragment

    @cfunc
    def _match(self, matching: Matching, queue: PeerQueue, fragment: Fragment) -> None:
        request: RecvRequest | None = matching.claim(queue, fragment.tag)
        if request is None:
            self._wait(queue, fragment)
        else:
            self._flow.give_back(queue.flow, fragment)
            self.deliver(request, fragment)

    @cfunc
    def _wait(self, queue: PeerQueue, fragment: Fragment) -> None:
        """Keep a message that no receive was posted for."""
        fragment.keep()
        queue.unexpected.append(fragment)
        if queue.flow.taken >= queue.flow.taken_next:
            self._flow.tell(queue.flow)

    @ccall
    def adopt(self, matching: Matching) -> None:
        """A communicator was made: take in what arrived for it before."""
        waiting = self.orphans.pop(matching.communicator.context_id, None)
        if waiting is None:
            return
        fragment: Fragment
        for fragment in waiting:
            queue: PeerQueue = matching.peer(fragment.source)
            queue.flow.taken -= 1  # they were counted when they came
        # each sender's in order, or the last of many would seem too far ahead
        for fragment in sorted(waiting, key=_place):
            self._arrived(matching, matching.communicator.context_id, fragment)

    @ccall
    def deliver(self, request: RecvRequest, fragment: Fragment) -> None:
        """Give a matched fragment to its receive."""
        payload = memoryview(fragment.payload)
        request.sequence = fragment.sequence
        if fragment.kind == MATCH:
            self._eager(request, fragment.source, fragment.tag, payload, 0)
        elif self._is_whole(fragment, raw.size(payload)):
            self.rendezvous.say_received(
                request.communicator, fragment.source, fragment.sender_request, fragment.length
            )
            self._eager(request, fragment.source, fragment.tag, payload, 0)
        else:
            self._rendezvous(request, fragment, payload)

    @cfunc
    def _is_whole(self, fragment: Fragment, size: int) -> bool:
        """Whether nothing but an answer is to follow on a RNDV."""
        asks: bool = fragment.kind == RNDV and bool(fragment.flags & FLAG_ACK)
        return asks and size == fragment.length and self.straight and not self._trace.active

    @cfunc
    def _eager(
        self, request: RecvRequest, source: int, tag: int, data: memoryview, start: int
    ) -> None:
        """Eager Send, steps B and C: unpack what begins at byte `start`, and complete."""
        request.source = source
        request.tag = tag
        length: int = raw.size(data) - start
        request.length = length
        convertor: Convertor = request.convertor
        convertor.bind(length)
        request.received = convertor.unpack_from(data, start, length) if length else 0
        if length > convertor.size:
            self._truncated(request)
        if self._trace.active:
            # the sender alone knows whether this is step B (Immediate) or C
            self._ob1.steps.receiver(request, COMPLETE, protocol=EAGER_ALLOCATED)
        request.finish()

    @cfunc
    def _borrowed(self, request: RecvRequest, source: int, tag: int, lent: LentPayload) -> None:
        """As `_eager`, of a message that is read where it is."""
        length: int = lent.size
        convertor: Convertor = request.convertor
        convertor.bind(length)
        view = convertor.whole()
        if view is None or length > convertor.size:
            whole = fetched(_NO_HEADER, lent)
            if whole is not None:
                self._eager(request, source, tag, whole, 0)
                return
        elif lent.read(view if raw.size(view) == length else view[:length]):
            request.source = source
            request.tag = tag
            request.length = request.received = length
            if self._trace.active:
                self._ob1.steps.receiver(request, COMPLETE, protocol=EAGER_ALLOCATED)
            request.finish()
            return
        proc = request.communicator.procs[source]
        request.fail(ERR_PROC_FAILED, f"{proc} has ended while its message was read")

    def rendezvous_begun(self) -> int:
        """How many messages were put into the table that peers answer to."""
        return self._next_id

    @cfunc
    def _rendezvous(self, request: RecvRequest, fragment: Fragment, payload: memoryview) -> None:
        """Unpack the first bytes, and answer (step C of every rendezvous)."""
        request.source = fragment.source
        request.tag = fragment.tag
        request.length = fragment.length
        request.convertor.bind(fragment.length)
        if self.straight and self.rendezvous.get_at_once(request, fragment):
            return
        request.advance(self.table, _MATCHED)
        request.arrived = len(payload)
        request.received = request.convertor.unpack(0, payload) if request.arrived else 0
        self._next_id += 1
        request.open_rendezvous(self._next_id, fragment.sender_request)
        self.requests[request.id] = request
        if request.tag < self.watched_below:
            communicator = request.communicator
            proc = communicator.procs[request.source]
            self._ob1.gone.begun(proc, communicator.context_id, request.tag)
        if request.arrived < request.length:
            self.rendezvous.answer(request, fragment)
        elif fragment.flags & FLAG_ACK:
            self.rendezvous.acknowledge_all(request, fragment)
        if not request.complete:  # a get may be done already
            self.finish_if_here(request)

    @ccall
    def fragment_arrived(self, data: memoryview) -> None:
        """Step G: a FRAG goes to its offset, in whatever order it comes."""
        check(FRAG, FRAG_SIZE, data)
        offset: int = raw.word(data, 8)
        receive_id: U64 = raw.word(data, 24)
        request: RecvRequest | None = self.requests.get(receive_id)
        if request is None:
            self.unknown(FRAG, receive_id)
            return
        payload = data[FRAG_SIZE:]
        if self._trace.active:
            self._ob1.steps.receiver(request, "FRAG", offset=offset, payload=len(payload))
        request.received += request.convertor.unpack(offset, payload)
        request.arrived += len(payload)
        self.finish_if_here(request)

    @ccall
    def unknown(self, tag: int, number: U64) -> None:
        """A sender goes on with a receive that is not waiting."""
        self._ob1.unknown(tag, number, "receive")

    def ask_for_fragments(self, request: RecvRequest, offset: int, size: int) -> None:
        """What RDMA could not bring."""
        self.rendezvous.ask_for_fragments(request, offset, size)

    @ccall
    def finish_if_here(self, request: RecvRequest) -> None:
        """The request is complete when all bytes of the message have arrived (3.2.5)."""
        if not request.is_here():
            return
        if request.arrived != request.length:
            detail = f"ob1: {request.arrived} bytes of {request.length} arrived: {request.story()}"
            raise MPIError(ERR_INTERN, detail)
        incoming = request.incoming
        request.advance(self.table, _ALL_HERE)
        del self.requests[request.id]
        if incoming is not None:
            self._rdma.release(incoming.shares)
        if request.length > request.convertor.size:
            self._truncated(request)
        if self._trace.active:
            self._ob1.steps.receiver(request, COMPLETE)
        request.finish()

    @cfunc
    def _truncated(self, request: RecvRequest) -> None:
        request.error = ERR_TRUNCATE
        request.detail = (
            f"a message of {request.length} bytes from rank {request.source} with "
            f"{tag_text(request.tag)} arrived for a receive buffer of "
            f"{request.convertor.size} bytes"
        )

    @ccall
    def cancel(self, request: RecvRequest) -> None:
        """Cancel a receive that is not matched.

        One that nobody is left for has failed meanwhile; no message will ever match it, so whoever
        cancels it is not told of that.
        """
        if request.state is not ReceiveState.POSTED:
            return
        failed = request.complete and request.error == ERR_PROC_FAILED
        if failed:
            request.error, request.detail = SUCCESS, ""
        elif request.complete or not self._ob1.matching(request.communicator).cancel(request):
            return
        request.advance(self.table, ReceiveEvent.CANCEL)
        request.cancelled = True
        if not failed:
            request.finish()

    @ccall
    def fail_peer(self, proc: Proc, reason: str) -> None:
        """No path leads to `proc` any more: fail receives that can come from nobody else."""
        for request in list(self.requests.values()):
            if request.communicator.procs[request.source] is proc:
                self.give_up(request, ERR_PROC_FAILED, f"{reason}: {request.story()}")
        for matching in self._ob1.matchings():
            for request in matching.forget_source(proc):
                request.fail(ERR_PROC_FAILED, f"{reason}: {request.story()}")

    @ccall
    def give_up(self, request: RecvRequest, error: int, detail: str) -> None:
        """Fail a receive whose message has begun, and forget it."""
        del self.requests[request.id]
        self._ob1.rdma.drop(request)
        if request.incoming is not None:
            self._ob1.rdma.release(request.incoming.shares)
        request.fail(error, detail)

    @cfunc
    def _note_arrived(
        self, kind: int, context_id: int, source: int, tag: int, sequence: int, size: int
    ) -> None:
        self._ob1.note(
            NAMES[kind],
            side="receive",
            context=context_id,
            source=source,
            tag=tag,
            sequence=sequence,
            payload=size,
        )


def _place(fragment: Fragment) -> int:
    """How many messages of its sender there were before it, in a new communicator."""
    return (fragment.sequence - 1) & SEQUENCE_MASK


def _impossible(queue: PeerQueue, fragment: Fragment) -> str:
    """What is known of a message that cannot have come."""
    sequence, expected = fragment.sequence, queue.expected
    ahead = (sequence - expected) & SEQUENCE_MASK
    if sequence in queue.early:
        why = "it is here already"
    elif ahead >= SEQUENCES // 2:
        why = f"it has been here, {SEQUENCES - ahead} messages ago"
    else:
        why = f"its sender is {ahead} messages ahead, and may not be so far (message_window)"
    return (
        f"ob1: {NAMES[fragment.kind]} {sequence} of {fragment.length} bytes with tag "
        f"{fragment.tag} from rank {fragment.source} where {expected} is the next: {why}"
    )
