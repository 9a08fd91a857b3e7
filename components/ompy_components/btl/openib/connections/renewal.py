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

from collections.abc import Callable
from typing import Final

from ompy.frameworks.btl import BAD_PARAM
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import Completion, Status

from ompy_components.btl.openib.connections.deferred import DeferredFailures
from ompy_components.btl.openib.endpoint import OpenibEndpoint
from ompy_components.btl.openib.fragments import Transfer
from ompy_components.btl.openib.headers import QueueOffer, pack_queue, unpack_queue
from ompy_components.btl.openib.queues.queue_pairs import QueuePairs
from ompy_components.btl.openib.sending import SendEngine

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


class Renewals:
    """What renews queue pairs, for all endpoints of one module.

    Attributes:
        count: renewals that were begun here.
    """

    def __init__(
        self,
        pairs: QueuePairs,
        sending: SendEngine,
        deferred: DeferredFailures,
        note: Callable[..., None],
    ) -> None:
        self._pairs = pairs
        self._sending = sending
        self._deferred = deferred
        self._note = note
        self.count = 0

    def failed(self, endpoint: OpenibEndpoint, one: Transfer, done: Completion) -> bool:
        """A put or get has failed. Returns whether that is all there is to it."""
        renewal = endpoint.renewal
        refused = done.status in REFUSED
        if not endpoint.path.up or not (refused or renewal.under_way):
            return False
        if refused:
            renewal.under_way = True
            self._note("REFUSED", peer=endpoint.proc.rank, reason=done.status.value)
            self._sending.complete(endpoint, one, BAD_PARAM)
        else:
            renewal.flushed.append(one)
        queue = endpoint.queues[endpoint.asking]
        if queue.entries == queue.pair.send_depth and endpoint.path.up:
            renewal.number += 1
            self.count += 1
            self._renew(endpoint, endpoint.asking, answer=False)
        return True

    def offered(self, endpoint: OpenibEndpoint, message: memoryview) -> None:
        """The peer has made a new queue pair: for its own puts and gets, or in answer to ours."""
        offer = unpack_queue(message)
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
                self._sending.resume(endpoint)

    def _renew(
        self, endpoint: OpenibEndpoint, index: int, *, answer: bool, number: int = 0
    ) -> None:
        """Have a new queue pair instead of the one with that index, and tell the peer."""
        try:
            here = self._pairs.renew(endpoint, index)
        except NicError as problem:
            self._deferred.defer_failure(endpoint, str(problem))
            return
        number = number or endpoint.renewal.number
        offer = QueueOffer(here.lid, here.number, here.first_packet, number, answer)
        self._sending.send_control(endpoint, pack_queue(offer))

    def _connect(self, endpoint: OpenibEndpoint, index: int, offer: QueueOffer) -> None:
        there = endpoint.pairs[index]._replace(
            lid=offer.lid, number=offer.number, first_packet=offer.first_packet
        )
        try:
            self._pairs.join(endpoint, index, there)
        except NicError as problem:
            self._deferred.defer_failure(endpoint, str(problem))
