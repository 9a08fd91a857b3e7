"""A receiver that computes while packets come: its NIC drops them, and no message is lost."""

from __future__ import annotations

import pytest
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Worlds
from ompy.net.virtual.virtual_network import Rail
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.report import imbalance

from tests.sim.usnic.test_module import MS, usnic, world
from tests.support.effort import effort

FRAGMENTS = 30


def overrun(driver: Driver, *, size: int, computes: int) -> None:
    """Ranks that have an odd number are sent more than their buffers hold while they compute."""
    receivers = [peer for peer in range(driver.world.ranks) if peer % 2]
    if driver.rank in receivers:
        for peer in driver.peers:
            driver.rails(peer)
    driver.world.meet(driver)
    if driver.rank in receivers:
        driver.engine.spend(computes)
    else:
        for _ in range(FRAGMENTS):
            for peer in receivers:
                driver.send(peer, driver.data(size))
    driver.quiesce()
    driver.check_inbox(ordered=False)
    assert not driver.errors


@pytest.mark.parametrize("seed", range(effort(2)))
@pytest.mark.parametrize("size", [100, 20_000])  # by the priority channel, by the data channel
@pytest.mark.parametrize("ranks", [2, 4])
def test_nothing_is_lost_to_the_user(ranks: int, size: int, seed: int) -> None:
    def program(driver: Driver) -> None:
        overrun(driver, size=size, computes=5 * MS)
        counted = usnic(driver).statistics
        driver.world.shared[driver.rank] = counted
        driver.world.meet(driver)
        assert imbalance(counted, usnic(driver).buffers_held) == 0
        if driver.rank % 2:
            senders = [driver.world.shared[peer] for peer in driver.peers if not peer % 2]
            assert counted.num_overruns > 0
            assert counted.num_overruns == sum(c.dropped() for c in usnic(driver)._channels)
            assert sum(sender.num_resends for sender in senders) > 0

    world(ranks, seed=seed, rd_num=8, prio_rd_num=8).run(program)


def test_enough_buffers_drop_nothing() -> None:
    def program(driver: Driver) -> None:
        overrun(driver, size=100, computes=5 * MS)
        assert usnic(driver).statistics.num_overruns == 0
        assert usnic(driver).statistics.num_resends == 0

    world(rd_num=FRAGMENTS + 2, prio_rd_num=FRAGMENTS + 2, congestion_control=0).run(program)


def test_it_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    def program(driver: Driver) -> None:
        overrun(driver, size=20_000, computes=5 * MS)
        if driver.rank == 1:
            dropped = usnic(driver).statistics.num_overruns
            assert usnic(driver).counters()["num_overruns"] == dropped
            driver.world.shared[1] = dropped

    made = world(rd_num=8, stats=1000)
    made.run(program)
    text = capsys.readouterr().err
    assert f"dropped {made.shared[1]} for want of a buffer" in text


def test_senders_that_crowd_a_port() -> None:
    """Three send at once what one port passes: it drops, usnic sends again and says so."""

    def program(driver: Driver) -> None:
        if driver.rank:
            for _ in range(FRAGMENTS):
                driver.send(0, driver.data(20_000))
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not driver.errors
        if not driver.rank:
            assert usnic(driver).statistics.num_overruns > 0
            assert usnic(driver).counters()["num_overruns"] > 0

    settings = {"btl_usnic_connectivity_check": 0, "nic_vic_link_buffer": 20_000}
    rails = [Rail("rail0", chosen=False)]
    Worlds(COMPONENT, {}).make(4, seed=1, settings=settings, rails=rails).run(program)
