"""Which segments must be lost, as others that were sent later have arrived.

Segments are kept in the order in which they were posted last, so that one which was sent again is
as young as that. Of a segment that has arrived its posting time is known; whatever was posted
before the latest such time, by more than packets overtake each other, is lost, if an answer to it
would be here by now. So a resend that is lost as well is noticed one round trip later.

Source: RFC 8985, section 6 (RACK): order by time of posting, and the reordering window.
"""

from __future__ import annotations

from ompy.compiled import ccall, cclass

from ompy_components.btl.usnic.reliability.segments import SendSegment


@cclass
class Deliveries:
    """What is under way, by time, and what is known to have arrived.

    Attributes:
        newest: when the segment was posted that was posted last of those that have arrived.
    """

    _order: dict[SendSegment, None]
    newest: int
    __slots__ = tuple(__annotations__)

    def __init__(self) -> None:
        self._order = {}
        self.newest = -1

    @ccall
    def posted(self, segment: SendSegment) -> None:
        """It is under way; it was not."""
        self._order[segment] = None

    @ccall
    def left(self, segment: SendSegment) -> None:
        """It is not under way any more, as far as one can tell."""
        self._order.pop(segment, None)

    @ccall
    def arrived(self, segment: SendSegment, now: int, shortest: int) -> None:
        """The peer has it. Which of its postings, is known where no answer could be so quick."""
        if segment.attempts == 1 or now - segment.posted_at >= shortest:
            self.newest = max(self.newest, segment.posted_at)

    @ccall
    def lost(self, now: int, age: int, reordering: int) -> tuple[list[SendSegment], int | None]:
        """What is lost, and when there may be more of it.

        Args:
            now: ns.
            age: ns after which an answer would be here.
            reordering: ns by which packets overtake each other.
        """
        found: list[SendSegment] = []
        segment: SendSegment
        for segment in self._order:
            if segment.posted_at + reordering > self.newest:
                break
            if now - segment.posted_at < age:
                return found, segment.posted_at + age
            found.append(segment)
        return found, None
