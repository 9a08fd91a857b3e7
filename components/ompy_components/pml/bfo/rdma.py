"""FINs that say which message and which piece they are about, so that they may be sent again.

Source: seed bfo-design, section 7.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.data.request import Request
from ompy.frameworks.btl import UNREACHABLE

from ompy_components.pml.bfo.headers import FLAG_LOST, Fin, parse_fin
from ompy_components.pml.ob1.headers import FIN
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rdma import Expected, Offer, Rdma, RdmaFragment
from ompy_components.pml.ob1.rdma_put import Wanted
from ompy_components.pml.ob1.sendrequest import SendRequest

if TYPE_CHECKING:
    from ompy.mca.parameter import Values

    from ompy_components.pml.bfo.module import Bfo


class BfoRdma(Rdma):
    """The common half of put and get for one rank."""

    def __init__(self, bfo: Bfo, values: Values) -> None:
        super().__init__(bfo, values)
        self.bfo = bfo
        # offsets that FINs have told of, of offers that take more than one
        self._told: dict[int, set[int]] = {}

    def send_fin(self, fragment: RdmaFragment, fragment_id: int, size: int) -> None:
        """Tell the peer about its fragment, behind the put on the same rail."""
        context_id, own, _, sequence = _message(fragment.request)
        generation = self.bfo.generation(fragment.request)
        fin = Fin(0, context_id, own, sequence, generation, size, fragment_id, fragment.offset)
        self.bfo.control.send_on(fragment.rail, fin.pack(), FIN)

    def send_lost(self, fragment: RdmaFragment, fragment_id: int) -> None:
        """Tell the peer, over any rail, that a put was lost: it is to ask anew."""
        context_id, own, _, sequence = _message(fragment.request)
        generation = self.bfo.generation(fragment.request)
        about = (context_id, own, sequence, generation, UNREACHABLE, fragment_id, fragment.offset)
        endpoint = self.bfo.endpoint(fragment.rail.endpoint.proc)
        self.bfo.control.send(endpoint, Fin(FLAG_LOST, *about).pack(), FIN)

    def fin_arrived(self, data: memoryview) -> None:
        """A FIN, unless it is of an older generation or was told already."""
        fin = parse_fin(data)
        expected = self.expected(fin.fragment)
        if expected is None or not self._is_new(expected, fin):
            self.bfo.dropped(FIN, fin.fragment)
            return
        if fin.flags & FLAG_LOST and isinstance(expected, Wanted):
            self.bfo.receiving.puts.lost(expected)
        else:
            expected.finished(fin.size)

    def forget(self, expected: Expected) -> None:
        """No FIN will name it any more."""
        super().forget(expected)
        if self._told:
            self._told.pop(expected.id, None)

    def _is_new(self, expected: Expected, fin: Fin) -> bool:
        request = expected.request
        context_id, _, peer, sequence = _message(request)
        if (fin.context_id, fin.source, fin.sequence) != (context_id, peer, sequence):
            return False
        if isinstance(expected, Offer) and isinstance(request, SendRequest):
            if fin.size >= request.convertor.size:
                return True  # all of it: the offer ends with this
            told = self._told.setdefault(expected.id, set())
            if fin.offset in told:
                return False
            told.add(fin.offset)
        return True


def _message(request: Request) -> tuple[int, int, int, int]:
    """Context id, own rank, the peer's and the sequence number of a message."""
    if isinstance(request, SendRequest):
        return request.context_id, request.own_rank, request.source, request.sequence
    assert isinstance(request, RecvRequest)
    communicator = request.communicator
    return communicator.context_id, communicator.rank, request.source, request.sequence
