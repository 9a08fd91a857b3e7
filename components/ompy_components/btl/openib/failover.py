"""What becomes of a connection that has failed.

The first bad completion of an endpoint breaks its path (`ompy.frameworks.path_life`) and nothing
else: all queue pairs go to ERR, so that the device reports what was posted, the peer is told (by
EP_BROKEN over another module's endpoint, or where there is none by a notice over whatever other
rails reach it), then the PML. What the device reports as good is good. When everything is reported,
what lies in the eager ring is delivered, the queue pairs are given back, and what failed and what
had not been posted is completed badly, in the order it was accepted. Then the path may be opened
anew.

Source: reference openmpi.md 5.7 and 4.15, seed bfo (9).
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ompy.frameworks.btl import ERROR_NONFATAL, UNREACHABLE
from ompy.frameworks.nic.base import EventKind, NicError
from ompy.frameworks.nic.verbs import Completion, QueuePair
from ompy.frameworks.nic.verbs import State as PairState

from ompy_components.btl.openib.fragments import NO_NUMBER, OpenibFragment, Outgoing, Transfer
from ompy_components.btl.openib.headers import EP_EAGER_RDMA_ERROR, Broken, pack_broken
from ompy_components.btl.openib.renewal import Renewal

if TYPE_CHECKING:
    from ompy_components.btl.openib.endpoint import OpenibEndpoint
    from ompy_components.btl.openib.module import OpenibModule


class Failover:
    """The broken endpoints of one module.

    Attributes:
        draining: broken, and not everything of the old connection is reported.
        told: EP_BROKEN and EP_EAGER_RDMA_ERROR messages sent.
    """

    def __init__(self, module: OpenibModule) -> None:
        self._module = module
        self.draining: dict[OpenibEndpoint, None] = {}
        self._device_told = False
        self.told = 0

    # -- how it begins

    def work_failed(self, endpoint: OpenibEndpoint, one: Outgoing, done: Completion) -> None:
        """A send, put or get has failed."""
        if isinstance(one, Transfer) and self._module.renewals.failed(endpoint, one, done):
            return
        endpoint.path.broke(
            f"{done.opcode.value}: {done.status.value}{': ' * bool(done.detail)}{done.detail}"
        )
        if isinstance(one, OpenibFragment) and one.number != NO_NUMBER:
            self.notify(endpoint, EP_EAGER_RDMA_ERROR, one.number)
        endpoint.failed_work.append(one)

    def fail_all(self, reason: str) -> None:
        """The port or the device has failed: so have all its connections.

        Of a device the PML hears once, for all peers, if that may be another path's business:
        where it is the end, it is the end of those peers alone that this device reaches.
        """
        module = self._module
        whole = bool(module.nic.gone) and module.nic.failover
        if whole and not self._device_told and module.error_callback is not None:
            self._device_told = True
            module.error_callback.failed(module, ERROR_NONFATAL, None, reason)
        module.keeper.quiet = whole
        for path in list(module.keeper.paths.values()):
            path.broke(reason)
        module.keeper.quiet = False

    # -- the other end

    def notify(self, endpoint: OpenibEndpoint, kind: int, number: int = 0) -> bool:
        """Tell the peer over an endpoint of another module, if there is one that works."""
        module = self._module
        others = (one for one in self._others(endpoint) if one.usable)
        there = next((one for one in others if one.path.up or module.nic.failover), None)
        if there is None:
            return False
        record, rank = module.record, module.context.rank
        broken = Broken(record.lid, record.subnet, rank, endpoint.path.life.number, number)
        there.module.sending.say(there, pack_broken(kind, broken))  # type: ignore[attr-defined]
        self.told += 1
        return True

    def _others(self, endpoint: OpenibEndpoint) -> list[OpenibEndpoint]:
        """The endpoints of the other modules to the same peer."""
        rank, module = endpoint.proc.rank, self._module
        others = [one for one in module.siblings if one is not module]
        return [one.endpoints[rank] for one in others if rank in one.endpoints]

    def _meant(self, broken: Broken) -> OpenibEndpoint | None:
        """The endpoint whose connection a peer's message is about, unless that is over."""
        for module in self._module.siblings:
            endpoint = module.endpoints.get(broken.rank)
            if (
                endpoint is not None
                and endpoint.record.lid == broken.lid
                and endpoint.record.subnet == broken.subnet
                and (not module.nic.failover or endpoint.path.life.number == broken.connection)
            ):
                return endpoint
        return None

    def told_broken(self, broken: Broken) -> None:
        """EP_BROKEN: the peer's end of a connection has failed."""
        endpoint = self._meant(broken)
        if endpoint is not None:
            endpoint.module.keeper.given_up(endpoint.path, broken.connection)  # type: ignore[attr-defined]

    def told_missing(self, broken: Broken) -> None:
        """EP_EAGER_RDMA_ERROR: a write to our ring will never come."""
        endpoint = self._meant(broken)
        if endpoint is not None and endpoint.incoming is not None:
            endpoint.incoming.failed(broken.number)

    # -- the end of a connection

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
        if not (self._module.nic.gone or self._module.completions.empty):
            return events
        for endpoint in list(self.draining):
            if not endpoint.posted or self._module.nic.gone:
                del self.draining[endpoint]
                self._end(endpoint)
                events += 1
        return events

    def _end(self, endpoint: OpenibEndpoint) -> None:
        module = self._module
        module.receiving.sweep(endpoint)
        # what an attempt has not sent waits for the next one, unless those above know it has failed
        lost = _lost(endpoint) if endpoint.broken else []
        module.sending.forget(endpoint)
        self.give_back(endpoint)
        endpoint.outgoing = None
        endpoint.eager_seen = 0
        endpoint.reads = module.limits.reads
        endpoint.pairs = ()
        endpoint.path.drained()
        for one in lost:
            self._complete(endpoint, one)

    def _complete(self, endpoint: OpenibEndpoint, one: Outgoing) -> None:
        module = self._module
        if isinstance(one, Transfer):
            module.sending.complete(endpoint, one, UNREACHABLE)
            return
        if one.immediate and module.error_callback is not None:
            module.error_callback.returned(module, endpoint.proc, one.tag, one.segment)
        module.sending.complete(endpoint, one, UNREACHABLE)

    def give_back(self, endpoint: OpenibEndpoint) -> None:
        """Close the queue pairs of an endpoint."""
        module = self._module
        queues, endpoint.queues = endpoint.queues, []
        for queue in queues:
            module.receiving.by_number.pop(queue.pair.number, None)
            taken = queue.pair.send_depth - queue.entries
            for _ in range(taken):  # of a device that is gone, and reports nothing
                queue.room.give_back()
            queue.pair.close()
            if queue.buffers is not None:
                queue.buffers.close()

    @property
    def pressing(self) -> bool:
        """Something is to be done with the next poll."""
        gone = bool(self._module.nic.gone)
        return any(gone or not endpoint.posted for endpoint in self.draining)

    def close(self) -> None:
        """The module ends: give back what connections have."""
        for endpoint in self._module.endpoints.values():
            endpoint.path.broken = endpoint.path.broken or "this rank has ended"
            self._module.receiving.rings.pop(endpoint, None)
            if endpoint.ring_memory is not None:
                endpoint.ring_memory.close()
            endpoint.ring_memory = endpoint.incoming = endpoint.outgoing = None
            self.give_back(endpoint)
        self.draining.clear()

    # -- ports

    def event(self, kind: EventKind, reason: str, subject: object) -> None:
        """The device says something unasked."""
        module = self._module
        if kind is EventKind.SRQ_LIMIT_REACHED:
            for shared in module.shared:
                if shared is not None and shared.queue is subject:
                    shared.few_left()
        elif kind is EventKind.LINK_UP:
            pass  # packets may get through, or not yet: the agents find out
        elif kind is EventKind.LINK_DOWN:
            module.note("PORT_ERROR", reason=reason)
            if module.port_error_failover and module.nic.failover:
                self.fail_all(reason)
        else:
            self.fail_all(reason)


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
