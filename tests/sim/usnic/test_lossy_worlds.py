"""A slice of the worlds that `tools/sweep lossy` runs 100,000 of: some of every class."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from tests.support import lossy_worlds
from tests.support.effort import effort
from tests.support.lossy_worlds import (
    CLASSES,
    COUNTERS,
    GROUP,
    KINDS,
    TRAFFIC,
    WIRES,
    dry_run,
    run,
    script,
    world,
)

EACH = min(max(5, effort(5)), GROUP)  # worlds of a class, of one group; fewer see too little


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


FAILED = (
    4_788,  # as the next, and its LEAVE had come
    25_790,  # the last message of a rank in MPI_Finalize came later than anybody had patience
)


@pytest.mark.parametrize("number", FAILED)
def test_worlds_that_failed(number: int) -> None:
    world(number)


def test_the_same_world_twice() -> None:
    assert world(GROUP * 5 + 1) == world(GROUP * 5 + 1)


def test_faults_are_drawn_anew_where_their_packets_never_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the others at work a rail carried fewer packets than in the dry run."""
    number = 34_972
    design, dry = dry_run(number // GROUP)
    more = replace(dry, packets=Counter({flow: 1_000 * n for flow, n in dry.packets.items()}))
    assert run(design, number, script(number, design, more)).missed
    monkeypatch.setattr(lossy_worlds, "dry_run", lambda _: (design, more))
    assert not world(number)[1].missed
