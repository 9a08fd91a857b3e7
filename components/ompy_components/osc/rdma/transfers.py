"""Puts and gets under way over BTLs: pieces, what has to be tried again, and what fails.

A transfer is complete when every piece of it is. One whose way fails is made again from its
beginning, when all pieces under way have ended: a put writes the same bytes, a get reads them
once more, before the epoch that both belong to ends. The rank's lock is held in all calls.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from ompy.data.message import Message
from ompy.data.request import Request
from ompy.engine.base import Engine, Poller
from ompy.frameworks.btl import (
    COMPLETED,
    GET,
    LOCAL_WRITE,
    NO_ORDER,
    OUT_OF_RESOURCE,
    QUEUED,
    REMOTE_READ,
    REMOTE_WRITE,
    RESOURCE_BUSY,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.osc import Place
from ompy.frameworks.osc_base.pending import Peer, Pending

from ompy_components.osc.rdma.reachable_btls import PUTS, Way

REFUSED_NOW: Final = (OUT_OF_RESOURCE, RESOURCE_BUSY)
# what local memory is registered for, where a module wants that: as ob1 does for its pieces
TO_READ: Final = REMOTE_READ
TO_WRITE: Final = LOCAL_WRITE | REMOTE_WRITE


class Transfer:
    """One put or get.

    Attributes:
        puts: it is a put.
        peer, pending: the target, and the operation that it is of.
        message, place: this rank's side and the target's.
        local, at: the same in one piece: memory here, byte of the target's part.
        whole: done when all bytes are moved, over BTLs or else.
        way: it takes now.
        tried: modules that have failed it.
    """

    __slots__ = (
        "at",
        "begun",
        "busy",
        "failed",
        "handle",
        "local",
        "message",
        "peer",
        "pending",
        "place",
        "puts",
        "queued",
        "tried",
        "under_way",
        "way",
        "whole",
    )

    def __init__(
        self,
        peer: Peer,
        pending: Pending,
        message: Message,
        place: Place,
        *,
        puts: bool,
        local: memoryview,
        at: int,
    ) -> None:
        self.puts = puts
        self.peer = peer
        self.pending = pending
        self.message = message
        self.place = place
        self.local = local
        self.at = at
        self.whole = Request()
        self.tried: list[BtlModule] = []
        self.way: Way | None = None
        self.handle: object = None
        self.queued = self.busy = False
        self.restart()

    @property
    def need(self) -> int:
        """Flags of a module that can do it."""
        return PUTS if self.puts else GET

    def restart(self) -> None:
        """Nothing of it is moved."""
        self.begun = self.under_way = 0
        self.failed = False


class Transfers(Poller):
    """All transfers of one window. It polls itself while some have to be tried again.

    Attributes:
        retried: transfers that a way has failed, for tests.
    """

    __slots__ = ("_again", "_done", "_engine", "_polled", "_waiting", "retried")

    def __init__(self, engine: Engine, again: Callable[[Transfer], object]) -> None:
        """Make it; `again` finds another way for a transfer that has failed, from a poll."""
        self._engine = engine
        self._again = again
        self._waiting: deque[Transfer] = deque()
        self._polled = False
        self._done = _Done(self)
        self.retried = 0

    def begin_move(self, transfer: Transfer, way: Way) -> None:
        """Move it over a way."""
        transfer.way = way
        transfer.restart()
        self._go_on(transfer)

    def _go_on(self, transfer: Transfer) -> int:
        """Begin pieces as long as the BTL takes them. Returns how many."""
        begun = 0
        transfer.busy = True
        while transfer.begun < len(transfer.local) and not transfer.failed:
            size, result = self._piece(transfer)
            if result in REFUSED_NOW:
                self._later(transfer)
                break
            if result < 0:
                transfer.failed = True
                break
            transfer.begun += size
            begun += 1
        transfer.busy = False
        self._settle(transfer)
        return begun

    def _piece(self, transfer: Transfer) -> tuple[int, int]:
        """Begin the next piece: its bytes, and what the BTL says."""
        way = transfer.way
        assert way is not None, "it was begun"
        module, local = way.module, transfer.local
        limit, align = module.get_limit, module.get_alignment
        call = module.get
        if transfer.puts:
            limit, align, call = module.put_limit, module.put_alignment, module.put
        size = len(local) - transfer.begun
        if limit:
            size = min(size, limit - limit % max(align, 1))
        if len(local) > module.local_registration_threshold and transfer.handle is None:
            use = TO_READ if transfer.puts else TO_WRITE
            transfer.handle = module.register_mem(way.endpoint, local, use)
            if transfer.handle is None:
                return size, OUT_OF_RESOURCE
        piece = local[transfer.begun : transfer.begun + size]
        to = transfer.at + transfer.begun
        transfer.under_way += 1  # its completion may come from within the call
        result = call(
            way.endpoint, piece, to, transfer.handle, way.handle, 0, NO_ORDER, self._done, transfer
        )
        if result != QUEUED:
            transfer.under_way -= 1
        assert result < 0 or result in (QUEUED, COMPLETED), result
        return size, result

    def ended(self, transfer: Transfer, status: int) -> None:
        """A piece has."""
        transfer.under_way -= 1
        if status < 0:
            transfer.failed = True
        if not transfer.busy:
            self._settle(transfer)

    def _settle(self, transfer: Transfer) -> None:
        """End it when nothing of it is under way any more, or have it made again."""
        if transfer.under_way:
            return
        if transfer.failed:
            self._later(transfer)
        elif transfer.begun == len(transfer.local):
            self._release(transfer)
            transfer.whole.finish()

    def _later(self, transfer: Transfer) -> None:
        if not transfer.queued:
            transfer.queued = True
            self._waiting.append(transfer)
        if not self._polled:
            self._polled = True
            self._engine.add_poller(self)

    def poll(self) -> int:
        """Try again what was refused, and find other ways for what has failed."""
        events = 0
        for _ in range(len(self._waiting)):
            transfer = self._waiting.popleft()
            transfer.queued = False
            if not transfer.failed:
                events += self._go_on(transfer)
            elif not transfer.under_way:  # else the last piece that ends has it queued again
                self._release(transfer)
                self.retried += 1
                assert transfer.way is not None, "it was begun"
                transfer.tried.append(transfer.way.module)
                self._again(transfer)
                events += 1
        if not self._waiting:
            self._polled = False
            self._engine.remove_poller(self)
        return events

    def _release(self, transfer: Transfer) -> None:
        """Give the local registration back."""
        handle, transfer.handle = transfer.handle, None
        if handle is not None:
            assert transfer.way is not None, "it was begun"
            transfer.way.module.deregister_mem(handle)

    def close(self) -> None:
        """The window is freed: nothing is under way but what has failed its epoch's end."""
        self._waiting.clear()
        self._engine.remove_poller(self)


class _Done(CompletionCallback):
    """Told by BTLs when a piece has ended."""

    __slots__ = ("_transfers",)

    def __init__(self, transfers: Transfers) -> None:
        self._transfers = transfers

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A piece has ended."""
        transfer = descriptor.context
        assert isinstance(transfer, Transfer), "the context of all pieces"
        self._transfers.ended(transfer, status)
