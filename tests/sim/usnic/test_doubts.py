"""When a path is dead and when a peer is only silent: the agents of a virtual world are asked."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Worlds
from ompy.frameworks.btl import FAILOVER_SUPPORT, SEND, UNREACHABLE
from ompy.frameworks.paths.path_watch import INTERVAL_MS, MS, PATIENCE_MS, TIMEOUT_MS
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.scripted import ScriptedFaults
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.statistics import Statistics

from tests.support.effort import effort
from tests.support.scripted_world import plan_of

SECOND = 1_000 * MS
FIRST_DOUBT = 100  # ms; the timeout of a packet, which is when the agents are asked
SILENT = 1  # ms; arbitrary: longer than a question and its answer take
REACH = "did not reach each other"


def world(*rules: FaultRule, **settings: object) -> tuple[World, list[ScriptedFaults]]:
    """Two ranks on two hosts whose networks have this script."""
    made: list[ScriptedFaults] = []
    settings = {"btl_usnic_connectivity_check": 0, **settings}
    return Worlds(COMPONENT, {}).make(2, plan=plan_of(rules, made), settings=settings), made


def statistics(driver: Driver) -> Statistics:
    (module,) = driver.modules
    assert isinstance(module, UsnicModule)
    return module.statistics


def send_into(outage: FaultRule, **settings: object) -> list[Any]:
    """Send a fragment of a few packets when a lasting fault begins.

    Returns:
        The errors of the sender, with their times since the fragment was sent, in ms.
    """
    found: list[Any] = []

    def program(driver: Driver) -> None:
        driver.rails(1 - driver.rank)
        driver.world.meet(driver)
        if driver.rank == 1:
            driver.idle(10 * SECOND)
            return
        assert driver.engine.now() < SECOND
        driver.idle(SECOND - driver.engine.now())
        sent = driver.post(1, driver.data(5000), flags=0)
        assert sent is not None
        driver.wait(lambda: not driver.open_fragments, "completion", 8 * SECOND)
        (status,) = [status for _, status in sent.completions]
        assert (status == UNREACHABLE) is bool(driver.errors)
        for error in driver.errors:
            assert error.rank == 1
            found.append(((error.time - SECOND) / MS, error.reason))

    made, faults = world(outage, **settings)
    made.run(program)
    assert sum(sum(one.delivered) for one in faults), "the fault never struck"
    return found


def hole(lasts_ms: float, **more: Any) -> FaultRule:
    """A black hole that opens when the fragment is sent."""
    return FaultRule("black_hole", since=SECOND, until=SECOND + round(lasts_ms * MS), **more)


FAILOVER = {"btl_usnic_flags": SEND | FAILOVER_SUPPORT}


@pytest.mark.parametrize(
    ("settings", "timeout"), [(FAILOVER, TIMEOUT_MS), ({}, PATIENCE_MS)], ids=["failover", "alone"]
)
@pytest.mark.parametrize("ranks", [(0,), (1,)], ids=["there", "back"])
def test_the_longest_outage_and_the_shortest_that_is_too_long(
    ranks: tuple[int, ...], settings: dict[str, object], timeout: int
) -> None:
    """The last question goes out an interval before the verdict, and has to be answered."""
    last_question = FIRST_DOUBT + timeout - INTERVAL_MS
    assert send_into(hole(last_question - SILENT, ranks=ranks), **settings) == []
    (error,) = send_into(hole(last_question + SILENT, ranks=ranks), **settings)
    at, reason = error
    assert 0 <= at - (FIRST_DOUBT + timeout) < SILENT
    assert (
        f"nothing gets through over usnic rail0 rail0/0 - rail0/1: the agents of both hosts {REACH}"
        in reason
    )


def test_the_time_is_a_parameter() -> None:
    """Here 50 ms of asking every 5 ms, from the first doubt on."""
    faster = {"btl_base_probe_timeout_ms": 50, "btl_base_probe_interval_ms": 5, **FAILOVER}
    ((at, reason),) = send_into(hole(8000), **faster)
    assert 0 <= at - 150 < SILENT
    assert f"{REACH} in 11 attempts" in reason


def test_nobody_is_asked_when_that_is_off() -> None:
    """Then an outage of any length is survived: nothing but the tries could end it."""
    assert send_into(hole(6000), btl_base_probe_timeout_ms=0) == []


def test_tries_count_only_while_the_agents_are_not_answered_either() -> None:
    """Three tries are over when the hole closes, and the verdict was not due yet."""
    tries = {"btl_usnic_retries_max": 3}
    assert send_into(hole(600), **tries) == []
    ((at, reason),) = send_into(hole(8000), **tries)
    assert at == FIRST_DOUBT + PATIENCE_MS
    assert REACH in reason


def keep_sending(driver: Driver, random: Random) -> None:
    """Fragments of several sizes, four at a time, until the path is lost."""
    sizes = (60_000, 30_000, 500)
    while not driver.errors:
        if driver.open_fragments < 4:
            driver.post(1, driver.data(random.choice(sizes)), flags=0)
        else:
            driver.wait(lambda: driver.open_fragments < 4, "a completion", 30 * SECOND)


@pytest.mark.parametrize("seed", [11, 0, *range(12, 11 + effort(1))])
@pytest.mark.parametrize("loss", [0, 0.05])
def test_tries_are_those_of_a_silence(loss: float, seed: int) -> None:
    """The hole opens in mid-transfer: no probe, no earlier loss and no other packet is a try.

    The peer computes now and then, which is a silence too: it may have begun before the hole.
    """
    random = Random(seed)
    computes = 400 * MS
    opened = SECOND + random.randrange(500 * MS, 1_000 * MS)
    found: list[tuple[float, str]] = []

    def program(driver: Driver) -> None:
        driver.rails(1 - driver.rank)
        driver.world.meet(driver)
        driver.idle(SECOND - driver.engine.now())
        if driver.rank == 0:
            keep_sending(driver, random)
            found.extend(((error.time - opened) / MS, error.reason) for error in driver.errors)
            return
        peers = Random(seed)
        while driver.engine.now() < opened:
            driver.compute(peers.randrange(MS, computes))
            driver.idle(peers.randrange(10_000, 3 * MS))
        driver.idle(10 * SECOND)

    rules = [FaultRule("black_hole", since=opened, until=opened + 100 * SECOND)]
    if loss:
        rules.append(FaultRule("drop", probability=loss))
    made, faults = world(*rules, btl_usnic_retries_max=4, btl_base_probe_timeout_ms=0)
    made.run(program)
    assert sum(sum(one.delivered) for one in faults)
    ((at, reason),) = found
    assert " was tried 5 times without an answer (sent " in reason
    configured = FIRST_DOUBT * (1 + 2 + 4 + 8 + 16)
    assert configured - computes / MS - FIRST_DOUBT < at < 2 * configured


def test_a_black_hole_of_large_packets_is_no_dead_path() -> None:
    """The agents' small packets get through: what is wrong with large ones others find out."""
    assert send_into(hole(6000, above=1000, ranks=(0,))) == []


