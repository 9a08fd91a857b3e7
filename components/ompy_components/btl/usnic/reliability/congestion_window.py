"""How many segments a sender may have under way, below what the window allows.

The window's 4095 packets are what a real NIC has receive buffers for. A socket holds a few hundred
and drops the rest, and a slow link on the way holds fewer, so a sender has to find out what gets
through. It does as TCP does: slow start, then one more for each window acknowledged, half after a
loss that an ACK told of, and eight after one that only the timer told of. The original has nothing
like it; `btl_usnic_congestion_control` 0 does without.

Source: RFC 5681 (slow start, congestion avoidance, the loss window).
"""

from __future__ import annotations

from typing import Final

from ompy.compiled import ccall, cclass

from ompy_components.btl.usnic.reliability.sequence import distance

FIRST: Final = 64  # segments; arbitrary: a third of what a socket of Linux holds of 1500 bytes
# draft-ietf-ccwg-bbr: a link that loses 2 % of the packets while round trips are short is no reason
# to send less
CHANCE_LOSS: Final = 0.02
REMEMBERED: Final = 256  # segments; arbitrary: the share of losses is that of so many, or twice
# segments; arbitrary: TCP goes down to two and one; at 30 % loss a run with 4 took twice as long,
# as there has to be something behind a lost packet to make a duplicate ACK
LEAST: Final = 8


@cclass
class CongestionWindow:
    """The number, and what changes it.

    Attributes:
        segments: that may be under way.
    """

    _acked: int
    _arrived: int
    _chance: float
    _lost: int
    _most: int
    _recovered_at: int
    _threshold: int
    segments: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, most: int, next_sequence: int, first: int = FIRST, chance: float = CHANCE_LOSS
    ) -> None:
        """Begin with `first`, or with `most` if that is fewer.

        Args:
            most: segments that may ever be under way.
            next_sequence: number of the next segment.
            first: segments that may be under way to begin with.
            chance: share of losses that may be chance.
        """
        self._chance = chance
        self._arrived = 0  # segments that got through, and that were lost, of the last ones
        self._lost = 0
        self._most = most
        self.segments = min(first, most)
        self._threshold = most
        self._acked = 0
        self._recovered_at = next_sequence  # losses of earlier segments are of a window punished

    @ccall
    def acked(self, count: int, under_way: int) -> None:
        """So many segments got through, of those that were under way.

        A sender that needs less than half of what it has learns nothing about more.
        """
        self._arrived += count
        if self._arrived + self._lost > 2 * REMEMBERED:
            self._arrived //= 2
            self._lost //= 2
        if 2 * under_way < self.segments:
            return
        if self.segments < self._threshold:
            self.segments = min(self.segments + count, self._threshold, self._most)
            return
        self._acked += count
        while self._acked >= self.segments:
            self._acked -= self.segments
            self.segments = min(self.segments + 1, self._most)

    @ccall
    def lost(self, sequence: int, next_sequence: int, queued: bool, again: bool = False) -> bool:
        """An ACK says that a segment is lost; `next_sequence` is the first not sent yet.

        A window is punished once, whatever is lost of it, and not at all for what may be chance:
        no queue is `queued`, and of the last segments no more were lost than chance may lose. What
        was sent `again` since then is of another window. Returns whether there was a punishment.
        """
        self._lost += 1
        if distance(sequence, self._recovered_at) < 0 and not again:
            return False
        recent = self._arrived + self._lost
        if self._chance and not queued and self._lost - 1 <= self._chance * recent:
            return False
        self._recovered_at = next_sequence
        self._threshold = self.segments = max(self.segments // 2, min(LEAST, self._most))
        self._acked = 0
        return True

    @ccall
    def expired(self, sequence: int, next_sequence: int) -> None:
        """A segment's timer ran out, so nothing may be under way any more: begin anew."""
        self.lost(sequence, next_sequence, True)
        self.segments = min(LEAST, self._most)
        self._acked = 0


@cclass
class Unlimited(CongestionWindow):
    """The window alone counts, as in the seed."""

    __slots__ = ()

    def __init__(self, most: int) -> None:
        super().__init__(most, 0, most)

    @ccall
    def acked(self, count: int, under_way: int) -> None:
        """Nothing is learnt from it."""

    @ccall
    def lost(self, sequence: int, next_sequence: int, queued: bool, again: bool = False) -> bool:
        """Nor from a loss."""
        return False

    @ccall
    def expired(self, sequence: int, next_sequence: int) -> None:
        """Nor from silence."""
