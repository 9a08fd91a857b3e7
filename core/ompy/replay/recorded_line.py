"""What a rank that runs alone has instead of the others: the messages it received."""

from __future__ import annotations

from collections.abc import Callable
from threading import active_count, get_ident
from typing import Final, NoReturn

from ompy.engine.base import Poller
from ompy.frameworks.direct import Arrival, DirectLine
from ompy.replay.data_log import Message, Streams

LOOKS: Final = 50  # naps without news; arbitrary: seconds that another thread has to complete it


class RecordedLine(DirectLine, Poller):
    """A line of `pml/direct` that has a recording at its other end.

    What is sent goes nowhere. A receive that names source and tag gets the next message of these;
    it is told when the engine polls.

    Attributes:
        streams: what was received.
        serve: does what others had done in this rank's windows by now; says how much that was.

    Args:
        streams: what was received.
        missing: called when the rank waits for what it never got; does not return.
    """

    def __init__(self, streams: Streams, missing: Callable[[], NoReturn]) -> None:
        self.serve: Callable[[], int] = lambda: 0
        self.streams = streams
        self._missing = missing
        self._number = 0
        self._due: dict[int, Arrival] = {}
        self._told_count = 0
        self._idle: dict[int, tuple[int, int]] = {}  # by thread: naps, and what was told before
        self._told: Callable[[int, Arrival], object] = lambda _number, _arrival: None

    def on_complete(self, told: Callable[[int, Arrival], object]) -> None:
        """Have completions told."""
        self._told = told

    def send(
        self, to: tuple[int, int], source: int, tag: int, data: bytes, mode: int, *, served: bool
    ) -> int:
        """Complete at once: nobody is there."""
        return 0

    def receive(self, context: int, source: int, tag: int, *, served: bool) -> int:
        """The next message of these; who listens to anybody hears nothing."""
        self._number += 1
        found = self.streams.next_message(context, source, tag, takes=True)
        if found is not None and found.data is not None:
            self._due[self._number] = _arrival(found)
        return self._number

    def cancel(self, number: int) -> bool:
        """In time, unless its message was here."""
        return number not in self._due

    def look(
        self, context: int, source: int, tag: int, *, takes: bool, waits: bool
    ) -> Arrival | None:
        """The next message of these, left or taken."""
        found = self.streams.next_message(context, source, tag, takes=takes)
        if found is None and waits:
            self._missing()
        if found is None:
            return None
        return _arrival(found) if takes else _arrival(found)._replace(data=None)

    def forget(self, context: int) -> None:
        """A communicator is freed: nothing is kept of it."""

    def poll(self) -> int:
        """Tell what is complete."""
        served = self.serve()
        due, self._due = self._due, {}
        self._told_count += len(due) + served
        for number, arrival in due.items():
            self._told(number, arrival)
        return len(due) + served

    def arm(self) -> bool:
        """Whether the rank may sleep: only if there is something to tell first, else for ever."""
        if self._due or self.serve():
            return False
        here, told = get_ident(), self._told_count
        looks, before = self._idle.get(here, (0, -1))
        looks = looks + 1 if told == before else 1
        self._idle[here] = (looks, told)
        if looks >= LOOKS or active_count() == 1:
            self._missing()
        return True  # another thread may have told it meanwhile


def _arrival(message: Message) -> Arrival:
    """A message as a rank hears it: bytes that a receive had no room for are zeros."""
    data = bytes(message.data or b"")
    return Arrival(message.source, message.tag, message.length, data.ljust(message.length, b"\0"))
