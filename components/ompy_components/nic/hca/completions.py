"""Completion queues."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ompy.frameworks.nic.base import EventKind, NicError
from ompy.frameworks.nic.verbs import Completion, CompletionQueue

if TYPE_CHECKING:
    from ompy_components.nic.hca.device import Hca
    from ompy_components.nic.hca.queue_pair import HcaQueuePair


class HcaCompletionQueue(CompletionQueue):
    """Completions of some queue pairs, oldest first.

    Attributes:
        depth: completions it has room for.
        pairs: the queue pairs that report here.
        lost: it has overflowed.
    """

    def __init__(self, device: Hca, depth: int) -> None:
        self.depth = depth
        self.pairs: set[HcaQueuePair] = set()
        self.lost = False
        self._device = device
        self._done: deque[tuple[Completion, HcaQueuePair, int]] = deque()

    def add(self, completion: Completion, pair: HcaQueuePair, released: int) -> None:
        """Report.

        Args:
            completion: what is done.
            pair: whose.
            released: entries of its send queue that come free when this has been polled.
        """
        if self.lost:
            return
        if len(self._done) >= self.depth:
            self._overflow()
            return
        self._done.append((completion, pair, released))

    def _overflow(self) -> None:
        self.lost = True
        name = self._device.identity.name
        reason = f"{name}: a completion queue of {self.depth} entries has overflowed"
        self._device.report(EventKind.CQ_ERROR, reason, self)
        for pair in sorted(self.pairs, key=lambda pair: pair.number):
            pair.fail()

    def poll(self, most: int) -> list[Completion]:
        """Let the device work, then hand out what is done."""
        self._device.usable()
        if len(self._done) < most:
            self._device.progress()
            self._device.usable()
        if self.lost:
            raise NicError(f"{self._device.identity.name}: the completion queue has overflowed")
        found = []
        for _ in range(min(most, len(self._done))):
            completion, pair, released = self._done.popleft()
            pair.released(released)
            found.append(completion)
        return found

    def ready(self) -> bool:
        """Whether there are completions, or news that may become some."""
        return bool(self._done) or self.lost or self._device.pressing()

    def forget(self, pair: HcaQueuePair) -> None:
        """A queue pair is closed: nothing of it completes any more."""
        self._done = deque(entry for entry in self._done if entry[1] is not pair)
        self.pairs.discard(pair)

    def close(self) -> None:
        """Forget the completions."""
        self._done.clear()
        self._device.forget_queue(self)
