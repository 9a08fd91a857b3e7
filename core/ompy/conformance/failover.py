"""Failover: what a PML that goes on over another rail has to be able to rely on.

Source: reference openmpi.md 4.15.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

import pytest

from ompy.conformance.driver import SECOND, Driver
from ompy.conformance.suite import Suite, Worlds, requires
from ompy.conformance.world import World
from ompy.frameworks.btl import NOT_AVAILABLE
from ompy.net.faults import Cut, Fault
from ompy.net.virtual import Rail

COUNT: Final = 80  # fragments; arbitrary: more than is under way at a time
# bytes after which rank 0's interface goes down: at the very beginning, in a fragment, in the rest
CUTS: Final = (0, 1, 40, 300, 1_500, 5_000, 12_000, 30_000, 60_000)
SLOW: Final = (Rail("slow", latency=100_000, jitter=80_000, bandwidth=500, window=8_000),)


class FailoverSuite(Suite):
    """The obligations of modules with `FAILOVER_SUPPORT`."""

    title: ClassVar[str] = "failover"
    needs: ClassVar[tuple[str, ...]] = ("failover", "peers")

    @requires("wire")
    @pytest.mark.parametrize("after", CUTS)
    def test_completions_follow_the_error(self, worlds: Worlds, after: int) -> None:
        """The error is told once, before any error completion, and nothing stays open."""

        def program(driver: Driver) -> None:
            _break(driver)
            told = Counter((error.module, error.rank) for error in driver.errors)
            assert told, "nobody was told that the path is gone"
            assert max(told.values()) == 1, "a broken path is told once"
            for fragment in driver.sent:
                assert fragment.done, f"{fragment} was never completed"
                bad = [status for _, status in fragment.completions if status < 0]
                assert not bad or fragment.errors_before, (
                    f"{fragment} was completed with {bad[0]} before the error was told"
                )

        _cut_world(worlds, after).run(program)

    @requires("wire")
    @pytest.mark.parametrize("after", CUTS)
    def test_completed_well_means_delivered(self, worlds: Worlds, after: int) -> None:
        """What was completed well is at the peer, and nothing is there twice or altered."""

        def program(driver: Driver) -> None:
            _break(driver)
            driver.idle(SECOND)  # what was under way gets there
            driver.world.meet(driver)
            for other in driver.world.drivers.values():
                here = Counter((item.tag, item.data) for item in driver.inbox)
                for fragment in other.sent:
                    if fragment.target == driver.rank and fragment.good:
                        assert here[fragment.tag, fragment.data], (
                            f"{fragment} was completed well and has not arrived"
                        )
            driver.check_inbox(ordered=worlds.component.capabilities.ordered, whole=False)

        _cut_world(worlds, after).run(program)

    @requires("wire")
    def test_queued_fragments_fail(self, worlds: Worlds, seed: int) -> None:
        """Fragments that wait behind a broken path are completed with an error, soon."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                driver.send(rank, driver.data(100))
            driver.quiesce()
            accepted = _flood(driver)
            assert accepted, "nothing was accepted"
            _cut(driver).cut()
            driver.wait(
                lambda: not driver.open_fragments, "the completion of what was queued", 60 * SECOND
            )
            assert driver.errors, "nobody was told that the path is gone"

        world = _cut_world(worlds, None, seed)
        world.run(program)
        failed = [
            fragment
            for driver in world.drivers.values()
            for fragment in driver.sent
            if fragment.done and not fragment.good
        ]
        assert failed, "the path broke under a flood, and every fragment was completed well"

    @requires("wire")
    def test_afterwards(self, worlds: Worlds) -> None:
        """What is offered over a broken path is rejected, or completed with an error."""

        def program(driver: Driver) -> None:
            _break(driver)
            (peer,) = driver.peers
            for _ in range(5):
                offered = driver.post(peer, driver.data(60))
                if offered is not None and offered.accepted:
                    driver.wait(lambda done=offered: done.done, "a completion", 60 * SECOND)  # type: ignore[misc]
                    assert not offered.good, f"{offered} was completed well over a broken path"

        _cut_world(worlds, CUTS[5]).run(program)

    def test_no_sendi(self, worlds: Worlds) -> None:
        """Sendi could not report a later loss, so it is not available."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                driver.send(rank, driver.data(100))
            driver.quiesce()
            for rank in driver.peers:
                before = driver.world.accepted[rank]
                offered = driver.post(rank, driver.data(100), via="sendi")
                assert offered is None, f"sendi answered {offered.result}, not {NOT_AVAILABLE}"
                assert driver.world.accepted[rank] == before

        worlds.make().run(program)


def _cut_world(worlds: Worlds, after: int | None, seed: int = 0) -> World:
    """Two ranks on a slow wire, each with an interface that can go down."""

    def plan(driver: Driver) -> Sequence[Fault]:
        bytes_left = after if driver.rank == 0 else None
        return [Cut(driver.engine, driver.world.counter, after=bytes_left)]

    return worlds.make(seed=seed + (after or 0), rails=SLOW, plan=plan)


def _cut(driver: Driver) -> Cut:
    (fault,) = driver.faults
    assert isinstance(fault, Cut)
    return fault


def _flood(driver: Driver) -> int:
    """Offer fragments one after the other; returns how many were accepted."""
    accepted = 0
    for number in range(COUNT):
        for rank in driver.peers:
            largest = driver.rails(rank)[0][0].max_send_size
            offered = driver.post(rank, driver.data(min(largest, 4000 if number % 7 == 0 else 150)))
            accepted += offered is not None and offered.accepted
    return accepted


def _break(driver: Driver) -> None:
    """Send in both directions while the link goes down; return when nothing is open."""
    source = driver.world.drivers
    for _ in range(20):
        _flood(driver)
        driver.idle(400_000)
        if 0 in source and _cut(source[0]).down:
            break
    driver.wait(lambda: _cut(source[0]).down, "the cut")
    _cut(driver).cut()  # the link is down at both ends
    driver.wait(lambda: bool(driver.errors), "the error callback", 60 * SECOND)
    driver.wait(lambda: not driver.open_fragments, "completions", 60 * SECOND)
    driver.world.counter.require("cut")
