"""The sender's half of put, that knows which generation a put is of.

Source: seed bfo (6); reference openmpi.md 4.5.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy import raw
from ompy.compiled import DECLARING, Shown, ccall, cclass, cfunc
from ompy.frameworks.btl import NOT_AVAILABLE, BtlModule, Descriptor, Endpoint

from ompy_components.pml.ob1.headers import PUT, PUT_SIZE, check
from ompy_components.pml.ob1.rendezvous.rdma_put import PutWrites, Write
from ompy_components.pml.ob1.rendezvous.striping import find_rail
from ompy_components.pml.ob1.sendrequest import SendRequest
from ompy_components.pml.ob1.states import RdmaEvent

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo
    from ompy_components.pml.bfo.sending import BfoSending

if DECLARING:
    from ompy_components.pml.bfo.rail_events import Rails


@cclass
class BfoPutWrites(PutWrites):
    """Puts for one rank. A `Write` has the id of its request's generation for its own."""

    _seen: Shown[dict[int, set[int]]]
    bfo: Bfo
    rails: Rails
    sending: BfoSending
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo, sending: BfoSending) -> None:
        super().__init__(bfo, sending)
        self.bfo = bfo
        self.rails = bfo.rails
        self.sending = sending
        self._seen = {}  # the receiver's ids of pieces, by request

    @ccall
    def arrived(self, module: BtlModule, endpoint: Endpoint, data: memoryview) -> None:
        """A PUT; one that comes a second time, because a rail was lost, changes nothing."""
        if not self.rails.several(endpoint.proc) or self._is_new(data):
            PutWrites.arrived(self, module, endpoint, data)

    @cfunc
    def _is_new(self, data: memoryview) -> bool:
        check(PUT, PUT_SIZE, data)
        send_id, number = raw.word(data, 8), raw.word(data, 16)
        request = self.sending.requests.get(send_id)
        if request is None:
            return True  # ob1's half says what becomes of it
        seen = self._seen.get(send_id)
        if seen is None:
            seen = self._seen[send_id] = set()
            request.notify(partial(self._seen.pop, send_id, None))
        if number in seen:
            self.bfo.dropped(PUT, number)
            return False
        seen.add(number)
        return True

    @ccall
    def start(self, fragment: Write) -> bool:
        """Put, unless the message has been stopped meanwhile; false when there is no room now."""
        request = fragment.request
        assert isinstance(request, SendRequest)
        if not fragment.id:
            fragment.id = request.id
        elif fragment.id != request.id or request.complete:
            self.bfo.rdma.release_one(fragment)
            return True
        if find_rail(request.endpoint.rdma, fragment.rail.module) is None:
            self.bfo.rdma.release_one(fragment)
            self.fall_back(fragment, NOT_AVAILABLE)
            return True
        return PutWrites.start(self, fragment)

    @ccall
    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A BTL has completed a put. One that fails on a rail that lives is ob1's business."""
        fragment = descriptor.context
        assert isinstance(fragment, Write)
        request = fragment.request
        assert isinstance(request, SendRequest)
        stopped: bool = fragment.id != request.id
        lost: bool = status < 0 and self.rails.is_lost(endpoint.proc, module)
        if request.complete or not (stopped or lost):
            PutWrites.completed(self, module, endpoint, descriptor, status)
            return
        request.writing -= 1
        self.bfo.rdma.release_one(fragment)
        if stopped:
            self.bfo.recovery.later(partial(self.sending.ended, request))
        else:
            fragment.advance(RdmaEvent.FAILED)
            self.rails.note_bytes(endpoint.proc, fragment.size)
            self.bfo.recovery.later(partial(self._lost, fragment))

    def _lost(self, fragment: Write) -> None:
        """A put over a rail that is lost: the receiver asks anew for what lies in its own memory.

        What was registered as a whole, by both sides, is begun anew.
        """
        request = fragment.request
        assert isinstance(request, SendRequest)
        if request.complete or fragment.id != request.id or request.registered:
            self.sending.put_lost(request, fragment.id)
        else:
            self.bfo.rdma.send_lost(fragment, fragment.peer_fragment)
