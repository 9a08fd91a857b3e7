"""A short exchange over two ports, one of which is cut at each of its packets."""

from __future__ import annotations

from functools import cache

import pytest
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.frameworks.btl import ERROR_NONFATAL

from tests.support.effort import THOROUGH
from tests.support.openib_worlds import (
    Errors,
    Switch,
    Transfers,
    delivered,
    taken_or_back,
    world,
)

SIZES = (60, 20, 100, 900, 60, 5000, 60, 100, 30_000, 20, 60, 900)  # through every queue
STEP = 1 if THOROUGH else 13
HEALED = SECOND  # from the moment the rail works again


def exchange(driver: Driver, errors: Errors) -> None:
    """Both ranks send by every way over the first rail, and a little over the second."""
    mine = driver.world.shared[driver.rank] = Transfers(driver)
    driver.world.meet(driver)
    (peer,) = driver.peers
    for turn in range(3):
        for number, size in enumerate(SIZES):
            driver.post(peer, driver.data(size), via="sendi" if number % 3 == 2 else "alloc")
            if number % 4 == 0:
                driver.idle(20_000)
        driver.post(peer, driver.data(500), rail=1)
        mine.begin("put" if turn % 2 else "get", driver.world.shared[peer])
    driver.wait(lambda: not (driver.open_fragments or mine.open), "completions", 20 * SECOND)


@cache
def packets() -> int:
    """How many packets of the first rail an undisturbed exchange has."""
    switch = Switch()

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        exchange(driver, errors)
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not errors.told
        mine = driver.world.shared[driver.rank]
        assert [status for _, status, _ in mine.statuses] == [0, 0, 0]

    world(switch=switch).run(program)
    return switch.packets


def test_the_exchange_uses_everything() -> None:
    """What is cut below is worth cutting: rings, credits, coalescing, tokens, puts and gets."""
    counted: set[str] = set()

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        exchange(driver, errors)
        counted.update(driver.modules[0].counters())
        driver.quiesce()

    world().run(program)
    wanted = {"sends", "eager_rdma", "credit_messages", "coalesced", "pending", "puts", "gets"}
    assert not wanted - counted
    assert 100 < packets() <= 250, "every packet is cut at below"


@pytest.mark.parametrize("kind", ["down", "hole"])
@pytest.mark.parametrize("at", range(1, 250, STEP))
def test_cut_at_a_packet(at: int, kind: str) -> None:
    """Both ends are told once, before anything ends badly; what is good is there; it heals."""
    if at > packets():
        pytest.skip("the exchange is over")
    switch = Switch(kind=kind, at=at)

    def program(driver: Driver) -> None:
        errors = Errors(driver)
        (peer,) = driver.peers
        exchange(driver, errors)
        if not switch.broken:  # with this seed there were fewer packets: cut when all is over
            switch.broken, switch.at = True, None
            driver.post(peer, driver.data(60))
        driver.wait(lambda: bool(errors.told), "the error callback", 5 * SECOND)
        assert errors.told == [(0, peer, ERROR_NONFATAL)]
        driver.wait(lambda: not driver.open_fragments, "completions", SECOND)
        driver.idle(SECOND // 2)  # stragglers
        driver.world.meet(driver)
        delivered(driver)
        taken_or_back(driver, errors)
        for fragment in driver.sent:
            assert fragment.done
            assert fragment.good or fragment.errors_before or fragment.via == "sendi"
            assert fragment.good or fragment.module is driver.modules[0], "the other rail is well"
        mine, there = driver.world.shared[driver.rank], driver.world.shared[peer]
        for what, status, local in mine.statuses:
            assert status or what == "put" or local in (there.before, bytes(there.memory))
        assert not errors.mended
        driver.world.meet(driver)
        switch.broken = False
        again = driver.engine.now()
        driver.wait(lambda: bool(errors.mended), "the rail to be healed", 5 * SECOND)
        assert errors.mended[0][0] == 0
        assert errors.mended[0][1] - again < HEALED
        before = len(driver.inbox)
        driver.world.meet(driver)
        for size in SIZES:
            driver.send(peer, driver.data(size))
        driver.wait(lambda: len(driver.inbox) >= before + len(SIZES), "news over the healed rail")
        driver.wait(lambda: not driver.open_fragments, "completions")
        driver.world.meet(driver)
        assert len(errors.told) == len(errors.mended) == 1
        delivered(driver)

    made = world(switch=switch, seed=at)
    made.run(program)
    made.counter.require("rail")
