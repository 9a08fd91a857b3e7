"""The sender's side: begin a message, send it eagerly, account for its fragments.

Source: seed ob1, step by step; reference openmpi.md 3.5.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.constants import LOWEST_TAG
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_INTERN, ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.data.request import Request
from ompy.frameworks.bml import BmlEndpoint, Rail
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    COMPLETED,
    NO_ORDER,
    OUT_OF_RESOURCE,
    PRIORITY,
    RETURNABLE,
    SEND_ALWAYS_CALLBACK,
    SEND_INPLACE,
    SIGNAL,
    UNREACHABLE,
    BtlModule,
    Descriptor,
)
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import BUFFERED, SYNCHRONOUS
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.pml.ob1.diagnosis.steps import COMPLETE
from ompy_components.pml.ob1.flow import cost_of_bytes
from ompy_components.pml.ob1.halves import FragmentDone, SenderHalf
from ompy_components.pml.ob1.headers import (
    FLAG_ACK,
    FLAG_SIGNAL,
    FRAG,
    MATCH,
    MATCH_SIZE,
    NAMES,
    RGET,
    RNDV,
    SENT,
    UNION_SIZE,
    frag_words,
    match_words,
    place,
    rndv_words,
)
from ompy_components.pml.ob1.matching import Matching
from ompy_components.pml.ob1.rendezvous.rdma_put import PutWrites
from ompy_components.pml.ob1.rendezvous.rendezvous_send import RendezvousSend
from ompy_components.pml.ob1.rendezvous.streaming import Streaming
from ompy_components.pml.ob1.selection import (
    EAGER_ALLOCATED,
    EAGER_IMMEDIATE,
    EAGER_PREPARED,
    SEND_RECEIVE_PIPELINE,
    choose,
    choose_bare,
    whole_max,
)
from ompy_components.pml.ob1.sendrequest import SendRequest, send_request
from ompy_components.pml.ob1.states import SEND_TABLE, SendEvent, SendState, State, rows_of

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.flow import PeerFlow
    from ompy_components.pml.ob1.matching import PeerQueue
    from ompy_components.pml.ob1.rendezvous.rdma import Rdma


# every message asks for these
_RNDV_SENT: Final = SendEvent.RNDV_SENT
_RGET_SENT: Final = SendEvent.RGET_SENT
_DELIVERED: Final = SendEvent.DELIVERED
_AWAIT_ACK: Final = SendState.AWAIT_ACK
_DONE: Final = SendState.DONE


@cclass
class Sending(SenderHalf):
    """The sender's half of ob1 for one rank.

    Attributes:
        watched_below: what begins with a lower tag is looked at by `departures/gone.py`.
        rendezvous: begins messages that do not fit one fragment.
    """

    _done: FragmentDone
    _gone: Request
    _immediate_flags: int
    _next_id: U64
    _ob1: Ob1
    _rdma: Rdma
    _trace: Trace
    watched_below: int
    rendezvous: RendezvousSend
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, values: Values) -> None:
        self._ob1 = ob1
        self._trace = ob1.trace
        self._rdma = ob1.rdma
        self._rdma.sender = self
        self._done = FragmentDone(self)
        self._gone = Request()
        self._gone.finish()
        self._immediate_flags = PRIORITY | BTL_OWNERSHIP
        self._next_id = 0
        self.watched_below = LOWEST_TAG
        self.straight = True
        self.requests = {}
        self.table = rows_of(SEND_TABLE)
        self.streaming = Streaming(ob1, self, values.send_pipeline_depth, values.max_send_per_range)
        self.puts = PutWrites(ob1, self)
        self.rendezvous = RendezvousSend(ob1, self)

    @ccall
    def begin(
        self,
        communicator: Communicator,
        convertor: Convertor,
        target: int,
        tag: int,
        mode: int,
        blocking: bool = False,
    ) -> Request:
        """Number a message and start it; what finds no resources now is tried again.

        Args:
            communicator: it is sent in.
            convertor: the message.
            target: rank in the communicator.
            tag: of the message.
            mode: of sending.
            blocking: the caller will do nothing but wait for it, on a core of its own.

        Returns:
            Its request. What went out at once has none: all such messages share a complete one.
        """
        proc: Proc = communicator.procs[target]
        made = proc.bml_endpoint
        endpoint: BmlEndpoint = made if isinstance(made, BmlEndpoint) else self._ob1.endpoint(proc)
        matching = communicator.pml_state
        assert isinstance(matching, Matching), f"{communicator.name} was never added"
        queue: PeerQueue = matching.peer(target)
        sequence: int = queue.next_sequence()
        flow: PeerFlow = queue.flow
        flow.sent += 1
        cost: int = cost_of_bytes(convertor.size)
        if self._trace.noting:
            context_id = communicator.context_id
            self._trace.note("> send", context_id, target, tag, sequence, convertor.size)
        room: bool = flow.sent <= flow.sent_max
        credit: bool = flow.spent + cost <= flow.spent_max
        if room and credit and not self._trace.active:
            gone: Request | None = self._at_once(
                endpoint, communicator, convertor, target, tag, mode, sequence
            )
            if gone is not None:
                flow.spent += cost
                return gone
        request: SendRequest = send_request(
            communicator, convertor, endpoint, target, tag, mode, sequence
        )
        request.blocking = blocking
        if not room:
            self._ob1.flow.hold(flow, request)
            return request
        self._ob1.flow.charge(flow, request)
        if not self.start(request):
            if mode == BUFFERED:
                convertor.keep(0)
            self._ob1.pending.start(partial(self.start, request), endpoint)
        return request

    @cfunc
    def _at_once(
        self,
        endpoint: BmlEndpoint,
        communicator: Communicator,
        convertor: Convertor,
        target: int,
        tag: int,
        mode: int,
        sequence: int,
    ) -> Request | None:
        """Eager Send (Immediate) without a request, over the next rail; None if it cannot be.

        Then it is still that rail's turn: otherwise every second one of two would carry nothing.

        Source: Open MPI 4.1, `send_inline` of pml_ob1_isend.c.
        """
        if not endpoint.eager.rails:
            return None
        if mode == SYNCHRONOUS:
            return self._announced(endpoint, communicator, convertor, target, tag, sequence)
        rail: Rail = endpoint.eager.next()
        module: BtlModule = rail.module
        size: int = convertor.size
        inplace: bool = bool(module.flags & SEND_INPLACE)
        eager_payload: int = module.eager_limit - UNION_SIZE
        if choose(mode, size, eager_payload, rail.immediate, inplace) is not EAGER_IMMEDIATE:
            endpoint.eager.give_back()
            return None
        header: bytes = self.match_header(communicator.context_id, communicator.rank, tag, sequence)
        flags: int = self._immediate_flags
        there = rail.endpoint
        if size >= module.lend_least and mode != BUFFERED and self.straight:
            memory = convertor.whole()
            if memory is not None:
                lent: Request | None = module.lend(there, memory, header, MATCH)
                if lent is not None:
                    return lent
        if module.sendi(there, convertor, header, size, NO_ORDER, flags, MATCH) >= 0:
            return self._gone
        endpoint.eager.give_back()
        return None

    @cfunc
    def _announced(
        self,
        endpoint: BmlEndpoint,
        communicator: Communicator,
        convertor: Convertor,
        target: int,
        tag: int,
        sequence: int,
    ) -> Request | None:
        """A synchronous message, all of it in a RNDV over the next rail; None if it cannot be.

        As `rendezvous` sends it, but for the descriptor: what is left to come is the answer.
        """
        rail: Rail = endpoint.eager.next()
        module: BtlModule = rail.module
        size: int = convertor.size
        most: int = whole_max(SYNCHRONOUS, module.eager_limit - UNION_SIZE, module.lend_least)
        if not (self.straight and rail.immediate) or size > most:
            endpoint.eager.give_back()
            return None
        request: SendRequest = send_request(
            communicator, convertor, endpoint, target, tag, SYNCHRONOUS, sequence
        )
        request.open_rendezvous(self.fresh_id())
        request.protocol = SEND_RECEIVE_PIPELINE
        request.state = _AWAIT_ACK
        request.delivered = size
        self.enter(request)
        header: bytes = rndv_words(
            FLAG_ACK | FLAG_SIGNAL,
            request.context_id,
            request.own_rank,
            tag,
            sequence,
            size,
            request.id,
        )
        flags: int = self._immediate_flags | SIGNAL
        if module.sendi(rail.endpoint, convertor, header, size, NO_ORDER, flags, RNDV) >= 0:
            if self._trace.noting:
                self._trace.note("> RNDV", -1, endpoint.proc.rank, 0, 0, size)
            return request
        if self.requests.pop(request.id, None) is None:
            return request  # the peer was found to be gone meanwhile, and it has failed with it
        endpoint.eager.give_back()
        return None

    @ccall
    def start(self, request: SendRequest) -> bool:
        """Send the first fragment over one of the eager rails; false when none has room."""
        for _ in request.endpoint.eager.rails:
            rail: Rail = request.endpoint.eager.next()
            result: int = self._start_on(rail, request)
            if result >= 0:
                return True
            if result != OUT_OF_RESOURCE:
                self.path_failed(request, rail)
                return True
        return self.given_up(request)

    def given_up(self, request: SendRequest) -> bool:
        """Fail a message that found no room if its peer has ended: there will never be any."""
        proc = request.endpoint.proc
        if not proc.departed:
            return False
        self.give_up(request, ERR_PROC_FAILED, f"{proc}: {proc.departed}: {request.story()}")
        return True

    @cfunc
    def _start_on(self, rail: Rail, request: SendRequest) -> int:
        module: BtlModule = rail.module
        size: int = request.convertor.size
        inplace: bool = bool(module.flags & SEND_INPLACE)  # what is in pieces `prepare_src` packs
        eager_payload: int = module.eager_limit - UNION_SIZE
        if self.straight:
            eager_payload = whole_max(request.mode, eager_payload, module.lend_least)
        if request.bare:
            return self.rendezvous.start(
                rail, request, choose_bare(request.mode, size, eager_payload)
            )
        protocol = choose(request.mode, size, eager_payload, rail.immediate, inplace)
        if protocol is EAGER_IMMEDIATE:
            if self._immediate(rail, request):
                return COMPLETED
            protocol = choose(request.mode, size, eager_payload, False, inplace)
        if protocol is EAGER_PREPARED:
            return self._prepared(rail, request)
        if protocol is EAGER_ALLOCATED:
            return self._allocated(rail, request)
        return self.rendezvous.start(rail, request, protocol)

    @cfunc
    def _immediate(self, rail: Rail, request: SendRequest) -> bool:
        """Eager Send (Immediate), step A: header and payload in one call."""
        size: int = request.convertor.size
        began = self._trace.clock() if self._trace.active else 0
        result: int = rail.module.sendi(
            rail.endpoint,
            request.convertor,
            self._header_of(request),
            size,
            NO_ORDER,
            self._immediate_flags,
            MATCH,
        )
        if result < 0:
            return False
        request.delivered = size
        if request.id:
            self._close_rendezvous(request)
        if self._trace.active:
            steps, module = self._ob1.steps, rail.module
            steps.candidate(request, EAGER_IMMEDIATE, rail, at=began)
            steps.sender(
                request, "MATCH", protocol=EAGER_IMMEDIATE, rail=module, at=began, payload=size
            )
            steps.sender(request, COMPLETE, protocol=EAGER_IMMEDIATE)
        request.finish()
        return True

    @cfunc
    def _prepared(self, rail: Rail, request: SendRequest) -> int:
        """Eager Send (Prepared), step A: the payload is sent from the user's memory."""
        size = request.convertor.size
        descriptor = rail.module.prepare_src(
            rail.endpoint,
            request.convertor,
            0,
            NO_ORDER,
            MATCH_SIZE,
            size,
            PRIORITY | BTL_OWNERSHIP | RETURNABLE,
        )
        if descriptor is None:
            return OUT_OF_RESOURCE
        if descriptor.payload_size < size:  # the rail takes less than its own eager limit
            rail.module.free(descriptor)
            return self.rendezvous.start(rail, request, None)
        if request.id:
            self._close_rendezvous(request)
        if self._trace.active:
            self._ob1.steps.candidate(request, EAGER_PREPARED, rail)
        place(descriptor, self._header_of(request))
        return self.send_fragment(rail, request, descriptor, MATCH)

    @cfunc
    def _allocated(self, rail: Rail, request: SendRequest) -> int:
        """Eager Send (Allocated), step A: the payload is packed into the BTL's memory."""
        size = request.convertor.size
        descriptor = rail.module.alloc(
            rail.endpoint, NO_ORDER, MATCH_SIZE + size, PRIORITY | BTL_OWNERSHIP | RETURNABLE
        )
        if descriptor is None:
            return OUT_OF_RESOURCE
        if request.id:
            self._close_rendezvous(request)
        if self._trace.active:
            self._ob1.steps.candidate(request, EAGER_ALLOCATED, rail)
        place(descriptor, self._header_of(request))
        descriptor.payload_size = request.convertor.pack(0, descriptor.segment[MATCH_SIZE:])
        return self.send_fragment(rail, request, descriptor, MATCH)

    @ccall
    def fresh_id(self) -> U64:
        """An id that no request has had."""
        self._next_id += 1
        return self._next_id

    def rendezvous_begun(self) -> int:
        """How many messages were put into the table that peers answer to."""
        return self._next_id

    def open_rendezvous(self, request: SendRequest) -> None:
        """Put a request into the table that peers answer to, unless it is there."""
        if not request.id:
            request.open_rendezvous(self.fresh_id())
            self.enter(request)

    @ccall
    def enter(self, request: SendRequest) -> None:
        """From now on peers may answer to a request's id."""
        self.requests[request.id] = request
        if request.tag < self.watched_below:
            self._ob1.gone.begun(request.endpoint.proc, request.context_id, request.tag)

    @cfunc
    def _close_rendezvous(self, request: SendRequest) -> None:
        """A rail with a lower eager limit had no room, and this one takes it whole."""
        del self.requests[request.id]
        self._rdma.withdraw(request)
        self._rdma.release(request.registered)
        request.id = 0

    @ccall
    def send_fragment(
        self, rail: Rail, request: SendRequest, descriptor: Descriptor, tag: int
    ) -> int:
        """Hand a fragment to a BTL and account for it, now or in its completion.

        Returns:
            The BTL's result; when it is negative the descriptor has been freed.
        """
        descriptor.callback = self._done
        descriptor.context = request
        payload: int = descriptor.payload_size
        request.in_flight += 1
        began = self._trace.clock() if self._trace.active else 0
        result: int = rail.module.send(rail.endpoint, descriptor, tag)
        if result < 0:
            request.in_flight -= 1
            rail.module.free(descriptor)
            return result
        if tag != MATCH and self._trace.noting:
            self._trace.note(SENT[tag], -1, request.endpoint.proc.rank, 0, 0, payload)
        if tag == RNDV:
            request.advance(self.table, _RNDV_SENT)
        elif tag == RGET:
            request.advance(self.table, _RGET_SENT)
        if tag != FRAG and self._trace.active:
            self._ob1.steps.sender(request, NAMES[tag], rail=rail.module, at=began, payload=payload)
        if result == COMPLETED and not descriptor.flags & SEND_ALWAYS_CALLBACK:
            self._account(request, tag, payload)
        return result

    @ccall
    def fragment_done(self, request: SendRequest, descriptor: Descriptor, status: int) -> None:
        """A BTL has completed a fragment."""
        if status < 0:
            request.in_flight -= 1
            self.fragment_failed(request, descriptor, status)
        else:
            self._account(request, descriptor.tag, descriptor.payload_size)

    @ccall
    def fragment_failed(self, request: SendRequest, descriptor: Descriptor, status: int) -> None:
        """A BTL has completed a fragment with an error: nobody sends it again."""
        error = ERR_PROC_FAILED if status == UNREACHABLE else ERR_OTHER
        self.give_up(request, error, f"the BTL lost a fragment ({status}): {request.story()}")

    @cfunc
    def _account(self, request: SendRequest, tag: int, payload: int) -> None:
        request.ended(payload)
        if tag == MATCH:
            if self._trace.active:
                self._ob1.steps.sender(request, COMPLETE)
            request.finish()
        else:
            if request.ranges:  # also of a RNDV, whose ACK may have overtaken its completion
                self.streaming.schedule(request)
            self.finish_if_delivered(request)

    @ccall
    def answered_whole(self, request: SendRequest, awaited: State, delivered: int) -> bool:
        """Complete a message that lacks nothing but the answer which has just come, if it does."""
        whole: bool = (
            self.straight
            and request.state is awaited
            and delivered == request.convertor.size
            and not request.in_flight
            and not self._trace.active
        )
        if whole:
            request.state = _DONE
            request.delivered = delivered
            self._complete(request)
        return whole

    def finish_if_delivered(self, request: SendRequest) -> None:
        """The request is complete when it was answered and every byte is there (3.2.4)."""
        if not request.is_delivered():
            return
        if request.delivered != request.convertor.size:
            detail = f"ob1: {request.delivered} bytes were delivered: {request.story()}"
            raise MPIError(ERR_INTERN, detail)
        request.advance(self.table, _DELIVERED)
        if self._trace.active:
            self._ob1.steps.sender(request, COMPLETE)
        self._complete(request)

    @cfunc
    def _complete(self, request: SendRequest) -> None:
        """No peer answers to a message any more."""
        del self.requests[request.id]
        if request.registered:
            self._rdma.withdraw(request)
            self._rdma.release(request.registered)
        request.finish()

    def lacks_its_answer(self, request: SendRequest) -> bool:
        """Whether every byte went with the RNDV and is there, and only the ACK is missing."""
        return (
            request.state is SendState.AWAIT_ACK
            and request.delivered >= request.convertor.size
            and not request.in_flight
        )

    def received(self, request: SendRequest) -> None:
        """The peer has received a message that lacks its answer, which may still come."""
        self._ob1.gave_up = True
        request.advance(self.table, SendEvent.ACK)
        self.finish_if_delivered(request)

    @ccall
    def fail_peer(self, proc: Proc, reason: str) -> None:
        """No path leads to `proc` any more: fail what waits for it."""
        for request in list(self.requests.values()):
            if request.endpoint.proc is proc:
                self.give_up(request, ERR_PROC_FAILED, f"{reason}: {request.story()}")

    @ccall
    def is_among(self, request: SendRequest, numbers: set[int]) -> bool:
        """Whether a peer that names requests by their ids means this one."""
        return request.id in numbers

    def path_failed(self, request: SendRequest, rail: Rail) -> None:
        """A BTL says that it does not reach the peer."""
        lost = f"BTL {rail.module.name} no longer reaches {request.endpoint.proc}"
        self.give_up(request, ERR_PROC_FAILED, f"{lost}: {request.story()}")

    def no_path(self, request: SendRequest) -> None:
        """There is no rail left to send over."""
        lost = f"no BTL reaches {request.endpoint.proc} any more"
        self.give_up(request, ERR_PROC_FAILED, f"{lost}: {request.story()}")

    @ccall
    def unknown(self, tag: int, number: U64) -> None:
        """A peer answers to a send that is not waiting for it."""
        self._ob1.unknown(tag, number, "send")

    @ccall
    def keep_rest(self, request: SendRequest, sent: int) -> None:
        """Have the bytes of a buffered message kept that are not on their way."""
        request.convertor.keep(sent)

    @ccall
    def give_up(self, request: SendRequest, error: int, detail: str) -> None:
        """Fail a message and forget it."""
        self._ob1.gave_up = True
        if request.id:
            self.requests.pop(request.id, None)
            request.ranges.clear()
            self._ob1.rdma.drop(request)
            self._ob1.rdma.release(request.registered)
        request.fail(error, detail)

    @cfunc
    def _header_of(self, request: SendRequest) -> bytes:
        rank, tag = request.own_rank, request.tag
        return self.match_header(request.context_id, rank, tag, request.sequence)

    @ccall
    def match_header(self, context_id: int, rank: int, tag: int, sequence: int) -> bytes:
        """The header of an eager message."""
        return match_words(0, context_id, rank, tag, sequence)

    def frag_header(self, request: SendRequest, offset: int) -> bytes:
        """The header of a FRAG with the bytes from `offset` on."""
        return frag_words(offset, request.id, request.peer_request)
