"""What a world can say of itself: who waits, which message met which receive, what nothing took."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ompy.runtime.exploration.boxes import Box, Message
from ompy.runtime.exploration.events import Meeting
from ompy.runtime.exploration.matching.knowledge import complaint_of
from ompy.runtime.exploration.waits import Rank


class Accounts:
    """Ranks and boxes of a world, read."""

    def __init__(self, size: int) -> None:
        """There are none, and so many ranks."""
        self._ranks = [Rank() for _ in range(size)]
        self._boxes: dict[tuple[int, int], Box] = {}
        self._left: list[Box] = []  # of freed communicators
        self._improper: list[str] = []  # ready sends whose receives may be posted later

    def waits(self, rank: int) -> bool:
        """Whether a rank waits for something of the exchange."""
        return self._ranks[rank].wait is not None

    def complaint(self) -> str:
        """What is wrong with ready sends, when all ranks have ended; empty if nothing is."""
        for box in (*self._boxes.values(), *self._left):
            for message in box.waiting():
                if message.ready:
                    return complaint_of(message, box.rank, None)
        return self._improper[0] if self._improper else ""

    def unmatched(self) -> dict[int, list[Message]]:
        """Messages that nothing has taken, by the rank that they were sent to."""
        found: dict[int, list[Message]] = {}
        for box in self._boxes.values():
            for message in box.waiting():
                found.setdefault(box.rank, []).append(message)
        return found

    def meetings(self) -> list[Meeting]:
        """The program's messages that were taken, in order."""
        taken = [
            (message.turn, receive, message)
            for box in (*self._boxes.values(), *self._left)
            for messages in box.channels.values()
            for message in messages
            if message.tag >= 0 and (receive := message.taken) is not None
        ]
        return [
            Meeting(message.sender, message.site, receive.operation, receive.site, message.tag)
            for _, receive, message in sorted(taken, key=lambda one: one[0])
        ]

    def fill_in(self, said: Mapping[int, dict[str, Any]]) -> None:
        """Say of ranks what they cannot say themselves: what was sent, and what nothing took.

        Args:
            said: how ranks stand, as `standing.py` has it; those that wait are filled in.
        """
        for rank, standing in said.items():
            if standing.get("live"):
                continue
            standing["sent"] = {comm: [] for comm in standing["begun"]}
            standing["received"] = {comm: [] for comm in standing["begun"]}
            standing["unmatched"] = []
            for (context, to), box in self._boxes.items():
                for messages in box.channels.values():
                    sender = messages[0].sender[0]
                    if rank == sender:
                        told = standing["sent"].setdefault(str(context), [])
                        told.append([to, len(messages)])
                    if rank == to:
                        told = standing["received"].setdefault(str(context), [])
                        told.append([sender, len(messages)])
                        standing["unmatched"] += [
                            [context, sender, number, one.tag, len(one.data)]
                            for number, one in enumerate(messages, 1)
                            if one.taken is None
                        ]
