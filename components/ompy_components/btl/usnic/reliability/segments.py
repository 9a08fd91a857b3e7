"""Send segments, and the list of those that are to be sent again.

A segment is what goes out in one packet. What it carries is not known here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ompy.compiled import ccall, cclass

from ompy_components.btl.usnic.reliability.sequence import distance
from ompy_components.btl.usnic.reliability.states import SegmentEvent, SegmentState, follow

if TYPE_CHECKING:
    from ompy_components.btl.usnic.reliability.machine import Reliability

NO_SLOT: Final = -1


@cclass
class SendSegment:
    """One packet's worth of a fragment on its way out.

    Attributes:
        state: where it is.
        sequence: number it was sent with; means something from its first posting on.
        slot: among those in flight, or `NO_SLOT`.
        attempts: how often it has been posted.
        early: it is sent again before that.
        until: when it times out.
        posted_at: when it was posted last, ns.
        connection: to the peer it goes to; from its first posting on.
    """

    attempts: int
    connection: Reliability | None
    early: bool
    posted_at: int
    sequence: int
    slot: int
    state: SegmentState
    until: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self.state = SegmentState.FREE
        self.sequence = 0
        self.slot = NO_SLOT
        self.attempts = 0
        self.early = False
        self.until = 0
        self.posted_at = 0
        self.connection = None

    @ccall
    def become(self, event: SegmentEvent) -> None:
        """Go where `event` leads."""
        self.state = follow(self.state, event)

    def __repr__(self) -> str:
        return f"segment {self.sequence} ({self.state.value}, posted {self.attempts} times)"


@cclass
class ResendList:
    """Segments of all endpoints of one module that wait to be sent again.

    Connections take turns in the order they got here. Of one connection the segment with the lowest
    number comes first, as all behind it wait for its ACK.

    Source: seed usnic (sending): the list is the module's, not an endpoint's.
    """

    _segments: dict[Reliability, OrderedDict[SendSegment, None]]
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._segments = {}

    def __len__(self) -> int:
        return sum(map(len, self._segments.values()))

    def __bool__(self) -> bool:
        return bool(self._segments)

    def __iter__(self) -> Iterator[SendSegment]:
        for waiting in self._segments.values():
            yield from waiting

    @ccall
    def append(self, segment: SendSegment) -> None:
        """It is to be sent again."""
        assert segment.connection is not None, "what was never posted is not sent again"
        waiting = self._segments.setdefault(segment.connection, OrderedDict())
        first = next(iter(waiting), None)
        waiting[segment] = None
        if first is not None and distance(segment.sequence, first.sequence) < 0:
            waiting.move_to_end(segment, last=False)

    @ccall
    def remove(self, segment: SendSegment) -> None:
        """It need not be sent again."""
        assert segment.connection is not None, "what was never posted is not sent again"
        waiting = self._segments[segment.connection]
        del waiting[segment]
        if not waiting:
            del self._segments[segment.connection]

    @ccall
    def first(self) -> SendSegment | None:
        """The one to send now; it stays in the list until it is posted. None: all have to wait."""
        for connection, waiting in self._segments.items():
            segment = next(iter(waiting))
            if connection.may_repost(segment):
                return segment
        return None
