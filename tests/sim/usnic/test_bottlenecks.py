"""usnic over slow links with short queues and over long ways: no storms of resends, no standstill.

The links drop what finds no room; a run counts packets, resends and how many of these were not
needed. `goodput` is what the program sees, against the rate of the link.
"""

from __future__ import annotations

import pytest
from ompy.net.faults.fault_rules import FaultRule

from tests.support.usnic_streams import stream

MBIT = 10**6
MS = 1_000_000


def slow(mbits: int, buffer: int) -> FaultRule:
    return FaultRule("rate_limit", ranks=(0,), rate=mbits * MBIT, buffer=buffer)


@pytest.mark.parametrize(
    ("mbits", "buffer", "share"),
    [(10, 32_768, 0.9), (100, 16_384, 0.85), (1000, 20_000, 0.4), (10, 262_144, 0.7)],
)
def test_a_slow_link_with_a_short_queue(mbits: int, buffer: int, share: float) -> None:
    """At most one packet in four is sent again, and most of what the link can carry gets through.

    The first flight is longer than these queues, so a part of it is always lost.
    """
    run = stream(slow(mbits, buffer))
    assert 0 < run.resends < run.packets / 3
    assert share * mbits < run.goodput <= mbits


def test_the_seeds_way_over_the_same_link() -> None:
    """Without congestion control the queue is always full, and most packets go again and again."""
    link = slow(100, 16_384)
    assert stream(link, congestion_control=0).resends > 3 * stream(link).resends


@pytest.mark.parametrize("delay", [60, 150])
def test_round_trips_longer_than_the_timeout(delay: int) -> None:
    """Until their length is known timers run out in vain; afterwards they do not."""
    run = stream(FaultRule("delay", delay=delay * MS))
    assert run.resends == run.needless
    assert 0 < run.resends < 100, "of the first flight, 89 packets"
