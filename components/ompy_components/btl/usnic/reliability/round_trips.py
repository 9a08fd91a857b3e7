"""How long it takes until a peer has answered: smoothed round trips, and the shortest.

Source: RFC 6298.
"""

from __future__ import annotations

from ompy.compiled import ccall, cclass

from ompy_components.btl.usnic.reliability.numbers import (
    INFLATED,
    RTT_SHARE,
    SHORTEST_KEPT,
    SPREAD_SHARE,
    SPREADS,
)


@cclass
class RoundTrips:
    """Those of one peer.

    Attributes:
        smoothed: ns; 0 before the first sample.
        spread: how much samples differ from that, ns, smoothed.
        least: the shortest of the last seconds, ns; 0 before the first sample.
    """

    _ack_delay: int
    _least_at: int
    least: int
    smoothed: int
    spread: int
    __slots__ = tuple(__annotations__)

    def __init__(self, ack_delay: int) -> None:
        """None is known; an answer may wait for `ack_delay` ns."""
        self._ack_delay = ack_delay
        self._least_at = 0
        self.least = 0
        self.smoothed = 0
        self.spread = 0

    @ccall
    def longest(self) -> int:
        """What an answer takes at most, as far as is known, ns."""
        return self.smoothed + SPREADS * self.spread + self._ack_delay

    @ccall
    def queued(self) -> bool:
        """Whether they are so long that packets must wait in a queue on the way."""
        return self.smoothed > INFLATED * self.least + self._ack_delay

    @ccall
    def add(self, time: int, now: int, timeout: int) -> None:
        """A segment was acknowledged so long after it was posted.

        The peer may have been busy with something else, so what looks longer than two timeouts
        counts as two.
        """
        if not self.smoothed or time <= self.least or now - self._least_at > SHORTEST_KEPT:
            self.least = time
            self._least_at = now
        time = min(time, 2 * timeout)
        if not self.smoothed or 2 * time < self.smoothed:
            self.smoothed = time
            self.spread = time // 2
        else:
            self.spread += (abs(time - self.smoothed) - self.spread) // SPREAD_SHARE
            self.smoothed += (time - self.smoothed) // RTT_SHARE
