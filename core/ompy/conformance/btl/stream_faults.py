"""Faults of connections: an error in bounded time, or nobody notices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import pytest

from ompy.conformance.btl.driver import SECOND, WAIT, Driver
from ompy.conformance.btl.suite import Suite, Worlds
from ompy.net.faults.middleware import BlackHole, Cut, Fault
from ompy.net.virtual.virtual_network import Rail

COUNT: Final = 60  # fragments; arbitrary: more than the narrow wire holds
GIVES_UP: Final = 5 * SECOND  # arbitrary: Linux tries for a quarter of an hour
TRIES: Final = 50  # arbitrary, as the next: a module may be connecting, or take only so much ahead
PAUSE: Final = SECOND // 10_000  # ns
OUTAGE: Final = SECOND  # arbitrary, well below GIVES_UP
# bytes after which a connection is cut: in the handshake, in a header, in a fragment, later
CUTS: Final = (0, 10, 60, 150, 1000, 20_000, 100_000)
# what is sent waits at the sender for a while
SLOW: Final = (Rail("slow", latency=100_000, jitter=50_000, bandwidth=1_000, window=8_000),)

assert OUTAGE < GIVES_UP


class StreamFaultSuite(Suite):
    """Reset, a peer that is gone, a black hole, an outage."""

    title: ClassVar[str] = "stream faults"
    needs: ClassVar[tuple[str, ...]] = ("stream", "peers")

    @pytest.mark.parametrize("after", CUTS)
    def test_reset(self, worlds: Worlds, after: int) -> None:
        """Cut anywhere, both ranks are told, and every fragment is completed, well or badly."""

        def plan(driver: Driver) -> Sequence[Fault]:
            if driver.rank:
                return ()
            return [Cut(driver.engine, driver.world.counter, after=after)]

        def program(driver: Driver) -> None:
            _flood(driver)
            _see_the_break(driver)
            driver.world.meet(driver)  # who leaves first is no broken path

        world = worlds.make(seed=after, rails=SLOW, plan=plan)
        world.run(program)
        world.counter.require("cut")

    def test_a_peer_is_gone(self, worlds: Worlds, seed: int) -> None:
        """A rank that was killed closes its sockets without a word; the other one is told."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                driver.send(rank, driver.data(100))
            driver.quiesce()
            if driver.rank == 1:
                driver.vanish()
                return
            _flood(driver)
            _see_the_break(driver)

        worlds.make(seed=seed, rails=SLOW).run(program)

    @pytest.mark.parametrize("early", [True, False], ids=["from the start", "in the middle"])
    def test_black_hole(self, worlds: Worlds, early: bool, seed: int) -> None:
        """Nothing gets through and nobody says so, until the system gives the connection up."""

        def plan(driver: Driver) -> Sequence[Fault]:
            return [BlackHole(driver.engine, driver.world.counter, gives_up=GIVES_UP, active=early)]

        def program(driver: Driver) -> None:
            if not early:
                for rank in driver.peers:
                    driver.send(rank, driver.data(100))
                driver.quiesce()
                _hole(driver).open()
            _flood(driver)
            _see_the_break(driver)
            driver.world.meet(driver)

        world = worlds.make(seed=seed, plan=plan)
        world.run(program)
        world.counter.require("black hole")

    def test_connections_bridge_an_outage(self, worlds: Worlds, seed: int) -> None:
        """An outage the system bridges loses nothing and is no error."""

        def plan(driver: Driver) -> Sequence[Fault]:
            return [BlackHole(driver.engine, driver.world.counter, gives_up=GIVES_UP)]

        def program(driver: Driver) -> None:
            for _ in range(COUNT // 2):
                for rank in driver.peers:
                    driver.send(rank, driver.data(400))
            _hole(driver).open()
            refused = 0  # by a module that takes only so much ahead
            for _ in range(COUNT // 2):
                for rank in driver.peers:
                    refused += driver.post(rank, driver.data(400)) is None
            driver.idle(OUTAGE)
            _hole(driver).close()
            for _ in range(refused):
                driver.send(driver.peers[0], driver.data(400))
            driver.quiesce()
            driver.check_inbox(ordered=worlds.component.capabilities.ordered)
            assert not driver.errors, driver.errors[0].reason

        world = worlds.make(seed=seed, plan=plan)
        world.run(program)
        world.counter.require("black hole")


def _hole(driver: Driver) -> BlackHole:
    (hole,) = driver.faults
    assert isinstance(hole, BlackHole)
    return hole


def _flood(driver: Driver) -> None:
    """Offer fragments until the path is found broken, or enough were accepted."""
    for number in range(COUNT):
        for rank in driver.peers:
            largest = driver.rails(rank)[0][0].max_send_size
            size = min(largest, 12_000) if number % 6 == 0 else 200
            offered = driver.post(rank, driver.data(size))
            for _ in range(TRIES):
                if offered is not None:
                    break
                driver.idle(PAUSE)
                offered = driver.post(rank, driver.data(size))
            if offered is not None and not offered.accepted:
                return
        if number % 10 == 9:
            driver.idle(30_000)


def _see_the_break(driver: Driver) -> None:
    """The error callback comes, every fragment is completed, and new ones fail, all in time."""
    (peer,) = driver.peers
    driver.wait(lambda: bool(driver.errors), "the error callback")
    assert all(error.rank in (peer, None) for error in driver.errors)
    driver.wait(lambda: not driver.open_fragments, "the completion of what was accepted", WAIT // 2)
    offered = driver.post(peer, driver.data(50))
    if offered is not None and offered.accepted:
        driver.wait(lambda: offered.done, "the completion of what was sent over a broken path")
        assert not offered.good, f"{offered} was completed well over a broken path"
    driver.check_inbox(ordered=driver.world.component.capabilities.ordered, whole=False)
