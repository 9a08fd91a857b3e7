"""The sender's side of every protocol: begin, answer to ACK, stream the rest.

Source: seed ob1-protocols (steps are named in comments), reference openmpi.md 3.5 and 3.7.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

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
    SEND_ALWAYS_CALLBACK,
    SEND_INPLACE,
    SIGNAL,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.proc import Proc

from ompy_components.pml.ob1.headers import (
    ACK_HEADER,
    FLAG_ACK,
    FLAG_SIGNAL,
    FRAG,
    FRAG_HEADER,
    FRAG_SIZE,
    MATCH,
    MATCH_HEADER,
    MATCH_SIZE,
    NAMES,
    RNDV,
    RNDV_HEADER,
    RNDV_SIZE,
    UNION_SIZE,
)
from ompy_components.pml.ob1.selection import (
    EAGER_IMMEDIATE,
    EAGER_PREPARED,
    SEND_RECEIVE_PIPELINE,
    choose,
)
from ompy_components.pml.ob1.states import SendEvent, SendState, next_send_state

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1


class SendRequest(Request):
    """A message on its way out.

    Attributes:
        context_id, own_rank, sequence: what its MATCH header says beside the tag.
        convertor: the message.
        endpoint: the peer.
        mode: communication mode.
        id: in the table of sends that peers answer to; 0 for eager ones.
        peer_request: the receiver's request id, from its ACK.
        state: of the rendezvous.
        in_flight: fragments accepted by BTLs and not completed.
        delivered: payload bytes completed.
        ranges: what is left to send as FRAGs.
        scheduling: true while its FRAGs are being sent.
        waiting: true while it is in the pending queue with FRAGs to send.
    """

    __slots__ = (
        "context_id",
        "convertor",
        "delivered",
        "endpoint",
        "id",
        "in_flight",
        "mode",
        "own_rank",
        "peer_request",
        "ranges",
        "scheduling",
        "sequence",
        "state",
        "waiting",
    )

    def __init__(
        self,
        communicator: Communicator,
        convertor: Convertor,
        endpoint: BmlEndpoint,
        target: int,
        tag: int,
        mode: int,
        sequence: int,
    ) -> None:
        super().__init__()
        self.context_id = communicator.context_id
        self.own_rank = communicator.rank
        self.convertor = convertor
        self.endpoint = endpoint
        self.source = target
        self.tag = tag
        self.mode = mode
        self.sequence = sequence
        self.id = 0
        self.peer_request = 0
        self.state = SendState.STARTED
        self.in_flight = 0
        self.delivered = 0
        self.ranges: list[SendRange] = []
        self.scheduling = False
        self.waiting = False

    def story(self) -> str:
        """What is known of it, for messages to people."""
        return (
            f"send {self.id} of {self.convertor.size} bytes with tag {self.tag} to "
            f"{self.endpoint.proc}: {self.delivered} delivered, {self.in_flight} fragments "
            f"in flight"
        )

    def __repr__(self) -> str:
        """What it is: the virtual world names it when all ranks wait."""
        size, peer = self.convertor.size, self.endpoint.proc
        return f"send of {size} bytes with tag {self.tag} to {peer}, {self.delivered} delivered"


class SendRange:
    """A piece of a message, shared out over rails.

    Attributes:
        offset: next byte to send.
        shares: a rail and the bytes left for it, each.
    """

    __slots__ = ("offset", "shares", "turn")

    def __init__(self, offset: int, shares: list[list[object]]) -> None:
        self.offset = offset
        self.shares = shares
        self.turn = 0


class FragmentDone(CompletionCallback):
    """Completions of MATCH, RNDV and FRAG."""

    __slots__ = ("_sending",)

    def __init__(self, sending: Sending) -> None:
        self._sending = sending

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """Account for a fragment that is done."""
        request = descriptor.context
        assert isinstance(request, SendRequest)
        self._sending.fragment_done(request, descriptor, status)


class Sending:
    """The sender's half of ob1 for one rank."""

    __slots__ = ("_depth", "_done", "_next_id", "_ob1", "_rails_max", "requests")

    def __init__(self, ob1: Ob1, depth: int, rails_max: int) -> None:
        self._ob1 = ob1
        self._depth = depth
        self._rails_max = rails_max
        self._done = FragmentDone(self)
        self._next_id = 0
        self.requests: dict[int, SendRequest] = {}

    def begin(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> SendRequest:
        """Number a message and start it; what finds no resources now is tried again."""
        ob1 = self._ob1
        endpoint = ob1.endpoint(communicator.procs[target])
        sequence = ob1.matching(communicator).next_sequence(target)
        request = SendRequest(communicator, convertor, endpoint, target, tag, mode, sequence)
        if not self.start(request):
            ob1.pending.start(partial(self.start, request))
        return request

    def start(self, request: SendRequest) -> bool:
        """Send the first fragment over one of the eager rails; false when none has room."""
        for _ in request.endpoint.eager.rails:
            rail = request.endpoint.eager.next()
            result = self._start_on(rail, request)
            if result >= 0:
                return True
            if result != OUT_OF_RESOURCE:
                self._path_failed(request, rail)
                return True
        return False

    def _start_on(self, rail: Rail, request: SendRequest) -> int:
        module = rail.module
        size = request.convertor.size
        inplace = bool(module.flags & SEND_INPLACE) and request.convertor.view is not None
        eager_payload = module.eager_limit - UNION_SIZE
        protocol = choose(request.mode, size, eager_payload, rail.immediate, inplace)
        if protocol is EAGER_IMMEDIATE:
            if self._immediate(rail, request):
                return COMPLETED
            protocol = choose(request.mode, size, eager_payload, False, inplace)
        if self._ob1.trace.active:
            self._ob1.note("PROTOCOL", protocol=protocol.value, size=size, rail=module.name)
        if protocol is SEND_RECEIVE_PIPELINE:
            return self._rendezvous(rail, request)
        if protocol is EAGER_PREPARED:
            return self._prepared(rail, request)
        return self._allocated(rail, request)

    def _immediate(self, rail: Rail, request: SendRequest) -> bool:
        """Eager Send (Immediate), step A: header and payload in one call."""
        size = request.convertor.size
        result = rail.module.sendi(
            rail.endpoint,
            request.convertor,
            _match_header(request),
            size,
            NO_ORDER,
            PRIORITY | BTL_OWNERSHIP,
            MATCH,
        )
        if result < 0:
            return False
        if self._ob1.trace.active:
            self._ob1.note("PROTOCOL", protocol=EAGER_IMMEDIATE.value, size=size)
            self._note_sent(request, MATCH, size)
        request.delivered = size
        request.finish()
        return True

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
            PRIORITY | BTL_OWNERSHIP,
        )
        if descriptor is None:
            return OUT_OF_RESOURCE
        if descriptor.payload_size < size:  # the rail takes less than its own eager limit
            rail.module.free(descriptor)
            return self._rendezvous(rail, request)
        descriptor.segment[:MATCH_SIZE] = _match_header(request)
        return self._send(rail, request, descriptor, MATCH)

    def _allocated(self, rail: Rail, request: SendRequest) -> int:
        """Eager Send (Allocated), step A: the payload is packed into the BTL's memory."""
        size = request.convertor.size
        descriptor = rail.module.alloc(
            rail.endpoint, NO_ORDER, MATCH_SIZE + size, PRIORITY | BTL_OWNERSHIP
        )
        if descriptor is None:
            return OUT_OF_RESOURCE
        descriptor.segment[:MATCH_SIZE] = _match_header(request)
        descriptor.payload_size = request.convertor.pack(0, descriptor.segment[MATCH_SIZE:])
        return self._send(rail, request, descriptor, MATCH)

    def _rendezvous(self, rail: Rail, request: SendRequest) -> int:
        """Send/Receive Pipeline, step A: the first bytes and the length, with a RNDV header."""
        module = rail.module
        size = min(request.convertor.size, module.eager_limit - UNION_SIZE, module.rndv_eager_limit)
        descriptor = module.prepare_src(
            rail.endpoint,
            request.convertor,
            0,
            NO_ORDER,
            RNDV_SIZE,
            size,
            PRIORITY | BTL_OWNERSHIP | SIGNAL,
        )
        if descriptor is None:
            return OUT_OF_RESOURCE
        if not request.id:
            self._next_id += 1
            request.id = self._next_id
            self.requests[request.id] = request
        RNDV_HEADER.pack_into(
            descriptor.segment,
            0,
            RNDV,
            FLAG_ACK | FLAG_SIGNAL,
            request.context_id,
            request.own_rank,
            request.tag,
            request.sequence,
            request.convertor.size,
            request.id,
        )
        return self._send(rail, request, descriptor, RNDV)

    def _send(self, rail: Rail, request: SendRequest, descriptor: Descriptor, tag: int) -> int:
        """Hand a fragment to a BTL and account for it, now or in its completion."""
        descriptor.callback = self._done
        descriptor.context = request
        payload = descriptor.payload_size
        request.in_flight += 1
        result = rail.module.send(rail.endpoint, descriptor, tag)
        if result < 0:
            request.in_flight -= 1
            rail.module.free(descriptor)
            return result
        if tag == RNDV:
            request.state = next_send_state(request.state, SendEvent.RNDV_SENT, request.story())
        if self._ob1.trace.active:
            self._note_sent(request, tag, payload)
        if result == COMPLETED and not descriptor.flags & SEND_ALWAYS_CALLBACK:
            self._account(request, tag, payload)
        return result

    def fragment_done(self, request: SendRequest, descriptor: Descriptor, status: int) -> None:
        """A BTL has completed a fragment."""
        if status < 0:
            request.in_flight -= 1
            self.requests.pop(request.id, None)
            request.fail(ERR_OTHER, f"the BTL lost a fragment ({status}): {request.story()}")
            return
        self._account(request, descriptor.tag, descriptor.payload_size)

    def _account(self, request: SendRequest, tag: int, payload: int) -> None:
        request.in_flight -= 1
        request.delivered += payload
        if tag == MATCH:
            request.finish()
        elif tag == FRAG:
            self.schedule(request)
            self._finish_if_delivered(request)
        else:
            self._finish_if_delivered(request)

    def acknowledged(self, data: memoryview) -> None:
        """Step E: the receiver answers with where to go on from."""
        _, flags, send_id, receive_id, offset, size = ACK_HEADER.unpack_from(data)
        request = self.requests.get(send_id)
        if request is None:
            raise MPIError(ERR_INTERN, f"ob1: ACK for send {send_id}, which is not waiting for it")
        request.state = next_send_state(request.state, SendEvent.ACK, request.story())
        request.peer_request = receive_id
        if self._ob1.trace.active:
            self._ob1.note("ACK", side="receive", send=send_id, offset=offset, flags=flags)
        end = min(offset + size, request.convertor.size) if size else request.convertor.size
        if offset < end:
            request.ranges.append(self._share(request.endpoint, offset, end - offset))
        self.schedule(request)
        self._finish_if_delivered(request)

    def _share(self, endpoint: BmlEndpoint, offset: int, length: int) -> SendRange:
        """Share a piece of a message out over the send rails by weight (reference 3.5.3)."""
        rails = [endpoint.send.next() for _ in endpoint.send.rails][: self._rails_max]
        total = sum(rail.weight for rail in rails)
        if length <= rails[0].module.eager_limit or total <= 0:
            return SendRange(offset, [[rails[0], length]])
        shares: list[list[object]] = []
        left = length
        for rail in rails:
            part = int(length * rail.weight / total)
            left -= part
            shares.append([rail, part])
        shares[0][1] = shares[0][1] + left  # type: ignore[operator]
        return SendRange(offset, shares)

    def schedule(self, request: SendRequest) -> None:
        """Steps E and F: send FRAGs while fewer than the pipeline's depth are under way.

        When no BTL has room the pending queue goes on with the request.
        """
        if not self._stream(request) and not request.waiting:
            request.waiting = True
            self._ob1.pending.fragment(partial(self.resume, request))

    def resume(self, request: SendRequest) -> bool:
        """A try of the pending queue: true when it need not keep the request."""
        if not self._stream(request):
            return False
        request.waiting = False
        self._finish_if_delivered(request)
        return True

    def _stream(self, request: SendRequest) -> bool:
        """Send what may be sent now; false when a BTL had no room for it."""
        if request.scheduling:
            return True  # a completion inside `send`: the outer call goes on
        request.scheduling = True
        try:
            while request.ranges and request.in_flight < self._depth and not request.complete:
                if not self._send_next(request):
                    return False
        finally:
            request.scheduling = False
        return True

    def _send_next(self, request: SendRequest) -> bool:
        """Send one FRAG of the first range over the next rail that has room."""
        piece = request.ranges[0]
        for _ in range(len(piece.shares)):
            share = piece.shares[piece.turn % len(piece.shares)]
            piece.turn += 1
            rail, left = share
            assert isinstance(rail, Rail)
            assert isinstance(left, int)
            if not left:
                continue
            sent = self._send_fragment(rail, request, piece.offset, left)
            if sent:
                piece.offset += sent
                share[1] = left - sent
                if not _left(piece):
                    request.ranges.pop(0)
                return True
        return False

    def _send_fragment(self, rail: Rail, request: SendRequest, offset: int, left: int) -> int:
        """Send up to `left` bytes from `offset` as one FRAG. Returns bytes taken, 0 for no room."""
        module = rail.module
        descriptor = module.prepare_src(
            rail.endpoint,
            request.convertor,
            offset,
            NO_ORDER,
            FRAG_SIZE,
            min(left, module.max_send_size - FRAG_SIZE),
            BTL_OWNERSHIP | SEND_ALWAYS_CALLBACK | SIGNAL,
        )
        if descriptor is None:
            return 0
        FRAG_HEADER.pack_into(
            descriptor.segment, 0, FRAG, 0, offset, request.id, request.peer_request
        )
        size = descriptor.payload_size
        result = self._send(rail, request, descriptor, FRAG)
        if result >= 0:
            return size
        if result != OUT_OF_RESOURCE:
            self._path_failed(request, rail)
            return size
        return 0

    def _finish_if_delivered(self, request: SendRequest) -> None:
        """The request is complete when RNDV, ACK and every FRAG are done (reference 3.2.4)."""
        if (
            request.state is SendState.STREAMING
            and not request.in_flight
            and not request.ranges
            and not request.complete
        ):
            request.state = next_send_state(request.state, SendEvent.DELIVERED, request.story())
            del self.requests[request.id]
            request.finish()

    def fail_peer(self, proc: Proc, reason: str) -> None:
        """No path leads to `proc` any more: fail what waits for it."""
        for request in list(self.requests.values()):
            if request.endpoint.proc is proc:
                del self.requests[request.id]
                request.ranges.clear()
                request.fail(ERR_PROC_FAILED, f"{reason}: {request.story()}")

    def _path_failed(self, request: SendRequest, rail: Rail) -> None:
        self.requests.pop(request.id, None)
        request.ranges.clear()
        request.fail(
            ERR_OTHER,
            f"BTL {rail.module.name} no longer reaches {request.endpoint.proc}: {request.story()}",
        )

    def _note_sent(self, request: SendRequest, tag: int, payload: int) -> None:
        self._ob1.note(
            NAMES[tag],
            side="send",
            peer=request.endpoint.proc.rank,
            tag=request.tag,
            sequence=request.sequence,
            payload=payload,
        )


def _left(piece: SendRange) -> bool:
    return any([share[1] for share in piece.shares])  # noqa: C419 - a closure would not compile


def _match_header(request: SendRequest) -> bytes:
    return MATCH_HEADER.pack(
        MATCH, 0, request.context_id, request.own_rank, request.tag, request.sequence
    )
