"""The receiver's half of put over several rails: pieces that are short in time, and asked for anew.

A rail carries one put after the other, and what is said about a failure waits behind those that
are under way. So where there is another rail to go on over, a piece is as large as its rail brings
in `piece_ms`. A piece that was lost with its rail is asked for again over a survivor: the others
of the message go on.

Source: README.md, "Pieces".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import DECLARING, ccall, cclass
from ompy.frameworks.bml import BmlEndpoint, Rail
from ompy.frameworks.btl import PUT as CAN_PUT
from ompy.frameworks.btl import REMOTE_WRITE, BtlModule, Endpoint
from ompy.frameworks.paths.path_watch import MS
from ompy.mca.parameter import Values

from ompy_components.pml.ob1.headers import PUT, PUT_SIZE
from ompy_components.pml.ob1.matching import RecvRequest
from ompy_components.pml.ob1.rendezvous.rdma import wire_of
from ompy_components.pml.ob1.rendezvous.rdma_put import PutRequests, Wanted
from ompy_components.pml.ob1.rendezvous.striping import (
    Share,
    heaviest_first,
    put_alignment,
    share_of,
    share_out,
)
from ompy_components.pml.ob1.selection import RDMA_PIPELINE
from ompy_components.pml.ob1.states import RdmaEvent

if TYPE_CHECKING:
    from ompy_components.pml.bfo.module import Bfo
    from ompy_components.pml.bfo.receiving import BfoReceiving

if DECLARING:
    from ompy_components.pml.bfo.rail_events import Rails

LATE_MAX: Final = 8  # arbitrary: twice the pieces that are under way by default
KEPT: Final = 64  # times remembered of pieces; arbitrary: more are looked through


@cclass
class Paces:
    """How large a piece may be on each rail, after how long the last ones took.

    The time is from asking until the FIN: it holds what waits before the piece, too. A rail whose
    pieces are quick has larger ones, twice as large at most each time; one whose pieces are late
    many times in a row has smaller ones. Once says nothing: a rank that is held up is no slow rail.
    """

    _late: dict[Endpoint, int]
    _least: int
    _sizes: dict[Endpoint, int]
    aim: int
    __slots__ = tuple(__annotations__)

    def __init__(self, aim: int, least: int) -> None:
        """Begin.

        Args:
            aim: ns a piece may take; 0 for pieces of any size.
            least: bytes of the smallest.
        """
        self.aim = aim
        self._least = least
        self._sizes = {}
        self._late = {}

    @ccall
    def size(self, rail: Rail) -> int:
        """Bytes of the next piece over a rail."""
        return self._sizes.get(rail.endpoint, self._least)

    @ccall
    def took(self, rail: Rail, size: int, time: int) -> None:
        """A piece of `size` bytes has taken `time` ns."""
        now: int = self.size(rail)
        late: int = 0
        if time > self.aim:
            late = self._late.get(rail.endpoint, 0) + 1
            if late == LATE_MAX:
                now, late = max(self._least, min(now, size * self.aim // time)), 0
        elif 2 * time < self.aim and size >= now:
            now *= 2
        self._sizes[rail.endpoint], self._late[rail.endpoint] = now, late


@cclass
class BfoPutRequests(PutRequests):
    """Asks for pieces, for one rank."""

    _asked: dict[int, int]
    _most_rails: int
    bfo: Bfo
    paces: Paces
    rails: Rails
    receiving: BfoReceiving
    __slots__ = tuple(__annotations__)

    def __init__(self, bfo: Bfo, receiving: BfoReceiving, values: Values) -> None:
        super().__init__(bfo, receiving, values.recv_pipeline_depth)
        self.bfo = bfo
        self.receiving = receiving
        self.rails = bfo.rails
        self.paces = Paces(values.piece_ms * MS, values.piece_least)
        self._most_rails = values.max_rdma_per_request
        self._asked = {}

    # -- short pieces

    @ccall
    def limit(self, share: Share) -> int:
        """Bytes of the next piece at most; 0 for any number."""
        limit: int = PutRequests.limit(self, share)
        rail: Rail = share.rail
        if not self.paces.aim or not self.rails.several(rail.endpoint.proc):
            return limit
        size: int = self.paces.size(rail)
        return min(limit, size) if limit else size

    @ccall
    def asked(self, fragment: Wanted) -> None:
        """A piece was asked for: how long it takes decides on the next ones."""
        if self.rails.several(fragment.rail.endpoint.proc):
            if len(self._asked) >= KEPT:
                rdma = self.bfo.rdma
                self._asked = {n: at for n, at in self._asked.items() if rdma.expected(n)}
            self._asked[fragment.id] = self.bfo.engine.now()

    @ccall
    def finished(self, fragment: Wanted, size: int) -> None:
        """A FIN: the piece is here, or it will come as FRAGs."""
        if self._asked:
            asked = self._asked.pop(fragment.id, 0)
            if asked and size > 0:
                self.paces.took(fragment.rail, size, self.bfo.engine.now() - asked)
        PutRequests.finished(self, fragment, size)

    # -- what was lost with a rail

    def lost(self, fragment: Wanted) -> None:
        """The sender says that a put was lost: ask for the piece anew, under another id."""
        request = fragment.request
        assert isinstance(request, RecvRequest)
        self.bfo.rdma.forget(fragment)
        self.bfo.rdma.release_one(fragment)
        fragment.advance(RdmaEvent.FAILED)
        incoming = request.incoming
        assert incoming is not None
        incoming.outstanding -= 1
        proc = fragment.rail.endpoint.proc
        self.rails.note_message(proc)
        rail = self._survivor(proc.bml_endpoint, fragment.rail.module)
        again = share_of(rail, 0, None) if rail is not None else None
        if again is None or not self.ask(request, again, fragment.offset, fragment.size):
            self.receiving.ask_for_fragments(request, fragment.offset, fragment.size)

    def ask_again(self, fragment: Wanted, message: bytes) -> bool:
        """A PUT may not have arrived: send it over another rail, under the same id.

        The sender does what it has heard twice once, and says it when that was over the dead rail.

        Returns:
            Whether it could be: the piece lies in a registration of its own, and a rail is left.
        """
        if fragment.handle is None:
            return False
        old = fragment.rail
        proc = old.endpoint.proc
        rail = self._survivor(proc.bml_endpoint, old.module)
        if rail is None:
            return False
        request = fragment.request
        assert isinstance(request, RecvRequest)
        incoming = request.incoming
        assert incoming is not None
        memory = incoming.view[fragment.offset : fragment.offset + fragment.size]
        handle = self.bfo.rdma.register(rail, memory, REMOTE_WRITE)
        if handle is None:
            return False
        # the sender may have heard the first, and its rail may live there for a while yet: what it
        # writes then has its place until the message is whole
        incoming.shares.append(share_of(old, 0, fragment.handle))
        fragment.rail, fragment.handle = rail, handle
        self._asked.pop(fragment.id, None)
        self.rails.note_message(proc)
        self.bfo.control.send_on(rail, message[:PUT_SIZE] + wire_of(handle), PUT)
        return True

    def _survivor(self, endpoint: object, module: BtlModule) -> Rail | None:
        """A rail that can put, another one than was lost if there is any."""
        if not isinstance(endpoint, BmlEndpoint):
            return None
        able = [rail for rail in endpoint.rdma.in_turn() if rail.module.flags & CAN_PUT]
        others = [rail for rail in able if rail.module is not module]
        return next(iter(others or able), None)

    # -- what has not been asked for yet

    def rails_changed(self, request: RecvRequest, endpoint: BmlEndpoint) -> bool:
        """Share what is left of a message out anew: a rail has gone, or has come back.

        Returns:
            Whether it could be; what was registered as a whole stays with its rails.
        """
        incoming = request.incoming
        if incoming is None or request.protocol is not RDMA_PIPELINE:
            return False
        left = sum(share.left for share in incoming.shares)
        if not left:
            return True
        able = [rail for rail in endpoint.rdma.in_turn() if rail.module.flags & CAN_PUT]
        rails = heaviest_first(able[: self._most_rails])
        if not rails:
            offset, incoming.offset = incoming.offset, incoming.offset + left
            for share in incoming.shares:
                share.left = 0
            self.receiving.ask_for_fragments(request, offset, left)
            return True
        kept = [share for share in incoming.shares if share.handle is not None]
        shares = [share_of(rail, 0, None) for rail in rails]
        parts = share_out(rails, left, put_alignment(shares))
        for share, part in zip(shares, parts, strict=True):
            share.left = part
        incoming.shares = shares + kept
        self.schedule(request)
        return True
