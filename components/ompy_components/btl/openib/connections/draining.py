"""The end of a connection: everything is reported, then what failed is completed badly.

Source: reference openmpi.md 5.7 and 4.15, seed bfo (9).
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from ompy.frameworks.btl import UNREACHABLE
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import QueuePair, VerbsNic
from ompy.frameworks.nic.verbs import State as PairState

from ompy_components.btl.openib.endpoint import OpenibEndpoint, Renewal
from ompy_components.btl.openib.fragments import OpenibFragment, Outgoing, Transfer
from ompy_components.btl.openib.queues.completions import Completions
from ompy_components.btl.openib.queues.queue_pairs import QueuePairs
from ompy_components.btl.openib.receiving import ReceiveEngine
from ompy_components.btl.openib.sending import SendEngine


class Draining:
    """The connections of one module that end.

    Attributes:
        draining: not everything of the old connection is reported.
    """

    def __init__(
        self,
        nic: VerbsNic,
        completions: Completions,
        pairs: QueuePairs,
        receiving: ReceiveEngine,
        sending: SendEngine,
        reads: int,
    ) -> None:
        """Begin with none; an endpoint may have `reads` RDMA reads under way."""
        self._nic = nic
        self._completions = completions
        self._pairs = pairs
        self._receiving = receiving
        self._sending = sending
        self._reads = reads
        self.draining: dict[OpenibEndpoint, None] = {}

    def drain(self, endpoint: OpenibEndpoint) -> None:
        """Have the device report everything of a connection."""
        self.draining[endpoint] = None
        for queue in endpoint.queues:
            _error(queue.pair)

    def settle(self) -> int:
        """End what is reported in full. Returns how many endpoints."""
        events = 0
        if not self.draining:
            return events
        if not (self._nic.gone or self._completions.empty):
            return events
        for endpoint in list(self.draining):
            if not endpoint.posted or self._nic.gone:
                del self.draining[endpoint]
                self._end(endpoint)
                events += 1
        return events

    def _end(self, endpoint: OpenibEndpoint) -> None:
        self._receiving.sweep(endpoint)
        # what an attempt has not sent waits for the next one, unless those above know it has failed
        lost = _lost(endpoint) if endpoint.broken else []
        self._sending.forget(endpoint)
        self._pairs.give_back(endpoint)
        endpoint.outgoing = None
        endpoint.eager_seen = 0
        endpoint.reads = self._reads
        endpoint.pairs = ()
        endpoint.path.drained()
        for one in lost:
            self._complete(endpoint, one)

    def _complete(self, endpoint: OpenibEndpoint, one: Outgoing) -> None:
        if isinstance(one, Transfer):
            self._sending.complete(endpoint, one, UNREACHABLE)
            return
        callback = endpoint.module.error_callback
        if one.immediate and callback is not None:
            callback.returned(endpoint.module, endpoint.proc, one.tag, one.segment)
        self._sending.complete(endpoint, one, UNREACHABLE)

    @property
    def pressing(self) -> bool:
        """Something is to be done with the next poll."""
        gone = bool(self._nic.gone)
        return any(gone or not endpoint.posted for endpoint in self.draining)

    def close(self, endpoints: Iterable[OpenibEndpoint]) -> None:
        """The module ends: give back what connections have."""
        for endpoint in endpoints:
            endpoint.path.broken = endpoint.path.broken or "this rank has ended"
            self._receiving.rings.pop(endpoint, None)
            if endpoint.ring_memory is not None:
                endpoint.ring_memory.close()
            endpoint.ring_memory = endpoint.incoming = endpoint.outgoing = None
            self._pairs.give_back(endpoint)
        self.draining.clear()


def _lost(endpoint: OpenibEndpoint) -> list[Outgoing]:
    """All that has failed or was never posted, in the order it was accepted, each by itself."""
    found: list[Outgoing] = [
        *endpoint.failed_work,
        *endpoint.posted,  # of a device that is gone, and reports nothing
        *endpoint.lazy,
        *endpoint.pending.clear(),
        *endpoint.renewal.flushed,
        *endpoint.transfers,
    ]
    endpoint.renewal = Renewal()
    endpoint.failed_work = []
    endpoint.posted.clear()
    endpoint.lazy.clear()
    endpoint.transfers.clear()
    lost: list[Outgoing] = []
    for one in found:
        if isinstance(one, OpenibFragment) and one.parts:
            lost.extend(one.parts)
            one.parts = []
            one.release()
        else:
            lost.append(one)
    return sorted(lost, key=lambda one: one.serial)


def _error(pair: QueuePair) -> None:
    with suppress(NicError):  # a device that is gone reports nothing either
        pair.modify(PairState.ERR)
