"""Life cycle: from open to close, and every way to end with work in flight."""

from __future__ import annotations

from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.suite import Suite, Worlds, requires
from ompy.frameworks.btl import BtlComponent
from ompy.mca.component import NotAvailable

BURST: Final = 40  # fragments; arbitrary: more than a ring or window holds of large ones
END_MAX: Final = 300 * SECOND  # arbitrary: twice the longest time-out of any BTL of ours


class LifeCycleSuite(Suite):
    """Open, init, finalize, close."""

    title: ClassVar[str] = "life cycle"

    def test_close_without_open(self, component: BtlComponent) -> None:
        """Close is harmless before open: it also follows an open that failed."""
        component.close()
        component.close()

    def test_opened_again(self, worlds: Worlds) -> None:
        """One job after another in one process."""
        for seed in range(3):
            worlds.make(seed=seed).run(_talk)

    def test_a_job_of_one_rank(self, worlds: Worlds) -> None:
        """Alone, it has no module, or modules that reach nobody but the own rank."""

        def program(driver: Driver) -> None:
            if worlds.lacks("peers"):
                _talk(driver)
            else:
                assert not driver.rails(0)

        worlds.make(1).run(program)

    def test_no_network(self, worlds: Worlds) -> None:
        """Where there is no interface it says that it is not available, or has no module."""

        def program(driver: Driver) -> int:
            return len(driver.modules)

        try:
            counts = worlds.make(rails=()).run(program)
        except NotAvailable:
            pytest.fail("NotAvailable came from outside init")
        if worlds.component.capabilities.wire != "memory":
            assert not any(counts), "modules without anything to send through"

    def test_finalize_without_use(self, worlds: Worlds) -> None:
        """Nobody says a word, and the end comes."""

        def program(driver: Driver) -> int:
            driver.finalize()
            return driver.engine.now()

        assert max(worlds.make(3).run(program)) < END_MAX

    @requires("reliable")
    @pytest.mark.parametrize("via", ["alloc", "prepare"])
    def test_finalize_with_work_in_flight(self, worlds: Worlds, via: str, seed: int) -> None:
        """What was accepted before finalize arrives, and is completed when that returns."""

        def program(driver: Driver) -> None:
            if driver.rank == 0:
                _burst(driver, via)
                driver.finalize()
                driver.world.meet(driver)
            else:
                driver.world.meet(driver)
                due = driver.world.accepted[driver.rank]
                driver.wait(
                    lambda: len(driver.inbox) >= due, f"{due} fragments of a rank that left"
                )
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)

        worlds.make(seed=seed).run(program)

    @requires("reliable")
    def test_everybody_ends_at_once(self, worlds: Worlds, seed: int) -> None:
        """Ranks that have what they wait for leave while their own sends are under way."""

        def program(driver: Driver) -> None:
            _burst(driver, "alloc")
            due = BURST * len(driver.peers)
            driver.wait(lambda: len(driver.inbox) >= due, f"{due} fragments")
            driver.finalize()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)

        worlds.make(3, seed=seed).run(program)

    def test_silence_after_finalize(self, worlds: Worlds) -> None:
        """No callback comes after finalize has returned, whatever timers were running."""

        def program(driver: Driver) -> None:
            _burst(driver, "prepare")
            due = BURST * len(driver.peers)
            driver.wait(lambda: len(driver.inbox) >= due, f"{due} fragments")
            driver.finalize()
            driver.idle(60 * SECOND)

        worlds.make().run(program)

    def test_endpoints_are_given_back(self, worlds: Worlds) -> None:
        """After del_procs the end comes as well."""

        def program(driver: Driver) -> None:
            _talk(driver)
            for rank in driver.peers:
                for module, endpoint in driver.rails(rank):
                    module.del_procs([endpoint])
            driver.finalize()

        worlds.make(3).run(program)

    @requires("peers")
    @pytest.mark.parametrize("known", [True, False], ids=["talked before", "never met"])
    def test_finalize_after_a_peer_has_departed(
        self, worlds: Worlds, known: bool, seed: int
    ) -> None:
        """The rank that is left ends in bounded time, every fragment completed well or badly."""

        def program(driver: Driver) -> int:
            if known:
                _talk(driver)
            driver.world.meet(driver)
            if driver.rank == 1:
                driver.vanish()
                driver.world.departs(1, "it was killed")
                return 0
            begun = driver.engine.now()
            for _ in range(BURST):
                offered = driver.post(1, driver.data(driver.modules[0].max_send_size))
                if offered is None or not offered.accepted:
                    break
            driver.idle(SECOND // 100)
            driver.finalize()
            return driver.engine.now() - begun

        took = max(worlds.make(seed=seed).run(program))
        assert took < END_MAX, f"finalize took {took / SECOND:g} s of virtual time"


def _talk(driver: Driver) -> None:
    """One fragment to every peer, and back."""
    for rank in driver.peers:
        driver.send(rank, driver.data(200))
    driver.quiesce()
    driver.check_inbox(ordered=False)


def _burst(driver: Driver, via: str) -> None:
    """Many fragments to every peer, among them some of the largest."""
    for number in range(BURST):
        largest = driver.modules[0].max_send_size
        for rank in driver.peers:
            driver.send(rank, driver.data(largest if number % 8 == 0 else 64), via=via)
