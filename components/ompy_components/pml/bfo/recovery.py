"""What an error asks for, done when no step of the protocols is on the stack.

An error callback may come from within a `send` in the middle of any step of ob1. So what it asks
for waits here for the next round of polling, in the order it came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ompy.engine.base import Engine, Poller


class Recovery(Poller):
    """Work of one rank."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._todo: deque[Callable[[], object]] = deque()
        self._polled = False

    def __len__(self) -> int:
        return len(self._todo)

    def later(self, work: Callable[[], object]) -> None:
        """Do something in the next round of polling."""
        self._todo.append(work)
        if not self._polled:
            self._polled = True
            self._engine.add_poller(self)

    def poll(self) -> int:
        """Do what there was when the round began."""
        count = len(self._todo)
        for _ in range(count):
            self._todo.popleft()()
        if not self._todo:
            self._engine.remove_poller(self)
            self._polled = False
        return count

    def arm(self) -> bool:
        """The rank may sleep when there is nothing to do."""
        return not self._todo
