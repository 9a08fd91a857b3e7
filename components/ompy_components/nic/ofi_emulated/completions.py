"""Completion queues: they overflow, and may show a completion late."""

from __future__ import annotations

import errno
from collections import deque
from typing import TYPE_CHECKING

from ompy.frameworks.nic.fabric import Completion, CompletionQueue

from ompy_components.nic.ofi_emulated.errors import EOVERRUN, refusal

if TYPE_CHECKING:
    from ompy_components.nic.ofi_emulated.domain import EmulatedDomain
    from ompy_components.nic.ofi_emulated.endpoint import EmulatedEndpoint


class EmulatedQueue(CompletionQueue):
    """Completions, oldest first.

    Attributes:
        depth: completions it has room for.
        lost: it has overflowed.
    """

    def __init__(self, domain: EmulatedDomain, depth: int) -> None:
        self.depth = depth
        self.lost = False
        self._domain = domain
        self._done: deque[tuple[int, Completion, EmulatedEndpoint]] = deque()

    def add(self, completion: Completion, endpoint: EmulatedEndpoint) -> None:
        """Report; it can be read after the delay the device has."""
        if self.lost:
            return
        if len(self._done) >= self.depth:
            self.lost = True
            self._domain.counts["overruns"] += 1
            return
        domain = self._domain
        now, delay = domain.engine.now(), domain.traits.completion_delay
        if delay:
            domain.counts["delayed"] += 1
        when = max(domain.stations.completed() + delay, self._done[-1][0] if self._done else 0)
        if when > now:
            domain.wake_in(when - now)
        self._done.append((when, completion, endpoint))

    def read(self, most: int) -> list[Completion]:
        """Let the domain work, then hand out what is done."""
        domain = self._domain
        now = domain.engine.now()
        if len(self._done) < most or self._done[most - 1][0] > now:
            domain.progress()
            now = domain.engine.now()
        if self.lost:
            raise refusal(EOVERRUN, f"a completion queue of {self.depth} entries")
        if domain.gone and not self._done:
            raise refusal(errno.ENODEV, domain.gone)
        found: list[Completion] = []
        while self._done and len(found) < most and self._done[0][0] <= now:
            found.append(self._done.popleft()[1])
        return found

    def arm(self) -> bool | None:
        """The network's sources wake the rank, and timers."""
        due = bool(self._done) and self._done[0][0] <= self._domain.engine.now()
        return not (due or self.lost or self._domain.pressing())

    def forget(self, endpoint: EmulatedEndpoint) -> None:
        """An endpoint is closed: nothing of it completes any more."""
        self._done = deque(entry for entry in self._done if entry[2] is not endpoint)

    def close(self) -> None:
        """Forget the completions."""
        self._done.clear()
        self._domain.queues.discard(self)
