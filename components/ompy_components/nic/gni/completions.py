"""Event queues, which lose events when they are full.

Source: seed gasnet (Event Processing); reference gasnet.md 5.3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from ompy.frameworks.nic.gni import CompletionQueue, Event, ReturnCode


class EventQueue(CompletionQueue):
    """A completion queue with room for so many events.

    Attributes:
        depth: entries.
        lost: events that found it full, since it was made.
    """

    def __init__(self, depth: int, progress: Callable[[], object]) -> None:
        """Make one; `progress` has the device look for news."""
        self.depth = depth
        self.lost = 0
        self._events: deque[Event] = deque()
        self._progress = progress
        self._overrun = False

    def push(self, event: Event) -> None:
        """For the device: something has happened."""
        if len(self._events) >= self.depth:
            self.lost += 1
            self._overrun = True
        else:
            self._events.append(event)

    def get_event(self) -> tuple[ReturnCode, Event | None]:
        """The next event, if there is one."""
        events = self._events
        if not events:
            self._progress()
            if not events:
                return ReturnCode.NOT_DONE, None
        if self._overrun:
            self._overrun = False
            return ReturnCode.ERROR_RESOURCE, events.popleft()
        return ReturnCode.SUCCESS, events.popleft()

    def ready(self) -> bool:
        """Whether there is an event."""
        if not self._events:
            self._progress()
        return bool(self._events)

    def count(self) -> int:
        """Events in it."""
        return len(self._events)

    def close(self) -> None:
        """Forget what is in it."""
        self._events.clear()
        self._overrun = False