@pytest.mark.parametrize("what", ["nic_gone", "link_down"])
def test_the_peers_nic(what: str) -> None:
    """It says nothing to us: only silence does."""
    rule = FaultRule(what, ranks=(1,), since=SECOND)
    (error,) = send_into(rule, **FAILOVER)
    assert 0 <= error[0] - (FIRST_DOUBT + TIMEOUT_MS) < SILENT
    assert REACH in error[1]


def test_a_path_that_is_made_when_the_nic_is_gone() -> None:
    """World 671 of the sim sweep: it fails as the others did, whatever is sent over it first."""

    def program(driver: Driver) -> None:
        if driver.rank < 2:
            driver.rails(1 - driver.rank)
        driver.world.meet(driver)
        if driver.rank == 0:
            (module,) = driver.modules
            assert isinstance(module, UsnicModule)
            module.nic.report_fatal("the device is gone")
            driver.wait(lambda: bool(driver.errors), "the loss of the first path", SECOND)
            sent = driver.post(2, driver.data(8), flags=0)
            assert sent is not None
            driver.wait(lambda: not driver.open_fragments, "completion", SECOND)
            assert [status for _, status in sent.completions] == [UNREACHABLE]
            assert [error.rank for error in driver.errors] == [1, 2]
        driver.world.meet(driver)

    Worlds(COMPONENT, {}).make(3, settings={"btl_usnic_connectivity_check": 0}).run(program)


@pytest.mark.parametrize("seconds", [5, 60])
def test_a_peer_that_computes_is_no_dead_path(seconds: int) -> None:
    """In the middle of a transfer, and with losses as well."""

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        if driver.rank == 0:
            for _ in range(20):
                driver.send(1, driver.data(20_000))
        else:
            driver.wait(lambda: len(driver.inbox) > 3, "the first ones", SECOND)
            driver.compute(seconds * SECOND)
        driver.quiesce()
        driver.check_inbox(ordered=False)
        assert not driver.errors
        if driver.rank == 0:
            counted = statistics(driver)
            assert counted.num_path_doubts, "the agents were never asked"
            assert counted.num_resends > seconds // 3

    made, faults = world(FaultRule("drop", probability=0.02), **FAILOVER)
    made.run(program)
    assert sum(sum(one.delivered) for one in faults) > 3


def test_a_doubt_ends_when_the_peer_answers() -> None:
    """Nobody is asked for ever: a second silence has all its time before it."""

    def program(driver: Driver) -> None:
        driver.rails(driver.peers[0])
        driver.world.meet(driver)
        (module,) = driver.modules
        assert isinstance(module, UsnicModule)
        for turn in range(3):
            if driver.rank == 0:
                driver.send(1, driver.data(100))
            else:
                driver.compute(SECOND)
            driver.quiesce()
            driver.idle(SECOND)
            if driver.rank == 0:
                assert statistics(driver).num_path_doubts == turn + 1
                assert not module.paths.doubted
            driver.world.meet(driver)
        assert not driver.errors

    made, _ = world()
    made.run(program)
