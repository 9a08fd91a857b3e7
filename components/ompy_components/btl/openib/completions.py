"""A completion queue whose room is counted: one that overflows is lost with all its queue pairs."""

from __future__ import annotations

from ompy.frameworks.nic.verbs import Completion, CompletionQueue, VerbsNic


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

    def take(self) -> None:
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
