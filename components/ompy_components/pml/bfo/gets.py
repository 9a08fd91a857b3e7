"""The receiver's half of get: one that fails with its rail has the message begun anew.

Source: seed bfo (6); reference openmpi.md 4.6.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ompy.compiled import DECLARING, ccall, cclass
from ompy.frameworks.btl import BtlModule, Descriptor, Endpoint

from ompy_components.pml.ob1.fragment import RemoteMemory
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rendezvous.rdma_get import Gets, Read
from ompy_components.pml.ob1.rendezvous.rdma_put import PutRequests
from ompy_components.pml.ob1.states import RdmaEvent

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo
    from ompy_components.pml.bfo.receiving import BfoReceiving

if DECLARING:
    from ompy_components.pml.bfo.rail_events import Rails


@cclass
class BfoGets(Gets):
    """Gets for one rank."""

    bfo: Bfo
    rails: Rails
    receiving: BfoReceiving
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo, receiving: BfoReceiving, puts: PutRequests) -> None:
        super().__init__(bfo, receiving, puts)
        self.bfo = bfo
        self.rails = bfo.rails
        self.receiving = receiving

    @ccall
    def begin(self, request: RecvRequest, remote: RemoteMemory) -> None:
        """Start to read; what waits for room is for this generation only."""
        if not self.proceed(request, remote):
            again = partial(self._again, request, request.id, remote)
            self.bfo.pending.rdma(again, remote.module)

    def _again(self, request: RecvRequest, number: int, remote: RemoteMemory) -> bool:
        stopped = request.complete or request.id != number or request in self.receiving.dancing
        return stopped or self.proceed(request, remote)

    @ccall
    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A BTL has completed a get. One that fails on a rail that lives is ob1's business."""
        fragment = descriptor.context
        assert isinstance(fragment, Read)
        request = fragment.request
        assert isinstance(request, RecvRequest)
        stopped: bool = request in self.receiving.dancing
        lost: bool = status < 0 and self.rails.is_lost(endpoint.proc, module)
        if request.complete or not (stopped or lost):
            Gets.completed(self, module, endpoint, descriptor, status)
            return
        assert request.incoming is not None
        request.incoming.outstanding -= 1
        fragment.advance(RdmaEvent.FAILED if status < 0 else RdmaEvent.MOVED)
        if stopped:
            self.bfo.recovery.later(partial(self.receiving.ended, request))
        else:
            self.bfo.recovery.later(partial(self.receiving.failed, request, request.id))
