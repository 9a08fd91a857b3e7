"""Protection domains: what may be used together."""

from __future__ import annotations

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
    from ompy_components.nic.hca.device import Hca


class HcaDomain(ProtectionDomain):
    """One domain of a device.

    Attributes:
        device: of it.
        shared_queues: that are open.
    """

    def __init__(self, device: Hca) -> None:
        self.device = device
        self.shared_queues: set[HcaSharedQueue] = set()

    def register(self, memory: memoryview, access: Access) -> MemoryRegion:
        """Let the device use `memory`."""
        self.device.usable()
        self.device.stations.registered(memory.nbytes)
        return self.device.regions.register(self, memory, access)

    def shared_queue(self, depth: int) -> SharedReceiveQueue:
        """A shared receive queue."""
        self.device.usable()
        self._check_depth(depth)
        made = HcaSharedQueue(self.device, depth, self.shared_queues.discard)
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
        device = self.device
        device.usable()
        name = device.identity.name
        for queue in (send_queue, receive_queue):
            if not isinstance(queue, HcaCompletionQueue) or queue not in device.queues:
                raise NicError(f"{name}: {queue!r} is no open completion queue of this device")
        assert isinstance(send_queue, HcaCompletionQueue)
        assert isinstance(receive_queue, HcaCompletionQueue)
        self._check_depth(send_depth)
        if inline_max > device.inline_max:
            raise NicError(f"{name}: {device.inline_max} bytes can be inline at most")
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
            device.resources,
            self,
            device.forget_pair,
            device.next_number(),
            (send_queue, receive_queue),
            receives,
            send_depth,
            inline_max,
        )
        device.pairs[pair.number] = pair
        return pair

    def _check_depth(self, depth: int) -> None:
        most = self.device.depth_max
        if not 0 <= depth <= most:
            raise NicError(f"{self.device.identity.name}: a queue has at most {most} entries")
