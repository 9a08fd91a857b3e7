"""The sender's first fragment of a rendezvous: RNDV or RGET, with what the receiver has to know.

Source: seed ob1-protocols, step A of every rendezvous protocol; reference openmpi.md 3.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import (
    BTL_OWNERSHIP,
    GET,
    NO_ORDER,
    OUT_OF_RESOURCE,
    PRIORITY,
    REMOTE_READ,
    SIGNAL,
    Descriptor,
)
from ompy.frameworks.btl import PUT as CAN_PUT

from ompy_components.pml.ob1.halves import SenderHalf
from ompy_components.pml.ob1.headers import (
    FLAG_ACK,
    FLAG_CONTIG,
    FLAG_PIN,
    FLAG_SIGNAL,
    FLAG_WAITS,
    RGET,
    RNDV,
    RNDV_HEADER,
    RNDV_SIZE,
    UNION_SIZE,
    pack_registrations,
    place,
    rget_words,
)
from ompy_components.pml.ob1.rails import Share, heaviest_first, name_of
from ompy_components.pml.ob1.rdma import wire_of
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

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

# what the RNDV says of the sender's memory; seed, step A of each protocol
FLAGS = {
    RDMA_DIRECT_PUT: FLAG_CONTIG | FLAG_PIN | FLAG_SIGNAL,
    SEND_RECEIVE_PIPELINE: FLAG_SIGNAL,
    RDMA_PIPELINE: FLAG_CONTIG,
    BUFFERED_PIPELINE: 0,
}
RGET_FLAGS = FLAG_ACK | FLAG_CONTIG | FLAG_PIN


class RendezvousSend:
    """Begins rendezvous for one rank."""

    __slots__ = ("_ob1", "_rdma", "_sending", "_trace")

    def __init__(self, ob1: Ob1, sending: SenderHalf) -> None:
        self._ob1 = ob1
        self._rdma = ob1.rdma
        self._trace = ob1.trace
        self._sending = sending

    def start(self, rail: Rail, request: SendRequest, protocol: Protocol | None) -> int:
        """Send the first fragment; the result is the BTL's.

        Args:
            rail: an eager rail in turn.
            request: the message.
            protocol: it takes; None to choose one for a large message.
        """
        self._sending.open_rendezvous(request)
        if protocol is None:
            protocol = self._protocol(request)
        request.protocol = protocol
        if self._trace.active:
            self._ob1.steps.candidate(request, protocol, rail)
        if protocol is RDMA_DIRECT_GET:
            return self._rget(request)
        return self._rndv(rail, request, protocol)

    def _protocol(self, request: SendRequest) -> Protocol:
        """Choose, and register the message with the rails of direct RDMA.

        A try that found no room has done both already.
        """
        view = request.convertor.view
        if view is not None and not request.registered:
            rdma = self._rdma
            rails = heaviest_first(rdma.rails.direct(request.endpoint, len(view), GET | CAN_PUT))
            request.registered = rdma.register_all(rails, view, REMOTE_READ)
        flags = 0
        if request.registered:
            first = request.registered[0]
            flags = first.rail.module.flags
        return choose_large(request.mode, view is not None, flags)

    def _rndv(self, rail: Rail, request: SendRequest, protocol: Protocol) -> int:
        module = rail.module
        convertor = request.convertor
        limit = module.eager_limit - UNION_SIZE
        size = first_payload(convertor.size, limit, module.rndv_eager_limit)
        flags = PRIORITY | BTL_OWNERSHIP | SIGNAL
        descriptor: Descriptor | None
        if protocol is RDMA_DIRECT_PUT:
            descriptor = module.alloc(rail.endpoint, NO_ORDER, RNDV_SIZE, PRIORITY | BTL_OWNERSHIP)
            size = 0
        elif protocol is BUFFERED_PIPELINE:
            descriptor = module.alloc(rail.endpoint, NO_ORDER, RNDV_SIZE + size, flags)
            if descriptor is not None:
                descriptor.payload_size = convertor.pack(0, descriptor.segment[RNDV_SIZE:])
        else:
            descriptor = module.prepare_src(
                rail.endpoint, convertor, 0, NO_ORDER, RNDV_SIZE, size, flags
            )
        if descriptor is None:
            return OUT_OF_RESOURCE
        sent = descriptor.payload_size
        place(descriptor, self.rndv_header(request, FLAGS[protocol]))
        result = self._sending.send_fragment(rail, request, descriptor, RNDV)
        if result >= 0 and protocol is BUFFERED_PIPELINE:
            convertor.keep(sent)
        return result

    def _rget(self, request: SendRequest) -> int:
        """RDMA Direct Get, step A: the message carries all registrations.

        It goes over the first of the rails, from which the receiver knows that one; the others
        are named. What does not fit an eager fragment is left out.
        """
        share = request.registered[0]
        rail = share.rail
        data = self.rget_header(request) + wire_of(share.handle)
        if len(request.registered) > 1:
            data += _others(request.registered[1:], rail.module.eager_limit - len(data))
        descriptor = rail.module.alloc(
            rail.endpoint, NO_ORDER, len(data), PRIORITY | BTL_OWNERSHIP | SIGNAL
        )
        if descriptor is None:
            return OUT_OF_RESOURCE
        place(descriptor, data)
        return self._sending.send_fragment(rail, request, descriptor, RGET)

    def rndv_header(self, request: SendRequest, flags: int) -> bytes:
        """The header of a RNDV."""
        return RNDV_HEADER.pack(
            RNDV,
            FLAG_ACK | flags,
            request.context_id,
            request.own_rank,
            request.tag,
            request.sequence,
            request.convertor.size,
            request.id,
        )

    def rget_header(self, request: SendRequest) -> bytes:
        """The header of a RGET; the message begins where the registered memory does."""
        return rget_words(
            RGET_FLAGS | FLAG_WAITS if request.blocking else RGET_FLAGS,
            request.context_id,
            request.own_rank,
            request.tag,
            request.sequence,
            request.convertor.size,
            request.id,
            self._rdma.offer(request),
        )


def _others(shares: list[Share], room: int) -> bytes:
    """The registrations of the other rails that get, as many as fit."""
    data = b""
    for share in shares:
        record = pack_registrations([(name_of(share.rail), wire_of(share.handle))])
        if len(data) + len(record) <= room and share.rail.module.flags & GET:
            data += record
    return data
