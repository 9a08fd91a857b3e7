"""rdma for one window: puts and gets over BTLs, all else by messages."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from ompy.data.convertor import allocate_memory
from ompy.data.errors import MPIError
from ompy.data.message import Message
from ompy.data.packed import in_place
from ompy.data.request import Request
from ompy.frameworks.btl import BtlModule
from ompy.frameworks.osc import ALLOCATED, Place, Window
from ompy.frameworks.osc_base.module import MessageOsc
from ompy.frameworks.osc_base.pending import Pending

from ompy_components.osc.rdma.changes import Changing, change_of
from ompy_components.osc.rdma.reachable_btls import Ways
from ompy_components.osc.rdma.transfers import Transfer, Transfers

# until it polls: who only copies would never hear that the target has left; arbitrary: a poll costs
# little beside so many
COPIES: Final = 16


class RdmaOsc(MessageOsc):
    """What lies in one piece at both ends is put and got by a BTL, if one can.

    Attributes:
        ways: to the members' memory.
        transfers: under way.
    """

    def __init__(self, window: Window, inline_max: int, able: Collection[BtlModule]) -> None:
        """Register this rank's part and learn of the others'; all members call it."""
        communicator = window.communicator
        if window.flavor == ALLOCATED:
            window.memory = allocate_memory(window.sizes[communicator.rank])
        self.transfers = Transfers(communicator.context.engine, self._again)
        self._changing: dict[int, Request] = {}  # the last atomic, by target
        self._copies = 0  # since the last poll
        self.ways = Ways(communicator, window.memory, able)
        super().__init__(window, inline_max)

    def close(self) -> None:
        """Give the registrations back."""
        super().close()
        with self._engine.lock:
            self.transfers.close()
            self.ways.close()

    def shared(self, rank: int) -> memoryview | None:
        """This rank's own part only."""
        return self.window.memory if rank == self.rank else None

    def put(self, source: Message, target: int, place: Place) -> Request:
        """Over a BTL, or else as a PUT."""
        begun = self._direct(source, target, place, puts=True)
        return super().put(source, target, place) if begun is None else begun

    def get(self, into: Message, target: int, place: Place) -> Request:
        """Over a BTL, or else as a GET."""
        begun = self._direct(into, target, place, puts=False)
        return super().get(into, target, place) if begun is None else begun

    def _direct(self, message: Message, target: int, place: Place, *, puts: bool) -> Request | None:
        """Begin a put or get over a BTL; None where there is no way for it."""
        local, at = in_place(message), _place(place)
        if target == self.rank or local is None or at < 0 or not len(local):
            return None
        self._reach(target)
        with self._engine.lock:
            peer, pending = self.peer(target), Pending()
            transfer = Transfer(peer, pending, message, place, puts=puts, local=local, at=at)
            way = self.ways.find(target, transfer.need, at, len(local), ())
            if way is None:
                return None
            self.transfers.begin_move(transfer, way)
            if not transfer.whole.complete:
                pending.follow(transfer.whole)
                return peer.opened(pending)
        # it was a copy; what fails is never known so early
        self._copies += 1
        if self._copies >= COPIES:
            self._copies = 0
            self._engine.progress()
            if self._communicator.procs[target].left:
                raise self._has_ended(target)
        return transfer.whole

    def accumulate(self, source: Message, target: int, place: Place, operation: str) -> Request:
        """As an atomic of a BTL, or else as an ACCUMULATE."""
        begun = self._change(target, place, operation, source)
        return super().accumulate(source, target, place, operation) if begun is None else begun

    def fetch(
        self, source: Message | None, into: Message, target: int, place: Place, operation: str
    ) -> Request:
        """As an atomic of a BTL, or else as a FETCH."""
        begun = self._change(target, place, operation, source, into)
        return super().fetch(source, into, target, place, operation) if begun is None else begun

    def swap(
        self, source: Message, compare: Message, into: Message, target: int, place: Place
    ) -> Request:
        """As an atomic of a BTL, or else as a SWAP."""
        begun = self._change(target, place, "", source, into, compare)
        return super().swap(source, compare, into, target, place) if begun is None else begun

    def _change(
        self,
        target: int,
        place: Place,
        operation: str,
        source: Message | None,
        into: Message | None = None,
        compare: Message | None = None,
    ) -> Request | None:
        """Begin an atomic, or return None: it is to be a message.

        Accumulates of one origin are made in order. So this waits for the atomic before it; and
        where a message has gone there that nothing was heard of since, a message follows it.
        """
        last = self._changing.pop(target, None)
        if last is not None and not last.complete:
            self._engine.wait(last)
        change = change_of(source, compare, place, _place(place), operation)
        if change is None or target == self.rank or self._communicator.context.fails_over:
            return None
        self._reach(target)
        with self._engine.lock:
            peer = self.peer(target)
            fetch = into is not None
            way = self.ways.find_atomic(target, change.op, change.kind, fetch=fetch)
            if peer.written or peer.awaited or way is None:
                return None
            changing, pending = Changing(peer, into), Pending()
            if not changing.begin_change(pending, change, way):
                return None
            self._changing[target] = changing.done
            return peer.opened(pending)

    def _again(self, transfer: Transfer) -> None:
        """A way has failed: take another, then a message, whose failure is the operation's."""
        peer = transfer.peer
        size = len(transfer.local)
        way = self.ways.find(peer.rank, transfer.need, transfer.at, size, transfer.tried)
        trace = self._communicator.context.trace
        if trace.active:
            over = "messages" if way is None else way.module.name
            trace.record("osc.rdma", "AGAIN", peer=peer.rank, size=size, over=over)
        if way is not None:
            self.transfers.begin_move(transfer, way)
            return
        try:
            if transfer.puts:
                self._send_put(peer, transfer.pending, transfer.message, transfer.place)
            else:
                self._send_get(peer, transfer.pending, transfer.message, transfer.place)
        except MPIError as problem:
            transfer.whole.fail(problem.code, problem.detail)
        else:
            transfer.whole.finish()


def _place(place: Place) -> int:
    """The byte of the target's part where a place begins, if it is in one piece there; else -1."""
    return Message(memoryview(b""), place.displacement, place.number, place.layout).place()
