"""What waits to be matched in each rank, and how long: posted receives, and unexpected messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ompy.trace.message_events import FIRST, Message
from ompy.trace.sink import Event

POSTED: Final = "posted receives"
UNEXPECTED: Final = "unexpected messages"


class Waiting(NamedTuple):
    """A receive without a message, or a message without a receive.

    Attributes:
        rank: whose queue it is in.
        queue: `POSTED` or `UNEXPECTED`.
        began: the event that put it there.
        ended: the event that says it is matched; None where the trace has none.
        message: what matched a receive, or waited itself; None for a receive that got nothing.
    """

    rank: int
    queue: str
    began: Event
    ended: Event | None
    message: Message | None


def matching_queues(events: Sequence[Event], found: Sequence[Message]) -> Iterator[Waiting]:
    """All that waited in a trace: receives in the order of posting, then messages.

    Args:
        events: of the trace, in order.
        found: its messages.
    """
    taken = {id(message.posted): message for message in found if message.posted}
    for event in events:
        if event.name == "POST":
            message = taken.get(id(event))
            ended = None if message is None else _matched(message)
            yield Waiting(event.rank, POSTED, event, ended, message)
    for message in found:
        first = next((event for event in message.receives if event.name in FIRST), None)
        if first is not None and message.posted is None:
            yield Waiting(first.rank, UNEXPECTED, first, _matched(message), message)


def _matched(message: Message) -> Event | None:
    """What says that a receive had got its message."""
    for event in message.receives:
        if event.name in ("PROTOCOL", "COMPLETE"):
            return event
    return None
