"""Protection domains: what may be used together."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import (
    Access,
    CompletionQueue,
    MemoryRegion,
    ProtectionDomain,
    QueuePair,
    SharedReceiveQueue,
)

from ompy_components.nic.hca.completions import HcaCompletionQueue
from ompy_components.nic.hca.queue_pair import HcaQueuePair
from ompy_components.nic.hca.receives import HcaSharedQueue, ReceiveQueue

if TYPE_CHECKING:
    from ompy_components.nic.hca.pairs import QueuePairs
    from ompy_components.nic.hca.resources import Resources


class HcaDomain(ProtectionDomain):
    """One domain of a device.

    Attributes:
        shared_queues: that are open.
    """

    def __init__(
        self, resources: Resources, pairs: QueuePairs, queues: Container[CompletionQueue]
    ) -> None:
        """Empty.

        Args:
            resources: of the device.
            pairs: its queue pairs, of this domain and others.
            queues: its completion queues that are open, at any time.
        """
        self.shared_queues: set[HcaSharedQueue] = set()
        self._resources = resources
        self._pairs = pairs
        self._queues = queues

    def register(self, memory: memoryview, access: Access) -> MemoryRegion:
        """Let the device use `memory`."""
        resources = self._resources
        resources.usable()
        resources.stations.registered(memory.nbytes)
        return resources.regions.register(self, memory, access)

    def shared_queue(self, depth: int) -> SharedReceiveQueue:
        """A shared receive queue."""
        self._resources.usable()
        self._check_depth(depth)
        made = HcaSharedQueue(self._resources, depth, self.shared_queues.discard)
        self.shared_queues.add(made)
        return made

    def queue_pair(
        self,
        send_queue: CompletionQueue,
        receive_queue: CompletionQueue,
        *,
        send_depth: int,
        receive_depth: int = 0,
        shared: SharedReceiveQueue | None = None,
        inline_max: int = 0,
    ) -> QueuePair:
        """A queue pair in RESET."""
        resources = self._resources
        resources.usable()
        name = resources.name
        for queue in (send_queue, receive_queue):
            if not isinstance(queue, HcaCompletionQueue) or queue not in self._queues:
                raise NicError(f"{name}: {queue!r} is no open completion queue of this device")
        assert isinstance(send_queue, HcaCompletionQueue)
        assert isinstance(receive_queue, HcaCompletionQueue)
        self._check_depth(send_depth)
        if inline_max > resources.inline_max:
            raise NicError(f"{name}: {resources.inline_max} bytes can be inline at most")
        receives: ReceiveQueue | HcaSharedQueue
        if shared is None:
            self._check_depth(receive_depth)
            receives = ReceiveQueue(receive_depth)
        elif receive_depth:
            raise NicError(f"{name}: a receive queue of its own or a shared one, not both")
        elif not isinstance(shared, HcaSharedQueue) or shared not in self.shared_queues:
            raise NicError(f"{name}: {shared!r} is no open shared queue of this domain")
        else:
            receives = shared
        pair = HcaQueuePair(
            resources,
            self,
            self._forget_pair,
            self._pairs.free_number(),
            (send_queue, receive_queue),
            receives,
            send_depth,
            inline_max,
        )
        self._pairs.add_pair(pair)
        return pair

    def _forget_pair(self, pair: HcaQueuePair) -> None:
        """It is closed."""
        self._pairs.forget_pair(pair)
        self._resources.schedule.forget(pair)

    def _check_depth(self, depth: int) -> None:
        most = self._resources.depth_max
        if not 0 <= depth <= most:
            raise NicError(f"{self._resources.name}: a queue has at most {most} entries")
