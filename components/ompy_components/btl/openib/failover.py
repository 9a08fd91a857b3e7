"""What becomes of a connection that has failed, and how it is made again.

The first bad completion of an endpoint fails it and nothing else: the PML is told, the peer is told
(by EP_BROKEN over another module's endpoint, or where there is none by a notice over whatever other
rails reach it), and all queue pairs go to ERR, so that the device
reports what was posted. What it reports as good is good. When everything is reported, what lies in
the eager ring is delivered, what failed and what had not been posted is completed badly, in the
order it was accepted, and the queue pairs are given back. Then the endpoint may connect anew, when
`ompy.frameworks.healing` says so or the peer asks for it.

Source: reference openmpi.md 5.7 and 4.15, seed bfo (9).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.frameworks.btl import ERROR_FATAL, ERROR_NONFATAL, UNREACHABLE
from ompy.frameworks.healing import Mender, Phase
from ompy.frameworks.nic.base import EventKind, NicError
from ompy.frameworks.nic.verbs import Completion, QueuePair
from ompy.frameworks.nic.verbs import State as PairState
from ompy.frameworks.proc import Proc
from ompy.frameworks.rail_notices import tell_of_failure

from ompy_components.btl.openib.fragments import NO_NUMBER, OpenibFragment, Outgoing, Transfer
from ompy_components.btl.openib.headers import (
    EP_BROKEN,
    EP_EAGER_RDMA_ERROR,
    Broken,
    pack_broken,
)
from ompy_components.btl.openib.renewal import Renewal
from ompy_components.btl.openib.states import State

if TYPE_CHECKING:
    from ompy_components.btl.openib.endpoint import OpenibEndpoint
    from ompy_components.btl.openib.module import OpenibModule

PEER_GAVE_UP: Final = "the peer says that its end has failed"


class Failover:
    """The broken endpoints of one module.

    Attributes:
        draining: broken, and not everything of the old connection is reported.
        told: EP_BROKEN and EP_EAGER_RDMA_ERROR messages sent.
    """

    def __init__(self, module: OpenibModule) -> None:
        self._module = module
        self.draining: dict[OpenibEndpoint, None] = {}
        self._menders: dict[OpenibEndpoint, Mender] = {}
        self._condemned: dict[OpenibEndpoint, str] = {}
        self._device_told = self._ended = False
        self.told = 0

    # -- how it begins

    def work_failed(self, endpoint: OpenibEndpoint, one: Outgoing, done: Completion) -> None:
        """A send, put or get has failed."""
        if isinstance(one, Transfer) and self._module.renewals.failed(endpoint, one, done):
            return
        fresh = endpoint.connection.state is not State.FAILED
        reason = f"{done.opcode.value}: {done.status.value}{': ' * bool(done.detail)}{done.detail}"
        if fresh:
            self.fail(endpoint, reason)
        if isinstance(one, OpenibFragment) and one.number != NO_NUMBER:
            self._notify(endpoint, EP_EAGER_RDMA_ERROR, one.number)
        endpoint.casualties.append(one)

    def receive_failed(self, endpoint: OpenibEndpoint, done: Completion) -> None:
        """A receive on a peer's own buffers has failed."""
        self.fail(endpoint, f"{done.opcode.value}: {done.status.value}")

    def condemn(self, endpoint: OpenibEndpoint, reason: str) -> None:
        """Have it fail with the next poll: not from within a call of the PML."""
        self._condemned.setdefault(endpoint, reason)
        self._module.wake()

    def fail(
        self, endpoint: OpenibEndpoint, reason: str, *, tell_peer: bool = True, tell: bool = True
    ) -> None:
        """A connection is broken, or an attempt to make one has failed.

        Args:
            endpoint: whose.
            reason: in words.
            tell_peer: over another module; it has not said so itself.
            tell: the PML, which has not been told that the whole device is gone.
        """
        module = self._module
        if endpoint.connection.state is State.FAILED:
            return
        module.connecting.forget(endpoint)
        endpoint.connection.broken()
        self.draining[endpoint] = None
        first = not endpoint.broken
        endpoint.broken = reason
        for queue in endpoint.queues:
            _error(queue.pair)
        if not first:
            return
        module.note("PATH_FAILED", peer=endpoint.proc.rank, reason=reason)
        expected = endpoint.left or endpoint.proc.departed
        if tell_peer and not expected and module.failing_over and not self._confidant(endpoint):
            tell_of_failure(module, endpoint, endpoint.connection.attempt)
        if tell and module.error_callback is not None and (endpoint.busy or not expected):
            flags = ERROR_NONFATAL if module.failing_over and not expected else ERROR_FATAL
            module.error_callback.failed(module, flags, endpoint.proc, reason)
        if tell_peer and not expected:
            self._notify(endpoint, EP_BROKEN)

    def fail_all(self, reason: str) -> None:
        """The port or the device has failed: so have all its connections.

        Of a device the PML hears once, for all peers, if that may be another path's business:
        where it is the end, it is the end of those peers alone that this device reaches.
        """
        module = self._module
        whole = bool(module.nic.gone) and module.failing_over
        if whole and not self._device_told and module.error_callback is not None:
            self._device_told = True
            module.error_callback.failed(module, ERROR_NONFATAL, None, reason)
        for endpoint in list(module.endpoints.values()):
            self.fail(endpoint, reason, tell=not whole)

    # -- the other end

    def _notify(self, endpoint: OpenibEndpoint, kind: int, number: int = 0) -> None:
        """Tell the peer over an endpoint of another module, if there is one that works."""
        there = self._confidant(endpoint)
        if there is None:
            return
        module = self._module
        record = module.record
        rank = module.context.rank
        broken = Broken(record.lid, record.subnet, rank, endpoint.connection.attempt, number)
        there.module.sending.say(there, pack_broken(kind, broken))  # type: ignore[attr-defined]
        self.told += 1

    def _confidant(self, endpoint: OpenibEndpoint) -> OpenibEndpoint | None:
        """An endpoint of another module to the same peer, to which it can be told."""
        module = self._module
        for other in module.siblings:
            there = other.endpoints.get(endpoint.proc.rank)
            if other is not module and there is not None and there.usable:
                return there
        return None

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """A peer says over a rail that is none of ours that its end of a connection has failed."""
        endpoint = self._module.endpoints.get(proc.rank)
        if endpoint is None or not number or number != endpoint.connection.heard:
            return
        if path == self._module.path(endpoint):
            self.fail(endpoint, PEER_GAVE_UP, tell_peer=False)

    def _meant(self, broken: Broken) -> OpenibEndpoint | None:
        """The endpoint whose connection a peer's message is about, unless that is over."""
        for module in self._module.siblings:
            endpoint = module.endpoints.get(broken.rank)
            if (
                endpoint is not None
                and endpoint.record.lid == broken.lid
                and endpoint.record.subnet == broken.subnet
                and endpoint.connection.heard == broken.connection
            ):
                return endpoint
        return None

    def told_broken(self, broken: Broken) -> None:
        """EP_BROKEN: the peer's end of a connection has failed."""
        endpoint = self._meant(broken)
        if endpoint is not None:
            module = endpoint.module
            module.failover.fail(  # type: ignore[attr-defined]
                endpoint, PEER_GAVE_UP, tell_peer=False
            )

    def told_missing(self, broken: Broken) -> None:
        """EP_EAGER_RDMA_ERROR: a write to our ring will never come."""
        endpoint = self._meant(broken)
        if endpoint is not None and endpoint.incoming is not None:
            endpoint.incoming.failed(broken.number)

    # -- the end of a connection

    def settle(self) -> int:
        """Fail what was condemned, end what is reported in full. Returns how many endpoints."""
        events = 0
        while self._condemned:
            endpoint, reason = self._condemned.popitem()
            self.fail(endpoint, reason)
            events += 1
        if not self.draining:
            return events
        rooms = self._module.rooms
        if not (self._module.nic.gone or all(room.empty for room in rooms)):
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
        lost = _lost(endpoint)
        module.sending.waiting.pop(endpoint, None)
        self._give_back(endpoint)
        endpoint.outgoing = None
        endpoint.eager_seen = 0
        endpoint.reads = module.limits.reads
        wanted = endpoint.connection.wanted
        endpoint.connection.cleared()
        self._mend_some_time(endpoint, wanted=wanted)
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

    def _give_back(self, endpoint: OpenibEndpoint) -> None:
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
        if self._condemned:
            return True
        gone = bool(self._module.nic.gone)
        return any(gone or not endpoint.posted for endpoint in self.draining)

    def close(self) -> None:
        """The module ends: give back what connections have, and mend nothing any more."""
        self.end_healing()
        self._condemned.clear()
        for endpoint in self._module.endpoints.values():
            endpoint.broken = endpoint.broken or "this rank has ended"
            self._module.receiving.rings.pop(endpoint, None)
            if endpoint.ring_memory is not None:
                endpoint.ring_memory.close()
            endpoint.ring_memory = endpoint.incoming = endpoint.outgoing = None
            self._give_back(endpoint)
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
            if module.port_error_failover and module.failing_over:
                self.fail_all(reason)
        else:
            self.fail_all(reason)

    # -- healing

    def _mend_some_time(self, endpoint: OpenibEndpoint, *, wanted: bool) -> None:
        """Have a broken endpoint connect again, if somebody wants to know when it can be used.

        Args:
            endpoint: of whose connection, or attempt to make one, nothing is left.
            wanted: the peer has asked for a new one meanwhile.
        """
        module = self._module
        if not module.failing_over or endpoint.proc.departed or endpoint.left or module.nic.gone:
            return
        if self._ended:
            return
        mender = self._mender(endpoint)
        if mender.phase is Phase.SOUND:
            mender.broke()
        elif mender.phase is Phase.MENDING:
            mender.refused()
        if wanted and not mender.left_alone:
            module.connecting.begin(endpoint)

    def _mender(self, endpoint: OpenibEndpoint) -> Mender:
        made = self._menders.get(endpoint)
        if made is None:
            own = endpoint.identity
            made = self._menders[endpoint] = Mender(
                self._module.context,
                endpoint.proc,
                (own.address, endpoint.record.host),
                own.interface,
                partial(self._module.connecting.begin, endpoint),
            )
        return made

    def end_healing(self) -> None:
        """The module ends: nothing is connected again, unless the peer asks for it."""
        self._ended = True
        for mender in self._menders.values():
            mender.end()

    def leaves_alone(self, endpoint: OpenibEndpoint) -> bool:
        """Whether a path has broken so often that it is not connected for now."""
        mender = self._menders.get(endpoint)
        return mender is not None and mender.left_alone

    def connected(self, endpoint: OpenibEndpoint) -> None:
        """A connection is up: if it was broken before, it is healed."""
        if not endpoint.broken:
            return
        endpoint.broken = ""
        module = self._module
        mender = self._menders.get(endpoint)
        if mender is not None and mender.phase is not Phase.SOUND:
            mender.mended()
        module.note("PATH_HEALED", peer=endpoint.proc.rank)
        if module.error_callback is not None:
            module.error_callback.healed(module, endpoint.proc)


def _lost(endpoint: OpenibEndpoint) -> list[Outgoing]:
    """All that has failed or was never posted, in the order it was accepted, each by itself."""
    found: list[Outgoing] = [
        *endpoint.casualties,
        *endpoint.posted,  # of a device that is gone, and reports nothing
        *endpoint.lazy,
        *endpoint.pending.clear(),
        *endpoint.renewal.flushed,
        *endpoint.transfers,
    ]
    endpoint.renewal = Renewal()
    endpoint.casualties = []
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
