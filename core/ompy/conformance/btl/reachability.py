"""Reachability: who gets an endpoint."""

from __future__ import annotations

from typing import ClassVar

from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Suite, Worlds, requires
from ompy.net.virtual.virtual_network import Rail

HOSTS = [0, 0, 1, 1]  # of four ranks, so that each has one peer here and two elsewhere


class ReachabilitySuite(Suite):
    """Endpoints by `reach`."""

    title: ClassVar[str] = "reachability"

    def test_who_gets_an_endpoint(self, worlds: Worlds) -> None:
        """Exactly those its `reach` promises."""
        reach = worlds.component.capabilities.reach

        def program(driver: Driver) -> None:
            for rank, host in enumerate(HOSTS):
                reached = bool(driver.rails(rank))
                if rank == driver.rank:
                    assert reached == (reach == "self"), "the own rank"
                elif host == HOSTS[driver.rank]:
                    assert reached == (reach == "host") or reach == "network", "a rank of this host"
                else:
                    assert reached == (reach == "network"), "a rank of another host"

        worlds.make(4, hosts=HOSTS).run(program)

    def test_reach_is_mutual(self, worlds: Worlds) -> None:
        """Who reaches a rank is reached by it, and fragments pass between them."""

        def program(driver: Driver) -> list[int]:
            reached = [rank for rank in range(len(HOSTS)) if driver.rails(rank)]
            for rank in reached:
                driver.send(rank, driver.data(100))
            driver.quiesce()
            driver.check_inbox(ordered=False)
            return reached

        table = worlds.make(4, hosts=HOSTS).run(program)
        for rank, reached in enumerate(table):
            for other in reached:
                assert rank in table[other], f"{rank} reaches {other}, but not the other way"

    @requires("peers")
    def test_a_peer_without_it_is_not_reached(self, worlds: Worlds) -> None:
        """A rank that does not use this BTL gets no endpoint; the others do."""

        def program(driver: Driver) -> None:
            if driver.rank == 1:
                return
            assert not driver.rails(1)
            assert driver.rails(2 - driver.rank)

        worlds.make(3, without=[1]).run(program)

    def test_asked_again(self, worlds: Worlds) -> None:
        """Asked twice, alone or together, it gives the same answer."""

        def program(driver: Driver) -> None:
            procs = driver.context.procs
            for module in driver.modules:
                one_by_one = [driver.add_procs(module, [proc])[0] is None for proc in procs]
                together = [found is None for found in driver.add_procs(module, procs)]
                assert one_by_one == together
            for rank in driver.peers:
                driver.send(rank, driver.data(50))
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make(3).run(program)

    @requires("peers")
    def test_every_rail_carries(self, worlds: Worlds) -> None:
        """With two networks each module that reaches a peer carries fragments to it."""

        def program(driver: Driver) -> None:
            for rank in driver.peers:
                for rail in range(len(driver.rails(rank))):
                    while driver.post(rank, driver.data(300), rail=rail) is None:
                        driver.idle(1000)
            driver.quiesce()
            driver.check_inbox(ordered=False)

        worlds.make(3, rails=(Rail("one"), Rail("two", latency=50_000))).run(program)
