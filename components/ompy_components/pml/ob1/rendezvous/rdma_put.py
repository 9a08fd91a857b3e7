"""Put: the receiver asks for pieces of a message, the sender writes them into its memory.

The receiver's half is `PutRequests`, the sender's `PutWrites`. One PUT message asks for one
piece and carries the registration of its target; one FIN tells that it is there, or with a
negative size that it will come as FRAGs.

Source: seed ob1 (RDMA Direct Put, RDMA Pipeline), steps C to I of both;
reference openmpi.md 3.6.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import (
    COMPLETED,
    IN_ORDER,
    NO_ORDER,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    REMOTE_READ,
    REMOTE_WRITE,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)

from ompy_components.pml.ob1.diagnosis.steps import WRITE
from ompy_components.pml.ob1.halves import ReceiverHalf, SenderHalf
from ompy_components.pml.ob1.headers import FLAG_ACK, PUT, PUT_SIZE, check, put_words
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rendezvous.rdma import RdmaFragment, wire_of
from ompy_components.pml.ob1.rendezvous.striping import (
    Share,
    find_rail,
    next_share,
    piece_of,
    put_alignment,
)
from ompy_components.pml.ob1.selection import RDMA_DIRECT_GET, RDMA_DIRECT_PUT
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import RdmaEvent, SendEvent

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.control import Control
    from ompy_components.pml.ob1.rendezvous.rdma import Rdma

# members of enums are found by a call; every message asks for these
_ASKED: Final = RdmaEvent.ASKED
_STARTED: Final = RdmaEvent.STARTED
_MOVED: Final = RdmaEvent.MOVED
_PUT: Final = SendEvent.PUT
_PUT_ACK: Final = SendEvent.PUT_ACK


@cclass
class Incoming:
    """What a receive gets by RDMA.

    Attributes:
        send_id: the sender's request id.
        view: memory of the receive.
        shares: rails, with what each has still to carry; their handles cover the whole message.
        offset: next byte to ask for.
        outstanding: pieces asked for.
        acknowledge: the next PUT acknowledges the RNDV.
    """

    acknowledge: bool
    offset: int
    outstanding: int
    send_id: U64
    shares: list[Share]
    view: memoryview
    __slots__ = tuple(__annotations__)


@ccall
def incoming_by_rdma(send_id: U64, view: memoryview, shares: list[Share], offset: int) -> Incoming:
    """What a receive gets by RDMA, from byte `offset` on."""
    made: Incoming = Incoming.__new__(Incoming)
    made.send_id = send_id
    made.view = view
    made.shares = shares
    made.offset = offset
    made.outstanding = 0
    made.acknowledge = False
    return made


@cclass
class Wanted(RdmaFragment):
    """A piece that the sender was asked to put."""

    puts: PutRequests
    __slots__ = tuple(__annotations__)

    @ccall
    def finished(self, size: int) -> None:
        """Steps H and I."""
        self.puts.finished(self, size)


@cclass
class PutRequests:
    """The receiver's half of put for one rank."""

    _control: Control
    _depth: int
    _ob1: Ob1
    _rdma: Rdma
    _receiver: ReceiverHalf
    _trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, receiver: ReceiverHalf, depth: int) -> None:
        self._ob1 = ob1
        self._receiver = receiver
        self._control = ob1.control
        self._rdma = ob1.rdma
        self._trace = ob1.trace
        self._depth = depth

    @ccall
    def schedule(self, request: RecvRequest) -> None:
        """Ask for pieces while fewer than the pipeline's depth are under way (step C).

        Memory that cannot be registered while nothing is under way is asked for as FRAGs.
        """
        incoming: Incoming | None = request.incoming
        assert incoming is not None
        while incoming.outstanding < self._depth:
            share: Share | None = self._next_share(incoming)
            if share is None:
                return
            size: int = piece_of(share.left, self.limit(share), share.rail.module.put_alignment)
            if not self.ask(request, share, incoming.offset, size):
                if incoming.outstanding:
                    return  # the next FIN gives room
                self._receiver.ask_for_fragments(request, incoming.offset, size)
            share.left -= size
            incoming.offset += size

    @ccall
    def limit(self, share: Share) -> int:
        """Bytes of the next piece over a rail at most; 0 for any number."""
        module: BtlModule = share.rail.module
        limit: int = module.put_limit
        if share.handle is None and module.rdma_pipeline_frag_size:
            frag_size: int = module.rdma_pipeline_frag_size
            limit = min(limit, frag_size) if limit else frag_size
        return limit

    @cfunc
    def _next_share(self, incoming: Incoming) -> Share | None:
        return next_share(incoming.shares, put_alignment(incoming.shares), [])

    @ccall
    def ask(self, request: RecvRequest, share: Share, offset: int, size: int) -> bool:
        """Ask for one piece over a rail; false when its memory could not be registered."""
        incoming: Incoming | None = request.incoming
        rail: Rail = share.rail
        assert incoming is not None
        fragment: Wanted = Wanted.__new__(Wanted)
        fragment.plan(request, rail, offset, size)
        fragment.puts = self
        address: U64 = offset
        handle = share.handle
        if handle is None:
            memory = incoming.view[offset : offset + size]
            address, handle = 0, self._rdma.register(rail, memory, REMOTE_WRITE)
            if handle is None:
                return False
            fragment.handle = handle
        flags: int = FLAG_ACK if incoming.acknowledge else 0
        incoming.acknowledge = False
        incoming.outstanding += 1
        fragment.advance(_ASKED)
        number: U64 = self._rdma.expect(fragment)
        self.asked(fragment)
        header = put_words(flags, incoming.send_id, number, request.id, offset, address, size)
        if self._trace.active:
            self._ob1.steps.receiver(request, "PUT", offset=offset, size=size, rail=rail.module)
        self._control.send_on(rail, header + wire_of(handle), PUT)
        return True

    @ccall
    def asked(self, fragment: Wanted) -> None:
        """A piece has its id, and is about to be asked for."""

    @ccall
    def finished(self, fragment: Wanted, size: int) -> None:
        """A FIN: the piece is here, or it will come as FRAGs."""
        request = fragment.request
        assert isinstance(request, RecvRequest)
        self._rdma.forget(fragment)
        self._rdma.release_one(fragment)
        fragment.advance(RdmaEvent.FAILED if size < 0 else _MOVED)
        if self._trace.active:
            # where a get was not available this is a step of put all the same
            put = RDMA_DIRECT_PUT if request.protocol is RDMA_DIRECT_GET else request.protocol
            self._ob1.steps.receiver(
                request, "FIN", protocol=put, offset=fragment.offset, size=size
            )
        incoming: Incoming | None = request.incoming
        assert incoming is not None
        incoming.outstanding -= 1
        if size >= 0:
            request.arrived += size
            request.received += size
        self.schedule(request)
        self._receiver.finish_if_here(request)


