"""Posted receives of a context, and messages that have come before any was posted."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ompy.frameworks.nic.fabric import Completion

from ompy_components.nic.ofi_emulated.errors import ETRUNC, words


class Stalled(Protocol):
    """Who has a message that had no place."""

    def go_on(self) -> None:
        """There may be one now."""


class Posted(NamedTuple):
    """One posted receive.

    Attributes:
        memory: for the message.
        context: the caller's.
    """

    memory: memoryview
    context: object


class Arrival:
    """One message that is coming.

    Attributes:
        receives: of the context it is for.
        size: of the message.
        room: for its bytes, not more than it has.
        cut: what does not fit is being dropped.
    """

    __slots__ = ("_posted", "cut", "receives", "room", "size")

    def __init__(self, receives: Receives, size: int, posted: Posted | None) -> None:
        self.receives = receives
        self.size = size
        self.cut = False
        self._posted = posted
        self.room = memoryview(bytearray(size)) if posted is None else posted.memory[:size]

    def arrived(self, received: Callable[[], object] | None) -> None:
        """All of it is here; `received` is to be called when it is in a posted receive."""
        if self._posted is None:
            self.receives.keep(self, received)
        else:
            self.receives.complete(self._posted, self.size, received)

    def never_came(self) -> None:
        """The rest is missing: what was taken for it is free again."""
        self.receives.give_back(self, self._posted)


class Receives:
    """Of one context.

    Attributes:
        unexpected_max: messages that may wait for a receive.
    """

    def __init__(
        self,
        counts: Counter[str],
        received: Callable[[Completion], object],
        unexpected_max: int,
    ) -> None:
        """None is posted.

        Args:
            counts: of the device.
            received: hears of each message that is in the memory of a receive.
            unexpected_max: messages that may wait for a receive.
        """
        self.unexpected_max = unexpected_max
        self._counts = counts
        self._received = received
        self._posted: deque[Posted] = deque()
        # messages in the order in which they began to come; None while one is on its way
        self._waiting: dict[Arrival, tuple[Callable[[], object] | None] | None] = {}
        self._stalled: deque[Stalled] = deque()

    def __len__(self) -> int:
        """Receives that are posted."""
        return len(self._posted)

    def place(self, size: int, sender: Stalled) -> Arrival | None:
        """Where the next message goes; None: nowhere now, its sender is told when to go on.

        A sender's messages come one at a time over its connection. So whoever is on its way
        without a receive may be overtaken by another sender's message, and by no other.
        """
        if self._posted:
            return Arrival(self, size, self._posted.popleft())
        if len(self._waiting) >= self.unexpected_max:
            self._counts["stalled"] += 1
            self._stalled.append(sender)
            return None
        arrival = Arrival(self, size, None)
        self._waiting[arrival] = None
        return arrival

    def keep(self, arrival: Arrival, received: Callable[[], object] | None) -> None:
        """A message without a receive is here."""
        if arrival in self._waiting:
            self._waiting[arrival] = (received,)
            self._match()

    def post(self, posted: Posted) -> None:
        """A receive more."""
        self._posted.append(posted)
        self._match()

    def _match(self) -> None:
        """Give receives to the messages that are here, and let those go on that had no place."""
        while self._posted:
            here = ((one, state[0]) for one, state in self._waiting.items() if state is not None)
            arrival, received = next(here, (None, None))
            if arrival is None:
                break
            del self._waiting[arrival]
            posted = self._posted.popleft()
            count = min(arrival.size, len(posted.memory))
            posted.memory[:count] = arrival.room[:count]
            self.complete(posted, arrival.size, received)
        while self._stalled and (self._posted or len(self._waiting) < self.unexpected_max):
            self._stalled.popleft().go_on()

    def complete(self, posted: Posted, size: int, received: Callable[[], object] | None) -> None:
        """A message is in the memory of a receive, or as much of it as there was room for."""
        room = len(posted.memory)
        cut = size > room
        detail = f"{words(ETRUNC)}: a message of {size} bytes, room for {room}" if cut else ""
        self._received(Completion(posted.context, min(size, room), ETRUNC if cut else 0, detail))
        if received is not None:
            received()

    def give_back(self, arrival: Arrival, posted: Posted | None) -> None:
        """A message never came whole."""
        if posted is not None:
            self._posted.appendleft(posted)
        else:
            self._waiting.pop(arrival, None)
        self._match()

    def close(self) -> None:
        """Nothing is received any more; who waited to go on is answered."""
        self._posted.clear()
        self._waiting.clear()
        while self._stalled:
            self._stalled.popleft().go_on()
