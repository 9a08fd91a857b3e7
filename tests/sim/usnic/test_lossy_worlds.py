"""A slice of the worlds that `tools/lossy_sweep.py` runs 100,000 of: some of every class."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.effort import effort
from tests.support.lossy_worlds import CLASSES, COUNTERS, GROUP, KINDS, TRAFFIC, WIRES, world

EACH = min(effort(5), GROUP)  # worlds of a class, of one group


@pytest.mark.parametrize("traffic", TRAFFIC)
def test_nothing_is_lost_doubled_reordered_or_altered(traffic: str) -> None:
    """`world` compares each message; over a kind of traffic everything has to have happened."""
    seen: Counter[str] = Counter()
    for wire in WIRES:
        group = CLASSES.index((traffic, wire))
        for number in range(group * GROUP, group * GROUP + EACH):
            design, outcome = world(number)
            assert (design.traffic, design.wire) == (traffic, wire)
            assert sum(outcome.faults.values()), "no fault struck"
            seen.update(outcome.counted)
            seen.update(outcome.faults)
    for name in (*COUNTERS, *KINDS, "wraps"):
        assert seen[name], f"{name} stayed 0"


def test_the_same_world_twice() -> None:
    assert world(GROUP * 5 + 1) == world(GROUP * 5 + 1)
