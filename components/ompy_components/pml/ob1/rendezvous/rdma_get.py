"""Get: the receiver reads the message out of the sender's memory.

What a rail cannot get is asked for by PUT where the rail can put, else as FRAGs. The sender's half
is small: it is told by FINs, see `Offer` and `Rdma.got`.

Source: seed ob1 (RDMA Direct Get), steps C to G; reference openmpi.md 3.6.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.frameworks.bml import Rail
from ompy.frameworks.btl import (
    COMPLETED,
    NO_ORDER,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl import PUT as CAN_PUT

from ompy_components.pml.ob1.diagnosis.steps import READ
from ompy_components.pml.ob1.fragment import RemoteMemory
from ompy_components.pml.ob1.halves import ReceiverHalf
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rendezvous.rdma import RdmaFragment
from ompy_components.pml.ob1.rendezvous.rdma_put import PutRequests
from ompy_components.pml.ob1.rendezvous.striping import Share, get_alignment, next_share, piece_of
from ompy_components.pml.ob1.states import RdmaEvent

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.trace.sink import Trace

    from ompy_components.pml.ob1.rendezvous.rdma import Rdma
    from ompy_components.pml.ob1.rendezvous.rdma_put import Incoming

# members of enums are found by a call; every message asks for these
_STARTED: Final = RdmaEvent.STARTED
_MOVED: Final = RdmaEvent.MOVED


@cclass
class Read(RdmaFragment):
    """A piece that this rank reads."""

    __slots__ = ()


@cclass
class Gets(CompletionCallback):
    """The receiver's half of get for one rank."""

    _ob1: Ob1
    _puts: PutRequests
    _rdma: Rdma
    _receiver: ReceiverHalf
    _trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1, receiver: ReceiverHalf, puts: PutRequests) -> None:
        self._ob1 = ob1
        self._receiver = receiver
        self._puts = puts
        self._rdma = ob1.rdma
        self._trace = ob1.trace

    @ccall
    def proceed(self, request: RecvRequest, remote: RemoteMemory) -> bool:
        """Start to read all that is left (step C); false when no rail has room now."""
        incoming: Incoming | None = request.incoming
        assert incoming is not None
        alignment: int = get_alignment(incoming.shares)
        full: list[Share] = []
        share: Share | None = next_share(incoming.shares, alignment, full)
        while share is not None and not request.complete:
            module: BtlModule = share.rail.module
            size: int = piece_of(share.left, module.get_limit, module.get_alignment)
            offset: int = incoming.offset
            result: int = self._get(request, share, remote, offset, size)
            if result == OUT_OF_RESOURCE:
                full.append(share)
            else:
                share.left -= size
                incoming.offset += size
                if result < 0:
                    self._otherwise(request, share, offset, size, result)
            share = next_share(incoming.shares, alignment, full)
        return request.complete or not full

    @ccall
    def begin(self, request: RecvRequest, remote: RemoteMemory) -> None:
        """Start to read; the pending queue goes on when there is no room."""
        if not self.proceed(request, remote):
            room_on = remote.module
            self._ob1.pending.rdma(partial(self.proceed, request, remote), room_on)

    @cfunc
    def _get(
        self, request: RecvRequest, share: Share, remote: RemoteMemory, offset: int, size: int
    ) -> int:
        incoming: Incoming | None = request.incoming
        assert incoming is not None
        fragment: Read = Read.__new__(Read)
        fragment.plan(request, share.rail, offset, size)
        fragment.advance(_STARTED)
        fragment.id = remote.fragment_id  # the sender's: a FIN back names it
        incoming.outstanding += 1
        began = self._trace.clock() if self._trace.active else 0
        rail: Rail = share.rail
        view = incoming.view
        result: int = rail.module.get(
            rail.endpoint,
            view if size == len(view) else view[offset : offset + size],
            remote.address + offset,
            share.handle,
            share.remote,
            0,
            NO_ORDER,
            self,
            fragment,
        )
        if result < 0:
            incoming.outstanding -= 1
            return result
        if self._trace.active:
            self._ob1.steps.receiver(
                request, READ, at=began, offset=offset, size=size, rail=share.rail.module
            )
        if result == COMPLETED:
            self._done(fragment, 0)
        return result

    @ccall
    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A BTL has completed a get."""
        fragment = descriptor.context
        assert isinstance(fragment, Read)
        self._done(fragment, status)

    @cfunc
    def _done(self, fragment: Read, status: int) -> None:
        """Step D: tell the sender, and complete the receive when all is here."""
        request = fragment.request
        assert isinstance(request, RecvRequest)
        if request.complete:
            return  # its peer is lost
        incoming: Incoming | None = request.incoming
        assert incoming is not None
        incoming.outstanding -= 1
        if status < 0:
            fragment.advance(RdmaEvent.FAILED)
            self._receiver.ask_for_fragments(request, fragment.offset, fragment.size)
            return
        fragment.advance(_MOVED)
        if self._trace.active:
            self._ob1.steps.receiver(request, "FIN", offset=fragment.offset, size=fragment.size)
        self._rdma.send_fin(fragment, fragment.id, fragment.size)
        request.arrived += fragment.size
        request.received += fragment.size
        self._receiver.finish_if_here(request)

    @cfunc
    def _otherwise(
        self, request: RecvRequest, share: Share, offset: int, size: int, result: int
    ) -> None:
        """What cannot be got is asked for: by PUT when it is only not available, or as FRAGs."""
        rail: Rail = share.rail
        module: BtlModule = rail.module
        if result != NOT_AVAILABLE or not module.flags & CAN_PUT:
            self._receiver.ask_for_fragments(request, offset, size)
            return
        end: int = offset + size
        while offset < end:
            piece: int = piece_of(end - offset, module.put_limit, module.put_alignment)
            self._puts.ask(request, share, offset, piece)
            offset += piece
