"""Faults of datagrams: a reliable BTL hides them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.suite import Suite, Worlds, requires
from ompy.frameworks.paths.path_watch import INTERVAL_MS, MS, TIMEOUT_MS
from ompy.net.faults.middleware import BlackHole, Corrupt, Drop, Duplicate, Fault, Reorder

COUNT: Final = 120  # fragments; arbitrary: enough that every fault hits some of them
DELAY: Final = 300_000  # ns; arbitrary: many times the virtual wire's latency
# ns; arbitrary: nearly what makes agents take the path for dead, which then may be given up
OUTAGE: Final = (TIMEOUT_MS - 5 * INTERVAL_MS) * MS

Maker = Callable[[Driver], Sequence[Fault]]


def _drop(driver: Driver) -> Sequence[Fault]:
    return [Drop(driver.engine, driver.world.counter, rate=0.1)]


def _duplicate(driver: Driver) -> Sequence[Fault]:
    return [Duplicate(driver.engine, driver.world.counter, rate=0.2)]


def _reorder(driver: Driver) -> Sequence[Fault]:
    return [Reorder(driver.engine, driver.world.counter, rate=0.2, delay=DELAY)]


def _corrupt(driver: Driver) -> Sequence[Fault]:
    return [Corrupt(driver.engine, driver.world.counter, rate=0.1)]


def _all(driver: Driver) -> Sequence[Fault]:
    return [*_drop(driver), *_duplicate(driver), *_reorder(driver)]


def _kind(fault: Maker) -> str:
    return fault.__name__.removeprefix("_")


class DatagramFaultSuite(Suite):
    """Drop, duplicate, reorder, corrupt, outage."""

    title: ClassVar[str] = "datagram faults"
    needs: ClassVar[tuple[str, ...]] = ("datagram", "reliable")

    @pytest.mark.parametrize("fault", [_drop, _duplicate, _reorder, _all], ids=_kind)
    def test_bad_wire_is_hidden(self, worlds: Worlds, fault: Maker, seed: int) -> None:
        """What the wire drops, repeats and reorders arrives once, and in order if that is said."""
        _disturbed(worlds, fault, seed)

    @requires("checksum")
    def test_corruption(self, worlds: Worlds, seed: int) -> None:
        """Bytes altered on the wire are noticed, and sent again."""
        _disturbed(worlds, _corrupt, seed)

    @pytest.mark.parametrize("fault", [_drop, _reorder], ids=_kind)
    def test_end_over_a_bad_wire(self, worlds: Worlds, fault: Maker, seed: int) -> None:
        """Finalize delivers what was accepted, and returns, over a wire that loses packets."""

        def program(driver: Driver) -> int:
            for rank in driver.peers:
                for _ in range(30):
                    driver.send(rank, driver.data(500))
            due = 30 * len(driver.peers)
            driver.wait(lambda: len(driver.inbox) >= due, f"{due} fragments")
            begun = driver.engine.now()
            driver.finalize()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)
            return driver.engine.now() - begun

        world = worlds.make(3, seed=seed, plan=fault)
        assert max(world.run(program)) < 100 * SECOND, "finalize took too long"
        world.counter.require(_kind(fault))

    def test_outage_is_bridged(self, worlds: Worlds, seed: int) -> None:
        """For a while nothing gets through; then everything does, and nobody was given up."""

        def plan(driver: Driver) -> Sequence[Fault]:
            return [BlackHole(driver.engine, driver.world.counter, gives_up=OUTAGE)]

        def program(driver: Driver) -> None:
            (hole,) = driver.faults
            assert isinstance(hole, BlackHole)
            for number in range(40):
                for rank in driver.peers:
                    if number < 20:
                        driver.send(rank, driver.data(300))
                    else:
                        driver.post(rank, driver.data(300))
                if number == 19:
                    hole.open()
            driver.idle(OUTAGE)
            hole.close()
            driver.quiesce()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)
            assert not driver.errors, driver.errors[0].reason

        world = worlds.make(seed=seed, plan=plan)
        world.run(program)
        world.counter.require("black hole")


def _disturbed(worlds: Worlds, fault: Maker, seed: int) -> None:
    """Fragments of many sizes in both directions over a bad wire; all must arrive."""

    def program(driver: Driver) -> None:
        random = driver.engine.random
        for number in range(COUNT):
            for rank in driver.peers:
                module, _ = driver.rails(rank)[0]
                size = module.max_send_size if number % 20 == 0 else random.randrange(900)
                driver.send(rank, driver.data(size), via=random.choice(("alloc", "prepare")))
        driver.quiesce()
        driver.check_inbox(ordered=worlds.component.capabilities.ordered)
        assert not driver.errors, driver.errors[0].reason

    world = worlds.make(seed=seed, plan=fault)
    world.run(program)
    kinds = {fault.kind for driver in world.drivers.values() for fault in driver.faults}
    world.counter.require(*kinds)
