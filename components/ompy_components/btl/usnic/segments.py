"""Send segments, and the list of those that are to be sent again.

A segment is what goes out in one packet. What it carries is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ompy_components.btl.usnic.states import SegmentEvent, SegmentState, follow

if TYPE_CHECKING:
    from ompy_components.btl.usnic.reliability import Reliability

NO_ROOM: Final = -1


class SendSegment:
    """One packet's worth of a fragment on its way out.

    Attributes:
        state: where it is.
        sequence: number it was sent with; means something from its first posting on.
        room: in the hotel, or `NO_ROOM`.
        attempts: how often it has been posted.
        silent: how often it has been posted since the peer was heard last.
        heard: how often the peer had been heard when it was posted last.
        posted_at: when it was posted last, ns.
        connection: to the peer it goes to; from its first posting on.
    """

    __slots__ = (
        "attempts",
        "connection",
        "heard",
        "posted_at",
        "room",
        "sequence",
        "silent",
        "state",
    )

    def __init__(self) -> None:
        self.state = SegmentState.FREE
        self.sequence = 0
        self.room = NO_ROOM
        self.attempts = 0
        self.silent = 0
        self.heard = 0
        self.posted_at = 0
        self.connection: Reliability | None = None

    def become(self, event: SegmentEvent) -> None:
        """Go where `event` leads."""
        self.state = follow(self.state, event)

    def __repr__(self) -> str:
        return f"segment {self.sequence} ({self.state.value}, posted {self.attempts} times)"


class ResendList:
    """Segments of all endpoints of one module that wait to be sent again, first come first served.

    Source: seed usnic-btl-design-notes (sending): the list is the module's, not an endpoint's.
    """

    __slots__ = ("_segments",)

    def __init__(self) -> None:
        self._segments: dict[SendSegment, None] = {}

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[SendSegment]:
        return iter(self._segments)

    def append(self, segment: SendSegment) -> None:
        """It is to be sent again."""
        self._segments[segment] = None

    def remove(self, segment: SendSegment) -> None:
        """It need not be sent again."""
        del self._segments[segment]

    def first(self) -> SendSegment:
        """The one that has waited longest; it stays in the list until it is posted."""
        return next(iter(self._segments))
