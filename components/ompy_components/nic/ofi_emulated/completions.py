"""Completion queues: they overflow, and may show a completion late."""

from __future__ import annotations

import errno
from collections import deque
from typing import TYPE_CHECKING, Protocol

from ompy.frameworks.nic.fabric import Completion, CompletionQueue

from ompy_components.nic.ofi_emulated.errors import EOVERRUN, refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ompy_components.nic.ofi_emulated.resources import Resources


class Progressing(Protocol):
    """The domain, as far as its work goes.

    Attributes:
        gone: why the device under it can never be used again; empty while it can.
    """

    gone: str

    def progress(self) -> None:
        """Serve every socket that is ready."""

    def pressing(self) -> bool:
        """Whether `progress` would find something to do."""


class EmulatedQueue(CompletionQueue):
    """Completions, oldest first.

    Attributes:
        depth: completions it has room for.
        lost: it has overflowed.
    """

    def __init__(
        self,
        resources: Resources,
        domain: Progressing,
        depth: int,
        closed: Callable[[EmulatedQueue], None],
    ) -> None:
        """Empty.

        Args:
            resources: of the domain.
            domain: works when the queue is read.
            depth: completions it has room for.
            closed: hears that it is.
        """
        self.depth = depth
        self.lost = False
        self._domain = domain
        self._closed = closed
        self._engine = resources.context.engine
        self._counts = resources.counts
        self._stations = resources.stations
        self._wake_in = resources.wake_in
        self._delay = resources.traits.completion_delay
        self._done: deque[tuple[int, Completion, object]] = deque()

    def add(self, completion: Completion, endpoint: object) -> None:
        """Report for an endpoint; it can be read after the delay the device has."""
        if self.lost:
            return
        if len(self._done) >= self.depth:
            self.lost = True
            self._counts["overruns"] += 1
            return
        now, delay = self._engine.now(), self._delay
        if delay:
            self._counts["delayed"] += 1
        when = max(self._stations.completed() + delay, self._done[-1][0] if self._done else 0)
        if when > now:
            self._wake_in(when - now)
        self._done.append((when, completion, endpoint))

    def read(self, most: int) -> list[Completion]:
        """Let the domain work, then hand out what is done."""
        domain, engine = self._domain, self._engine
        now = engine.now()
        if len(self._done) < most or self._done[most - 1][0] > now:
            domain.progress()
            now = engine.now()
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
        due = bool(self._done) and self._done[0][0] <= self._engine.now()
        return not (due or self.lost or self._domain.pressing())

    def forget(self, endpoint: object) -> None:
        """An endpoint is closed: nothing of it completes any more."""
        self._done = deque(entry for entry in self._done if entry[2] is not endpoint)

    def close(self) -> None:
        """Forget the completions."""
        self._done.clear()
        self._closed(self)
