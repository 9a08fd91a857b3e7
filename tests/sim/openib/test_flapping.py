"""A rail that goes and comes again and again, under traffic; random programs by seed."""

from __future__ import annotations

import pytest
from ompy.conformance.btl.driver import SECOND, Driver

from tests.support.effort import effort
from tests.support.openib_worlds import (
    Errors,
    Switch,
    Transfers,
    delivered,
    openib,
    taken_or_back,
    world,
)

MS = SECOND // 1000
LASTS = 2 * SECOND  # of virtual time


@pytest.mark.parametrize("seed", range(effort(2)))
def test_a_flapping_rail(seed: int) -> None:
    """Told and healed in turn at each end; nothing is lost, twice or altered; at last it works."""
    switch = Switch(kind="down" if seed % 2 else "hole")

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        random = driver.engine.random
        mine = driver.world.shared[driver.rank] = Transfers(driver)
        driver.world.meet(driver)
        (peer,) = driver.peers
        toggle = random.randrange(300) * MS
        while driver.engine.now() < LASTS:
            if driver.rank == 0 and driver.engine.now() > toggle:
                switch.broken = not switch.broken
                # some outages are too short to be noticed, the first one is not
                least = 20 if errors.told or not switch.broken else 700
                toggle += random.randrange(least, 900) * MS
            for _ in range(random.randrange(8)):
                size = random.choice((20, 60, 900, 5000, 40_000))
                via = random.choice(("alloc", "sendi", "prepare"))
                driver.post(
                    peer, driver.data(min(size, 12_000) if via == "sendi" else size), via=via
                )
            if random.random() < 0.3:
                mine.begin(random.choice(("put", "get")), driver.world.shared[peer])
            driver.idle(random.choice((10_000, 1 * MS, 40 * MS)))
        switch.broken = False
        driver.wait(lambda: not (driver.open_fragments or mine.open), "completions", 20 * SECOND)
        driver.world.meet(driver)
        (endpoint,) = openib(driver).endpoints.values()
        driver.wait(lambda: not endpoint.broken, "the rail to be healed", 5 * SECOND)
        driver.idle(SECOND)
        driver.world.meet(driver)
        delivered(driver)
        taken_or_back(driver, errors)
        assert len(errors.told) == len(errors.mended) >= 1
        assert all(fragment.done for fragment in driver.sent)
        before = len(driver.inbox)
        driver.world.meet(driver)
        for size in (20, 900, 40_000):
            driver.send(peer, driver.data(size))
        driver.wait(lambda: len(driver.inbox) >= before + 3, "news over the healed rail")
        driver.wait(lambda: not driver.open_fragments, "completions")
        driver.world.meet(driver)

    made = world(switch=switch, seed=seed)
    made.run(program)
    made.counter.require("rail")
