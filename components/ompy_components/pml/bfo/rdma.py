"""FINs that say which message and which piece they are about, so that they may be sent again.

Source: seed bfo (7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ompy.compiled import U64, Shown, ccall, cclass, cfunc
from ompy.data.request import Request
from ompy.frameworks.btl import UNREACHABLE

from ompy_components.pml.bfo.headers import FLAG_LOST, Fin, fin_words, parse_fin
from ompy_components.pml.ob1.headers import FIN
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rendezvous.rdma import Expected, Offer, Rdma, RdmaFragment
from ompy_components.pml.ob1.rendezvous.rdma_put import Wanted
from ompy_components.pml.ob1.sendrequest import SendRequest

if TYPE_CHECKING:
    from ompy.mca.parameter import Values

    from ompy_components.pml.bfo.module import Bfo


class Restart(Protocol):
    """What either half knows of a message that was begun anew."""

    generation: int


@cclass
class BfoRdma(Rdma):
    """The common half of put and get for one rank."""

    _told: Shown[dict[int, set[int]]]
    bfo: Bfo
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo, values: Values) -> None:
        super().__init__(bfo, values)
        self.bfo = bfo
        # offsets that FINs have told of, of offers that take more than one
        self._told = {}

    @ccall
    def send_fin(self, fragment: RdmaFragment, fragment_id: U64, size: int) -> None:
        """Tell the peer about its fragment, behind the put on the same rail."""
        self._control.send_on(fragment.rail, self._fin(0, fragment, fragment_id, size), FIN)

    @ccall
    def send_lost(self, fragment: RdmaFragment, fragment_id: U64) -> None:
        """Tell the peer, over any rail, that a put was lost: it is to ask anew."""
        endpoint = self.bfo.endpoint(fragment.rail.endpoint.proc)
        fin = self._fin(FLAG_LOST, fragment, fragment_id, UNREACHABLE)
        self._control.send(endpoint, fin, FIN)

    @cfunc
    def _fin(self, flags: int, fragment: RdmaFragment, fragment_id: U64, size: int) -> bytes:
        request: Request = fragment.request
        at: int = fragment.offset
        if isinstance(request, SendRequest):
            sent: SendRequest = request
            generation: U64 = _generation(self.bfo.sending.restarts, sent)
            context_id: int = sent.context_id
            own: int = sent.own_rank
            number: int = sent.sequence
        else:
            assert isinstance(request, RecvRequest)
            posted: RecvRequest = request
            generation = _generation(self.bfo.receiving.restarts, posted)
            context_id, own = posted.communicator.context_id, posted.communicator.rank
            number = posted.sequence
        return fin_words(flags, context_id, own, number, generation, size, fragment_id, at)

    @ccall
    def fin_arrived(self, data: memoryview) -> None:
        """A FIN, unless it is of an older generation or was told already."""
        fin: Fin = parse_fin(data)
        expected: Expected | None = self.expected(fin.fragment)
        if expected is None or not self._is_new(expected, fin):
            self.bfo.dropped(FIN, fin.fragment)
            return
        if fin.flags & FLAG_LOST and isinstance(expected, Wanted):
            self.bfo.receiving.puts.lost(expected)
        else:
            expected.finished(fin.size)

    @ccall
    def forget(self, expected: Expected) -> None:
        """No FIN will name it any more."""
        Rdma.forget(self, expected)
        if self._told:
            self._told.pop(expected.id, None)

    @cfunc
    def _is_new(self, expected: Expected, fin: Fin) -> bool:
        request: Request = expected.request
        if not _is_of(fin, request):
            return False
        if isinstance(expected, Offer) and isinstance(request, SendRequest):
            if fin.size >= request.convertor.size:
                return True  # all of it: the offer ends with this
            told = self._told.setdefault(expected.id, set())
            if fin.offset in told:
                return False
            told.add(fin.offset)
        return True


@cfunc
def _is_of(fin: Fin, request: Request) -> bool:
    """Whether a FIN is about the message that its peer knows by this request."""
    if isinstance(request, SendRequest):
        sent: SendRequest = request
        context_id: int = sent.context_id
        number: int = sent.sequence
    else:
        assert isinstance(request, RecvRequest)
        posted: RecvRequest = request
        context_id, number = posted.communicator.context_id, posted.sequence
    about = fin.context_id == context_id and fin.sequence == number
    return about and fin.source == request.source


@cfunc
def _generation(restarts: dict[Any, Any], request: Request) -> U64:
    """A message's restart sequence number."""
    restart: Restart | None = restarts.get(request) if restarts else None
    return restart.generation if restart is not None else 0