@cclass
class Write(RdmaFragment):
    """A piece that the receiver asked for.

    Attributes:
        peer_fragment: the receiver's id of it, for the FIN.
        address: where to, in the memory registered there.
        remote_handle: of that memory.
    """

    address: U64
    peer_fragment: U64
    remote_handle: bytes
    __slots__ = tuple(__annotations__)


@cclass
class PutWrites(CompletionCallback):
    """The sender's half of put for one rank."""

    _ob1: Ob1
    _rdma: Rdma
    _sending: SenderHalf
    _trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, sending: SenderHalf) -> None:
        self._ob1 = ob1
        self._rdma = ob1.rdma
        self._trace = ob1.trace
        self._sending = sending

    @ccall
    def arrived(self, module: BtlModule, endpoint: Endpoint, data: memoryview) -> None:
        """A PUT: the receiver wants a piece written, over the rail its message came over."""
        check(PUT, PUT_SIZE, data)
        send_id: U64 = raw.word(data, 8)
        offset: int = raw.word(data, 32)
        size: int = raw.word(data, 48)
        request: SendRequest | None = self._sending.requests.get(send_id)
        if request is None:
            self._sending.unknown(PUT, send_id)
            return
        event = _PUT_ACK if raw.word(data, 0) >> 8 & FLAG_ACK else _PUT
        request.advance(self._sending.table, event)
        request.peer_request = raw.word(data, 24)
        if self._trace.active:
            self._ob1.steps.sender(request, "PUT", offset=offset, size=size, rail=module)
        if offset + size > request.convertor.size:
            raise MPIError(
                ERR_INTERN,
                f"ob1: PUT asks for bytes {offset} to {offset + size}: {request.story()}",
            )
        rail: Rail | None = find_rail(request.endpoint.rdma, module)
        fragment: Write = Write.__new__(Write)
        fragment.plan(request, rail or Rail(module, endpoint), offset, size)
        fragment.peer_fragment = raw.word(data, 16)
        fragment.address = raw.word(data, 40)
        fragment.remote_handle = raw.part(data, PUT_SIZE, raw.size(data) - PUT_SIZE)
        if rail is None:  # taken out since the receiver chose it
            self.fall_back(fragment, NOT_AVAILABLE)
        elif not self.start(fragment):
            self._ob1.pending.rdma(partial(self.start, fragment), fragment.rail.endpoint)

    @ccall
    def start(self, fragment: Write) -> bool:
        """Put, or fall back; false when the BTL has no room now."""
        request = fragment.request
        assert isinstance(request, SendRequest)
        if request.complete:  # it failed while this waited for room
            self._rdma.release_one(fragment)
            return True
        rail: Rail = fragment.rail
        local = _memory(request, fragment)
        handle = fragment.handle or _registration(request, rail)
        if handle is None and fragment.size > rail.module.local_registration_threshold:
            handle = fragment.handle = self._rdma.register(rail, local, REMOTE_READ)
            if handle is None:
                self.fall_back(fragment, NOT_AVAILABLE)
                return True
        fragment.advance(_STARTED)
        request.writing += 1
        began = self._trace.clock() if self._trace.active else 0
        result: int = rail.module.put(
            rail.endpoint,
            local,
            fragment.address,
            handle,
            fragment.remote_handle,
            IN_ORDER,  # the FIN goes over the same endpoint
            NO_ORDER,
            self,
            fragment,
        )
        if result == OUT_OF_RESOURCE and not rail.endpoint.proc.departed:
            fragment.advance(RdmaEvent.NO_ROOM)
            request.writing -= 1
            return False
        if result >= 0 and self._trace.active:
            self._ob1.steps.sender(
                request,
                WRITE,
                at=began,
                offset=fragment.offset,
                size=fragment.size,
                rail=rail.module,
            )
        if result < 0 or result == COMPLETED:
            self._done(fragment, min(result, 0))
        return True

    @ccall
    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A BTL has completed a put."""
        fragment = descriptor.context
        assert isinstance(fragment, Write)
        self._done(fragment, status)

    @cfunc
    def _done(self, fragment: Write, status: int) -> None:
        request = fragment.request
        assert isinstance(request, SendRequest)
        request.writing -= 1
        self._rdma.release_one(fragment)
        if request.complete:
            return  # its peer is lost
        if status < 0:
            self.fall_back(fragment, status)
            return
        fragment.advance(_MOVED)
        if self._trace.active:
            self._ob1.steps.sender(request, "FIN", offset=fragment.offset, size=fragment.size)
        self._rdma.send_fin(fragment, fragment.peer_fragment, fragment.size)
        request.delivered += fragment.size
        self._sending.finish_if_delivered(request)

    @ccall
    def fall_back(self, fragment: Write, status: int) -> None:
        """Tell the receiver that the piece comes as FRAGs, and send them (3.6.2)."""
        request = fragment.request
        assert isinstance(request, SendRequest)
        fragment.advance(RdmaEvent.FAILED)
        if self._trace.active:
            self._ob1.steps.sender(request, "FIN", offset=fragment.offset, size=status)
        self._rdma.send_fin(fragment, fragment.peer_fragment, status)
        self._sending.streaming.add_range(request, fragment.offset, fragment.size)
        self._sending.streaming.schedule(request)
        self._sending.finish_if_delivered(request)


@cfunc
def _memory(request: SendRequest, fragment: Write) -> memoryview:
    """Where the piece lies here."""
    view = request.convertor.tail()
    assert view is not None, "a PUT answers a message whose memory was offered"
    first: int = fragment.offset - (request.convertor.size - len(view))
    return view[first : first + fragment.size]


@cfunc
def _registration(request: SendRequest, rail: Rail) -> object | None:
    """The registration of the whole message with a rail's module, if step A made one."""
    share: Share
    for share in request.registered:
        if share.rail.module is rail.module:
            return share.handle
    return None
