"""A wire that loses packets, as sockets do: what is lost costs round trips, not timeouts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.net.faults.middleware import Drop, Fault

from tests.support.openib_worlds import RAILS, openib, world

TURNS = 40
MS = 1_000_000
PER_LOSS = MS  # arbitrary: some probes of 0.3 ms; the timeout is 33 ms
PER_TURN = MS // 5  # arbitrary: half as much again as an undisturbed one takes
QUEUES = "S,12288,256,192,128:S,65536,256,192,128"


@pytest.mark.parametrize("size", [100, 60_000])
def test_two_percent(size: int) -> None:
    """Each fragment is answered by one; all of it takes less than a timeout for each loss."""
    took: list[int] = []

    def plan(driver: Driver) -> Sequence[Fault]:
        return [Drop(driver.engine, driver.world.counter, rate=0.02)]

    def program(driver: Driver) -> None:
        (peer,) = driver.peers
        begun = driver.engine.now()
        for turn in range(TURNS):
            if driver.rank == 0:
                driver.send(peer, driver.data(size))
            driver.wait(lambda turn=turn: len(driver.inbox) > turn, "the other one's", 60 * SECOND)  # type: ignore[misc]
            if driver.rank == 1:
                driver.send(peer, driver.data(size))
        took.append(driver.engine.now() - begun)
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not driver.errors
        assert openib(driver).counters()["sends"] >= TURNS

    made = world(plan=plan, rails=RAILS[:1], receive_queues=QUEUES, use_message_coalescing=0)
    made.run(program)
    made.counter.require("drop")
    lost = made.counter.delivered["drop"]
    assert max(took) < lost * PER_LOSS + TURNS * PER_TURN
