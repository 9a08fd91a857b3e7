"""What arrives, handed to the protocol that it belongs to by its header type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import raw
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.btl import BtlModule, Endpoint, ReceiveCallback
from ompy.frameworks.btl_base.lent_payload import LentPayload

from ompy_components.pml.ob1.flow import Flow
from ompy_components.pml.ob1.headers import ACK, ARRIVED, CREDIT, FIN, FRAG, MATCH, PUT, RGET, RNDV
from ompy_components.pml.ob1.receiving import Receiving
from ompy_components.pml.ob1.rendezvous.rdma import Rdma
from ompy_components.pml.ob1.sending import Sending

if TYPE_CHECKING:
    from ompy_components.pml.ob1.module import Ob1

if DECLARING:
    from ompy.trace.sink import Trace


@cclass
class Arrivals(ReceiveCallback):
    """Dispatches fragments by their header type."""

    _flow: Flow
    _rdma: Rdma
    _receiving: Receiving
    _sending: Sending
    _trace: Trace
    __slots__ = tuple(__annotations__)

    def __init__(self, ob1: Ob1) -> None:
        self._trace = ob1.trace
        self._sending = ob1.sending
        self._receiving = ob1.receiving
        self._rdma = ob1.rdma
        self._flow = ob1.flow

    @ccall
    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """Hand a fragment to the protocol it belongs to."""
        if tag == MATCH:
            self._receiving.match_arrived(data)
        else:
            self._other(module, endpoint, tag, data)
        if self._receiving.orphaned:
            self._orphan(endpoint)

    @ccall
    def lent(
        self,
        module: BtlModule,
        endpoint: Endpoint,
        tag: int,
        header: memoryview,
        payload: LentPayload,
    ) -> None:
        """An eager message whose payload is still at its sender."""
        if tag != MATCH:
            ReceiveCallback.lent(self, module, endpoint, tag, header, payload)
            return
        self._receiving.match_eager(header, payload.size, payload)
        if self._receiving.orphaned:
            self._orphan(endpoint)

    @cfunc
    def _other(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        if tag == RNDV:
            self._receiving.rndv_arrived(data)
            return
        if tag == RGET:
            self._receiving.rget_arrived(module, data)
            return
        if self._trace.noting:
            self._trace.note(ARRIVED[tag], -1, endpoint.proc.rank, 0, 0, raw.size(data))
        if tag == FRAG:
            self._receiving.fragment_arrived(data)
        elif tag == ACK:
            self._sending.streaming.acknowledged(data)
        elif tag == PUT:
            self._sending.puts.arrived(module, endpoint, data)
        elif tag == FIN:
            self._rdma.fin_arrived(data)
        elif tag == CREDIT:
            self._flow.credit_arrived(endpoint.proc, data)
        else:
            raise MPIError(ERR_INTERN, f"ob1: a fragment of unknown type {tag}")

    @cfunc
    def _orphan(self, endpoint: Endpoint) -> None:
        """What has just come is of a communicator that is not here yet."""
        self._receiving.orphaned = False
        self._flow.orphan_came(endpoint.proc)
