"""Completion queues whose room is counted: one that overflows is lost with all its queue pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ompy.frameworks.nic.verbs import Completion, CompletionQueue, VerbsNic

ROUND_MAX: Final = 512  # arbitrary: completions, or fragments of rings, that one poll handles


class CompletionRoom:
    """One of the module's two completion queues.

    Attributes:
        queue: the device's.
        room: completions it has room for beside those of what is posted.
        empty: the last poll found it empty.
    """

    __slots__ = ("empty", "queue", "room")

    def __init__(self, nic: VerbsNic, depth: int) -> None:
        self.queue: CompletionQueue = nic.completion_queue(depth)
        self.room = depth
        self.empty = True

    def reserve_entry(self) -> None:
        """Something is posted that will be reported here."""
        self.room -= 1
        assert self.room >= 0, "more is posted than the completion queue has room for"

    def give_back(self) -> None:
        """It has been reported, or never will be."""
        self.room += 1

    def poll(self, most: int) -> list[Completion]:
        """Up to `most` completions. Raises NicError when the device or the queue is lost."""
        found = self.queue.poll(most)
        self.room += len(found)
        self.empty = len(found) < most
        return found


class Pace(NamedTuple):
    """How often the queues are asked.

    Attributes:
        batch: completions that are taken at a time.
        polls: of the queue of small fragments in a round, while it has something.
        ratio: rounds in which that queue alone is asked, as long as it has something.
    """

    batch: int
    polls: int
    ratio: int


class Completions:
    """Both completion queues of a module.

    Attributes:
        high: of small fragments.
        low: of all others, and of puts and gets.
    """

    __slots__ = ("_pace", "_turn", "high", "low")

    def __init__(self, nic: VerbsNic, depth: int, pace: Pace) -> None:
        """Make them. Raises NicError when the device has no room for them."""
        self.high = CompletionRoom(nic, depth)
        self.low = CompletionRoom(nic, depth)
        self._pace = pace
        self._turn = 0

    def poll(self, handle: Callable[[Completion], None], *, thorough: Callable[[], bool]) -> int:
        """Handle completions: of the high-priority queue first, of the other now and then.

        Args:
            handle: takes each.
            thorough: asked after the first queue, whether the other one is to be asked anyway.

        Returns:
            How many.

        Raises:
            NicError: the device or a queue is lost.
        """
        batch, polls, ratio = self._pace
        handled = 0
        for _ in range(polls):
            found = self.high.poll(min(batch, ROUND_MAX - handled))
            for completion in found:
                handle(completion)
            handled += len(found)
            if self.high.empty or handled >= ROUND_MAX:
                break
        self._turn += 1
        if handled and self._turn < ratio and not thorough():
            return handled
        self._turn = 0
        found = self.low.poll(batch)
        for completion in found:
            handle(completion)
        return handled + len(found)

    @property
    def empty(self) -> bool:
        """Everything that was reported so far has been handled."""
        return self.high.empty and self.low.empty

    def ready(self) -> bool:
        """Whether one of them has something."""
        return self.high.queue.ready() or self.low.queue.ready()

    def close(self) -> None:
        """Give both back; their queue pairs are closed already."""
        self.high.queue.close()
        self.low.queue.close()
