"""How long answers take, and so how soon a packet is sent again early.

A queue pair's timeout is a power of two, from 4 us on, chosen before anything is known of the
path, and counts as a try when it is up. A real adapter's wire loses next to nothing. Where sockets
drop, what is lost is often the last packet of a message or the answer to it, and nothing that
comes behind makes the peer say so: each such loss would cost a whole timeout. So the oldest packet
goes again after two round trips without any news, then twice as long each time, as long as that is
sooner than the timeout: which keeps its time, and alone counts as a try.

Source: RFC 8985 7.2 (tail loss probe), RFC 6298 2 (how round trips are smoothed).
"""

from __future__ import annotations

from typing import Final

RTT_SHARE: Final = 8  # reference RFC 6298 2.3: a new sample is an eighth of the smoothed time
SPREAD_SHARE: Final = 4  # reference RFC 6298 2.3: and a quarter of how much samples differ from it
SPREADS: Final = 4  # reference RFC 6298 2.2: the smoothed time and so many times that at most
TRIPS: Final = 2  # reference RFC 8985 7.2: a probe goes out after two smoothed round trips
LEAST: Final = 300_000  # ns; arbitrary: a few times what a round trip takes over loopback


class RoundTrips:
    """Of one queue pair. Times are in ns.

    Attributes:
        probes: sent since there was any news.
    """

    __slots__ = ("_end", "_mean", "_since", "_spread", "probes")

    def __init__(self) -> None:
        self.probes = 0
        self._mean = self._spread = 0
        self._end = self._since = -1

    def asked(self, end: int, now: int) -> None:
        """Packets up to `end`, none of them sent before, ask for an answer."""
        if self._end < 0:
            self._end, self._since = end, now

    def went_back(self) -> None:
        """Of what is sent twice nobody knows which one is answered."""
        self._end = -1

    def answered(self, una: int, now: int) -> None:
        """There is news: packets before `una` have been answered."""
        self.probes = 0
        if not 0 <= self._end <= una:
            return
        time, self._end = now - self._since, -1
        if self._mean:
            self._spread += (abs(time - self._mean) - self._spread) // SPREAD_SHARE
            self._mean += (time - self._mean) // RTT_SHARE
        else:
            self._mean, self._spread = time, time // 2

    def probe_after(self, timeout: int) -> int | None:
        """How long to wait for news before the oldest packet goes again; None for the timeout."""
        if not self._mean:
            return None
        usual = max(TRIPS * self._mean, self._mean + SPREADS * self._spread, LEAST)
        wait = usual << min(self.probes, 40)
        return wait if wait < timeout else None
