"""The sender's first fragment of a rendezvous: RNDV or RGET, with what the receiver has to know.

Source: seed ob1 (Rendezvous Protocols), step A of each; reference openmpi.md 3.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    COMPLETED,
    GET,
    NO_ORDER,
    OUT_OF_RESOURCE,
    PRIORITY,
    REMOTE_READ,
    SIGNAL,
    Descriptor,
)
from ompy.frameworks.btl import PUT as CAN_PUT
from ompy.frameworks.pml import BUFFERED

from ompy_components.pml.ob1.halves import SenderHalf
from ompy_components.pml.ob1.headers import (
    FLAG_ACK,
    FLAG_BARE,
    FLAG_CONTIG,
    FLAG_PIN,
    FLAG_SIGNAL,
    FLAG_WAITS,
    RGET,
    RNDV,
    UNION_SIZE,
    pack_registrations,
    place,
    rget_words,
    rndv_words,
)
from ompy_components.pml.ob1.rendezvous.rdma import wire_of
from ompy_components.pml.ob1.rendezvous.striping import (
    Share,
    heaviest_first,
    name_of,
    share_of,
)
from ompy_components.pml.ob1.selection import (
    BUFFERED_PIPELINE,
    RDMA_DIRECT_GET,
    RDMA_DIRECT_PUT,
    RDMA_PIPELINE,
    SEND_RECEIVE_PIPELINE,
    Protocol,
    choose_large,
    first_payload,
)
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import SendState

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.frameworks.btl import BtlModule
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.rendezvous.rdma import Rdma

# what the RNDV says of the sender's memory; seed ob1, step A of each protocol
FLAGS = {
    RDMA_DIRECT_PUT: FLAG_CONTIG | FLAG_PIN | FLAG_SIGNAL,
    SEND_RECEIVE_PIPELINE: FLAG_SIGNAL,
    RDMA_PIPELINE: FLAG_CONTIG,
    BUFFERED_PIPELINE: 0,
}
_STARTED: Final = SendState.STARTED
_AWAIT_GET: Final = SendState.AWAIT_GET
RGET_FLAGS = FLAG_ACK | FLAG_CONTIG | FLAG_PIN

# of a message in pieces that is to be got: bytes before the last, which go with the RGET, and of it
PIECES_BEFORE: Final = 2048  # arbitrary: half an eager fragment of sm, the registrations need room
PIECE_LEAST: Final = 1 << 16  # arbitrary: below, a copy in and out costs no more


@cclass
class RendezvousSend:
    """Begins rendezvous for one rank."""

    _none: ContiguousConvertor
    _ob1: Ob1
    _rdma: Rdma
    _sending: SenderHalf
    _trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, sending: SenderHalf) -> None:
        self._none = ContiguousConvertor(memoryview(b""))
        self._ob1 = ob1
        self._rdma = ob1.rdma
        self._trace = ob1.trace
        self._sending = sending

    @ccall
    def start(self, rail: Rail, request: SendRequest, protocol: Protocol | None) -> int:
        """Send the first fragment; the result is the BTL's.

        Args:
            rail: an eager rail in turn.
            request: the message.
            protocol: it takes; None to choose one for a large message.
        """
        if protocol is None and self._sending.straight and self._offer_at_once(request):
            return COMPLETED
        self._sending.open_rendezvous(request)
        if protocol is None:
            protocol = self._protocol(request)
        request.protocol = protocol
        if self._trace.active:
            self._ob1.steps.candidate(request, protocol, rail)
        if protocol is RDMA_DIRECT_GET:
            return self._rget(request)
        return self._rndv(rail, request, protocol)

    @cfunc
    def _offer_at_once(self, request: SendRequest) -> bool:
        """RDMA Direct Get, step A, in one call and without a step of the request's machine.

        Only for a message in one piece of memory, over the only rail that gets from this rank.

        Returns:
            False where that cannot be, or not now.
        """
        if request.id or self._trace.active or request.mode == BUFFERED:
            return False
        rdma = self._rdma
        rail: Rail | None = rdma.rails.only(request.endpoint, request.convertor.size)
        if rail is None:
            return False
        view = request.convertor.whole()
        if view is None:
            return False
        handle = rdma.register(rail, view, REMOTE_READ)
        if handle is None:
            return False
        self._sending.open_rendezvous(request)
        request.registered.append(share_of(rail, 0, handle))
        request.protocol = RDMA_DIRECT_GET
        request.state = _AWAIT_GET
        data: bytes = self.rget_header(request) + wire_of(handle)
        flags: int = PRIORITY | BTL_OWNERSHIP | SIGNAL
        there = rail.endpoint
        if rail.module.sendi(there, self._none, data, 0, NO_ORDER, flags, RGET) < 0:
            request.state = _STARTED
            return False
        if self._trace.noting:
            self._trace.note("> RGET", -1, there.proc.rank, 0, 0, 0)
        return True

    @cfunc
    def _protocol(self, request: SendRequest) -> Protocol:
        """Choose, and register the message with the rails of direct RDMA.

        A try that found no room has done both already.
        """
        view = request.convertor.whole()
        if view is None:
            return self._protocol_of_pieces(request)
        if not request.registered:
            self._register(request, view, GET | CAN_PUT)
        flags = 0
        if request.registered:
            first: Share = request.registered[0]
            flags = first.rail.module.flags
        return choose_large(request.mode, True, flags)

    @cfunc
    def _protocol_of_pieces(self, request: SendRequest) -> Protocol:
        """A message that is not one piece of memory, but may end with a large one.

        What is before that piece, such as an object's pickle before its array, goes along with a
        RGET, if there is room for it and a rail that gets.
        """
        tail = request.convertor.tail()
        wanted = request.mode != BUFFERED and not request.bare
        if tail is not None and wanted and not request.registered:
            before: int = request.convertor.size - len(tail)
            if before <= PIECES_BEFORE and len(tail) >= PIECE_LEAST:
                self._register(request, tail, GET)
        registered = request.registered
        if registered and registered[0].rail.module.flags & GET:
            return RDMA_DIRECT_GET
        self._rdma.release(registered)
        return choose_large(request.mode, False, 0)

    @cfunc
    def _register(self, request: SendRequest, memory: memoryview, wanted: int) -> None:
        rdma = self._rdma
        rails = heaviest_first(rdma.rails.direct(request.endpoint, len(memory), wanted))
        request.registered = rdma.register_all(rails, memory, REMOTE_READ)

    @cfunc
    def _rndv(self, rail: Rail, request: SendRequest, protocol: Protocol) -> int:
        module: BtlModule = rail.module
        convertor: Convertor = request.convertor
        limit = module.eager_limit - UNION_SIZE
        size: int = first_payload(convertor.size, limit, module.rndv_eager_limit)
        flags = PRIORITY | BTL_OWNERSHIP | SIGNAL
        header: bytes = self.rndv_header(request, FLAGS[protocol])
        reserve: int = len(header)
        descriptor: Descriptor | None
        if protocol is RDMA_DIRECT_PUT or request.bare:
            descriptor = module.alloc(rail.endpoint, NO_ORDER, reserve, PRIORITY | BTL_OWNERSHIP)
            size = 0
        elif protocol is BUFFERED_PIPELINE:
            descriptor = module.alloc(rail.endpoint, NO_ORDER, reserve + size, flags)
            if descriptor is not None:
                descriptor.payload_size = convertor.pack(0, descriptor.segment[reserve:])
        else:
            descriptor = module.prepare_src(
                rail.endpoint, convertor, 0, NO_ORDER, reserve, size, flags
            )
        if descriptor is None:
            return OUT_OF_RESOURCE
        sent: int = descriptor.payload_size
        place(descriptor, header)
        result: int = self._sending.send_fragment(rail, request, descriptor, RNDV)
        if result >= 0 and protocol is BUFFERED_PIPELINE:
            self._sending.keep_rest(request, sent)
        return result

    @cfunc
    def _rget(self, request: SendRequest) -> int:
        """RDMA Direct Get, step A: the message carries all registrations.

        It goes over the first of the rails, from which the receiver knows that one; the others
        are named. What does not fit an eager fragment is left out. Bytes of the message that are
        before the registered memory come last.
        """
        share: Share = request.registered[0]
        rail: Rail = share.rail
        before: int = before_memory(request)
        data: bytes = self.rget_header(request) + wire_of(share.handle)
        if len(request.registered) > 1:
            data += _others(request.registered[1:], rail.module.eager_limit - len(data) - before)
        end: int = len(data) + before
        descriptor: Descriptor | None = rail.module.alloc(
            rail.endpoint, NO_ORDER, end, PRIORITY | BTL_OWNERSHIP | SIGNAL
        )
        if descriptor is None:
            return OUT_OF_RESOURCE
        place(descriptor, data)
        if before:
            request.convertor.pack(0, descriptor.segment[len(data) : end])
            descriptor.payload_size = before
        return self._sending.send_fragment(rail, request, descriptor, RGET)

    @ccall
    def rndv_header(self, request: SendRequest, flags: int) -> bytes:
        """The header of a RNDV."""
        flags |= FLAG_ACK | FLAG_BARE if request.bare else FLAG_ACK
        return rndv_words(
            flags,
            request.context_id,
            request.own_rank,
            request.tag,
            request.sequence,
            request.convertor.size,
            request.id,
        )

    @ccall
    def rget_header(self, request: SendRequest) -> bytes:
        """The header of a RGET."""
        flags: int = RGET_FLAGS | FLAG_WAITS if request.blocking else RGET_FLAGS
        return rget_words(
            flags | FLAG_BARE if request.bare else flags,
            request.context_id,
            request.own_rank,
            request.tag,
            request.sequence,
            request.convertor.size,
            request.id,
            self._rdma.offer(request),
            -before_memory(request),
        )


@ccall
def before_memory(request: SendRequest) -> int:
    """Bytes of a message before the piece of memory that it ends with."""
    tail = request.convertor.tail()
    return 0 if tail is None else request.convertor.size - len(tail)


@cfunc
def _others(shares: list[Share], room: int) -> bytes:
    """The registrations of the other rails that get, as many as fit."""
    data: bytes = b""
    share: Share
    for share in shares:
        record: bytes = pack_registrations([(name_of(share.rail), wire_of(share.handle))])
        if len(data) + len(record) <= room and share.rail.module.flags & GET:
            data += record
    return data
