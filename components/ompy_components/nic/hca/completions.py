"""Completion queues."""

from __future__ import annotations

from collections import deque
from itertools import compress
from typing import TYPE_CHECKING, Protocol

from ompy.frameworks.nic.base import EventKind, NicError
from ompy.frameworks.nic.verbs import Completion, CompletionQueue

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy_components.nic.hca.resources import Resources


class Reporting(Protocol):
    """A queue pair, as far as what it reports goes.

    Attributes:
        number: of it, on the device.
    """

    number: int

    def released(self, count: int) -> None:
        """A completion has been polled: so many entries of the send queue are free again."""

    def fail(self) -> None:
        """What it reports is lost."""


class Progressing(Protocol):
    """The device, as far as its work goes."""

    def progress(self) -> None:
        """Take in what has arrived, send what can be sent, look at the timers."""

    def pressing(self) -> bool:
        """Whether `progress` would find something to do."""


class HcaCompletionQueue(CompletionQueue):
    """Completions of some queue pairs, oldest first.

    Attributes:
        depth: completions it has room for.
        pairs: the queue pairs that report here.
        lost: it has overflowed.
    """

    def __init__(
        self,
        resources: Resources,
        device: Progressing,
        depth: int,
        closed: Callable[[HcaCompletionQueue], None],
    ) -> None:
        """Empty.

        Args:
            resources: of the device.
            device: works when the queue is polled.
            depth: completions it has room for.
            closed: hears that it is.
        """
        self.depth = depth
        self.pairs: set[Reporting] = set()
        self.lost = False
        self._device = device
        self._closed = closed
        self._name = resources.name
        self._usable = resources.usable
        self._report = resources.report
        self._schedule = resources.schedule
        self._stations = resources.stations
        self._done: deque[tuple[Completion, Reporting, int]] = deque()
        self._due: deque[int] = deque()  # when each of them can be read; empty without a clock

    def add(self, completion: Completion, pair: Reporting, released: int) -> None:
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
        if self._stations.runs:
            self._due.append(max(self._stations.completed(), self._due[-1] if self._due else 0))
            self._schedule.awake_at(self._due[-1])

    def _overflow(self) -> None:
        self.lost = True
        reason = f"{self._name}: a completion queue of {self.depth} entries has overflowed"
        self._report(EventKind.CQ_ERROR, reason, self)
        for pair in sorted(self.pairs, key=lambda pair: pair.number):
            pair.fail()

    def poll(self, most: int) -> list[Completion]:
        """Let the device work, then hand out what is done."""
        self._usable()
        if self._ripe(most) < most:
            self._device.progress()
            self._usable()
        if self.lost:
            raise NicError(f"{self._name}: the completion queue has overflowed")
        found = []
        for _ in range(self._ripe(most)):
            completion, pair, released = self._done.popleft()
            if self._due:
                self._due.popleft()
            pair.released(released)
            found.append(completion)
        if self._due:
            self._schedule.awake_at(self._due[0])
        return found

    def _ripe(self, most: int) -> int:
        """How many can be read now, `most` at most."""
        if not self._due:
            return min(most, len(self._done))
        now = self._schedule.now()
        count = 0
        for when in self._due:
            if when > now or count == most:
                break
            count += 1
        return count

    def ready(self) -> bool:
        """Whether there are completions, or news that may become some."""
        if self._ripe(1) or self.lost:
            return True
        if self._due:
            self._schedule.awake_at(self._due[0])
        return self._device.pressing()

    def forget(self, pair: Reporting) -> None:
        """A queue pair is closed: nothing of it completes any more."""
        kept = [entry[1] is not pair for entry in self._done]
        self._due = deque(compress(self._due, kept))
        self._done = deque(compress(self._done, kept))
        self.pairs.discard(pair)

    def close(self) -> None:
        """Forget the completions."""
        self._done.clear()
        self._due.clear()
        self._closed(self)
