"""A new queue pair for puts and gets, when the peer's adapter has refused one of them.

A put or get of memory that the peer has taken back breaks the queue pair it goes through, at both
ends, with all that is behind it. That is no fault of the path. So each end has a queue pair for
its own puts and gets: the refused one is completed badly, this end makes a new queue pair, tells
the peer by RDMA_QUEUE, the peer makes one and answers alike, and what had been flushed goes again.
Bytes may be written or read twice then, which nobody can see before the completion.

(With one queue pair for both ends' puts a refusal here would flush what was asked there before its
asker hears of its own refusal, and two ends that do so at once would renew it for ever.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.btl import BAD_PARAM
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Completion, Status
from ompy.frameworks.nic.verbs import State as PairState

from ompy_components.btl.openib.headers import QueueOffer, pack_queue

if TYPE_CHECKING:
    from ompy_components.btl.openib.endpoint import OpenibEndpoint
    from ompy_components.btl.openib.fragments import Transfer
    from ompy_components.btl.openib.module import OpenibModule

# what says that a put or get cannot be, and nothing about the path
REFUSED: Final = frozenset(
    {
        Status.REM_ACCESS_ERR,
        Status.REM_INV_REQ_ERR,
        Status.REM_OP_ERR,
        Status.LOC_PROT_ERR,
        Status.LOC_LEN_ERR,
    }
)


class Renewal:
    """The renewals of one endpoint's own queue pair.

    Attributes:
        number: of the last one begun.
        under_way: nothing can be posted meanwhile.
        flushed: what goes again, in order.
    """

    __slots__ = ("flushed", "number", "under_way")

    def __init__(self) -> None:
        self.number = 0
        self.under_way = False
        self.flushed: list[Transfer] = []


class Renewals:
    """What renews queue pairs, for all endpoints of one module.

    Attributes:
        count: renewals that were begun here.
    """

    def __init__(self, module: OpenibModule) -> None:
        self._module = module
        self.count = 0

    def failed(self, endpoint: OpenibEndpoint, one: Transfer, done: Completion) -> bool:
        """A put or get has failed. Returns whether that is all there is to it."""
        renewal = endpoint.renewal
        refused = done.status in REFUSED
        if not endpoint.path.up or not (refused or renewal.under_way):
            return False
        if refused:
            renewal.under_way = True
            self._module.note("REFUSED", peer=endpoint.proc.rank, reason=done.status.value)
            self._module.sending.complete(endpoint, one, BAD_PARAM)
        else:
            renewal.flushed.append(one)
        queue = endpoint.queues[endpoint.asking]
        if queue.entries == queue.pair.send_depth and endpoint.path.up:
            renewal.number += 1
            self.count += 1
            self._renew(endpoint, endpoint.asking, answer=False)
        return True

    def offered(self, endpoint: OpenibEndpoint, offer: QueueOffer) -> None:
        """The peer has made a new queue pair: for its own puts and gets, or in answer to ours."""
        if not endpoint.path.up:
            return
        renewal = endpoint.renewal
        if not offer.answer:
            self._renew(endpoint, endpoint.answering, answer=True, number=offer.renewal)
            self._connect(endpoint, endpoint.answering, offer)
        elif renewal.under_way and offer.renewal == renewal.number:
            self._connect(endpoint, endpoint.asking, offer)
            renewal.under_way = False
            flushed, renewal.flushed = renewal.flushed, []
            endpoint.transfers.extendleft(reversed(flushed))
            if endpoint.transfers:
                self._module.sending.resume(endpoint)

    def _renew(
        self, endpoint: OpenibEndpoint, index: int, *, answer: bool, number: int = 0
    ) -> None:
        """Have a new queue pair instead of the one with that index, and tell the peer."""
        module, queue = self._module, endpoint.queues[index]
        try:
            module.receiving.by_number.pop(queue.pair.number, None)
            queue.pair.close()
            queue.pair = module.connecting.transfer_pair(endpoint, index)
        except NicError as problem:
            module.deferred.add(endpoint, str(problem))
            return
        here = queue.pair.here()
        number = number or endpoint.renewal.number
        offer = QueueOffer(here.lid, here.number, here.first_packet, number, answer)
        module.sending.say(endpoint, pack_queue(offer))

    def _connect(self, endpoint: OpenibEndpoint, index: int, offer: QueueOffer) -> None:
        there = endpoint.pairs[index]._replace(
            lid=offer.lid, number=offer.number, first_packet=offer.first_packet
        )
        timing = self._module.limits.timing(shared=False)
        pair = endpoint.queues[index].pair
        try:
            pair.modify(PairState.RTR, there=there, timing=timing)
            pair.modify(PairState.RTS, timing=timing)
        except NicError as problem:
            self._module.deferred.add(endpoint, str(problem))
