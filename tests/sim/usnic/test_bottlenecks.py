"""usnic over slow links with short queues and over long ways: no storms of resends, no standstill.

The links drop what finds no room; a run counts packets, resends and how many of these were not
needed. `goodput` is what the program sees, against the rate of the link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from ompy.conformance.driver import Driver
from ompy.conformance.suite import Worlds
from ompy.net.fault_rules import FaultRule
from ompy.net.scripted import ScriptedFaults
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.module import UsnicModule

MBIT = 10**6
MS = 1_000_000
SECOND = 1_000 * MS
FRAGMENTS = 60
SIZE = 20_000
PACKETS = 15 * FRAGMENTS


@dataclass
class Run:
    """What came of it: packets sent for the first time and again, and those that came twice."""

    resends: int
    needless: int
    goodput: float  # Mbit/s


def stream(*rules: FaultRule, **settings: object) -> Run:
    """Rank 0 sends large fragments to rank 1 as fast as it may."""

    def plan(driver: Driver) -> Sequence[Any]:
        context = driver.context
        work = ScriptedFaults(
            rules,
            context.rank,
            2,
            engine=driver.engine,
            network=context.network,
            trace=context.trace,
        )
        return [work]

    run = Run(0, 0, 0.0)

    def program(driver: Driver) -> None:
        (module,) = driver.modules
        assert isinstance(module, UsnicModule)
        if driver.rank == 0:
            begun = driver.engine.now()
            for _ in range(FRAGMENTS):
                driver.send(1, driver.data(SIZE), flags=0)
            driver.wait(lambda: not driver.open_fragments, "completions", 300 * SECOND)
            run.goodput = FRAGMENTS * SIZE * 8_000 / (driver.engine.now() - begun)
            run.resends = module.statistics.num_resends
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not driver.errors
        if driver.rank == 1:
            counted = module.statistics
            run.needless = counted.num_dup_recvs + counted.num_oow_low_recvs

    full = {f"btl_usnic_{name}": value for name, value in settings.items()}
    full["btl_usnic_connectivity_check"] = 0
    Worlds(COMPONENT, {}).make(2, seed=1, plan=plan, settings=full).run(program)
    return run


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
    assert 0 < run.resends < PACKETS / 3
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
