"""Failover: what a PML that goes on over another rail has to be able to rely on.

Source: reference openmpi.md 4.15.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import SECOND, Driver
from ompy.conformance.btl.suite import Suite, Worlds, requires
from ompy.frameworks.btl import ERROR_NONFATAL
from ompy.net.faults.middleware import Cut, Fault
from ompy.net.virtual.virtual_network import Rail

COUNT: Final = 80  # fragments; arbitrary: more than is under way at a time
# bytes after which rank 0's interface goes down: at the very beginning, in a fragment, in the rest
CUTS: Final = (0, 1, 40, 300, 1_500, 5_000, 12_000, 30_000, 60_000)
# ns until the link is up again; arbitrary: before and after agents call it dead
OUTAGES: Final = (SECOND // 20, 3 * SECOND)
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
            _flood(driver)  # of the rank that comes last nothing may be accepted any more
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

    @requires("wire")
    def test_another_path_may_do(self, worlds: Worlds) -> None:
        """Where failover was asked for, a broken path is not the peer's end: ERROR_NONFATAL."""

        def program(driver: Driver) -> None:
            _break(driver)
            driver.world.meet(driver)  # who leaves is no broken path
            for error in driver.errors:
                assert error.flags == ERROR_NONFATAL, f"flags {error.flags}: {error.reason}"

        _cut_world(worlds, CUTS[5]).run(program)

    @requires("wire")
    @pytest.mark.parametrize("after", CUTS)
    def test_sendi_is_returned(self, worlds: Worlds, after: int) -> None:
        """What sendi took has arrived or comes back: after the error, once, in order."""

        def program(driver: Driver) -> None:
            _break(driver, via="sendi")
            driver.idle(SECOND)  # what was under way gets there
            driver.world.meet(driver)
            assert all(back.errors_before for back in driver.returned), (
                "something was returned before the error was told"
            )
            for rank in driver.peers:
                taken = [
                    (sent.tag, sent.data)
                    for sent in driver.sent
                    if sent.via == "sendi" and sent.target == rank and sent.accepted
                ]
                back = [(one.tag, one.data) for one in driver.returned if one.rank == rank]
                arrived = {
                    (item.tag, item.data)
                    for item in driver.world.drivers[rank].inbox
                    if item.source == driver.rank
                }
                lost = [one for one in taken if one not in arrived and one not in back]
                assert not lost, f"{len(lost)} fragments were taken by sendi, and are nowhere"
                assert len(set(back)) == len(back), "something was returned twice"
                assert back == [one for one in taken if one in set(back)], "returned out of order"

        _cut_world(worlds, after).run(program)

    @requires("wire", "heals")
    @pytest.mark.parametrize("outage", OUTAGES)
    def test_heals(self, worlds: Worlds, outage: int) -> None:
        """A path that broke is said to be healed once the wire works, at both ends; it carries."""

        def program(driver: Driver) -> None:
            _break(driver)
            driver.idle(outage)
            driver.world.meet(driver)
            assert not driver.healed, "a path was healed while the link was down"
            _cut(driver).restore()
            up = driver.engine.now()
            (peer,) = driver.peers
            driver.wait(lambda: bool(driver.healed), "the path to be healed", 60 * SECOND)
            assert driver.healed[0][0] - up < SECOND, "it took a second to take the path back"
            assert driver.healed[0][1] == peer
            driver.world.meet(driver)
            here = len(driver.inbox)
            driver.world.meet(driver)  # what the peer sends now is none of what was here
            for _ in range(10):
                driver.send(peer, driver.data(200))
            driver.wait(lambda: not driver.open_fragments, "completion over the healed path")
            driver.wait(lambda: len(driver.inbox) >= here + 10, "what came over the healed path")
            assert len(driver.healed) == 1, "a path was healed twice"

        _cut_world(worlds, CUTS[5]).run(program)

    @requires("wire", "heals")
    def test_breaks_again(self, worlds: Worlds) -> None:
        """A healed path that breaks is told again, and nothing of before comes over it."""

        def program(driver: Driver) -> None:
            _break(driver)
            _heal(driver, 1)
            _flood(driver)
            driver.world.meet(driver)
            _cut(driver).cut()
            driver.wait(lambda: len(driver.errors) > 1, "the second error", 60 * SECOND)
            driver.wait(lambda: not driver.open_fragments, "completions", 60 * SECOND)
            _heal(driver, 2)
            for rank in driver.peers:
                driver.send(rank, driver.data(100))
            driver.wait(lambda: not driver.open_fragments, "completion over the healed path")
            driver.idle(SECOND)
            driver.world.meet(driver)
            assert len(driver.errors) == 2, "a path broke that nobody has cut"
            driver.check_inbox(ordered=worlds.component.capabilities.ordered, whole=False)

        _cut_world(worlds, CUTS[5]).run(program)


def _cut_world(worlds: Worlds, after: int | None, seed: int = 0) -> World:
    """Two ranks on a slow wire, each with an interface that can go down."""

    def plan(driver: Driver) -> Sequence[Fault]:
        bytes_left = after if driver.rank == 0 else None
        return [Cut(driver.engine, driver.world.counter, after=bytes_left)]

    return worlds.make(seed=seed + (after or 0), rails=SLOW, plan=plan, failover=True)


def _cut(driver: Driver) -> Cut:
    (fault,) = driver.faults
    assert isinstance(fault, Cut)
    return fault


def _flood(driver: Driver, via: str = "alloc") -> int:
    """Offer fragments one after the other; returns how many were accepted."""
    accepted = 0
    for number in range(COUNT):
        for rank in driver.peers:
            largest = driver.rails(rank)[0][0].max_send_size
            size = min(largest, 4000 if number % 7 == 0 else 150)
            offered = driver.post(rank, driver.data(size), via=via if number % 5 else "alloc")
            accepted += offered is not None and offered.accepted
    return accepted


def _break(driver: Driver, via: str = "alloc") -> None:
    """Send in both directions while the link goes down; return when nothing is open."""
    source = driver.world.drivers
    for _ in range(20):
        _flood(driver, via)
        driver.idle(400_000)
        if 0 in source and _cut(source[0]).down:
            break
    driver.wait(lambda: _cut(source[0]).down, "the cut")
    _cut(driver).cut()  # the link is down at both ends
    _flood(driver, via)  # an end that waits for nothing has nothing to notice it by
    driver.wait(lambda: bool(driver.errors), "the error callback", 60 * SECOND)
    driver.wait(lambda: not driver.open_fragments, "completions", 60 * SECOND)
    driver.world.meet(driver)  # of who has left nobody is told that its path is broken
    driver.world.counter.require("cut")


def _heal(driver: Driver, times: int) -> None:
    """Let the link work again at both ends, and wait until its paths are healed."""
    driver.world.meet(driver)
    _cut(driver).restore()
    driver.wait(lambda: len(driver.healed) >= times, "the path to be healed", 60 * SECOND)
    driver.world.meet(driver)
