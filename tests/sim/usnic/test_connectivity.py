"""The connectivity checker: what it finds, and whom it leaves in peace."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Worlds
from ompy.frameworks.btl import UNREACHABLE
from ompy.net.faults.fault_rules import FaultRule
from ompy.net.faults.scripted import ScriptedFaults
from ompy_components.btl.usnic.component import COMPONENT
from ompy_components.btl.usnic.connectivity.checker import LARGE, MS, SMALL, Limits, Probe
from ompy_components.btl.usnic.module import UsnicModule
from ompy_components.btl.usnic.statistics import Statistics

from tests.support.scripted_world import plan_of

SECOND = 1_000 * MS
PATIENCE = 41 * 250 * MS  # reference usnic.md 14: the report comes after 41 attempts


def world(
    *rules: FaultRule, seed: int = 0, **settings: object
) -> tuple[World, list[ScriptedFaults]]:
    """Two ranks whose networks have this script; and the faults at work."""
    made: list[ScriptedFaults] = []
    full = {f"btl_usnic_{name}": value for name, value in settings.items()}
    return Worlds(COMPONENT, {}).make(2, seed=seed, plan=plan_of(rules, made), settings=full), made


def statistics(driver: Driver) -> Statistics:
    (module,) = driver.modules
    assert isinstance(module, UsnicModule)
    return module.statistics


def probes(driver: Driver) -> dict[Any, Probe]:
    (module,) = driver.modules
    assert isinstance(module, UsnicModule)
    return module.connectivity._probes


def test_a_good_path_is_pinged_once() -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            driver.send(1, driver.data(5000))
        driver.quiesce()
        driver.idle(SECOND)
        assert not probes(driver)
        counted = statistics(driver)
        assert counted.num_probe_sends == counted.num_probe_recvs == 4  # two pings, two answers
        assert counted.num_resends == 0

    world()[0].run(program)


def test_nobody_is_pinged_when_it_is_off() -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            driver.send(1, driver.data(5000))
        driver.quiesce()
        assert statistics(driver).num_probe_sends == 0

    world(connectivity_check=0)[0].run(program)


def test_a_black_hole_of_large_packets_is_reported() -> None:
    """Small fragments get through meanwhile; the large one fails with a reason that helps."""

    def program(driver: Driver) -> None:
        if driver.rank == 0:
            large = driver.send(1, driver.data(5000), flags=0)
            begun = driver.engine.now()
            driver.wait(lambda: bool(driver.errors), "the report", 20 * SECOND)
            assert PATIENCE <= driver.engine.now() - begun <= PATIENCE + SECOND
            (error,) = driver.errors
            assert error.rank == 1
            for text in ("packets of 1472 bytes over rail", "MTU black hole", "nic_vic_mtu"):
                assert text in error.reason
            assert [status for _, status in large.completions] == [UNREACHABLE]
        else:
            driver.idle(20 * SECOND)

    made, faults = world(FaultRule("black_hole", ranks=(0,), above=1000))
    made.run(program)
    assert max(sum(one.delivered) for one in faults) > 41, "each attempt, and what was resent"


@pytest.mark.parametrize("seed", range(3))
def test_losses_are_no_black_hole(seed: int) -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            for size in (10, 5000, 1000):
                driver.send(1, driver.data(size))
        driver.quiesce()
        driver.idle(2 * PATIENCE)
        assert not driver.errors
        assert not probes(driver)
        driver.check_inbox(ordered=False)

    made, faults = world(FaultRule("drop", probability=0.3, seed=seed), seed=seed)
    made.run(program)
    assert sum(sum(one.delivered) for one in faults) > 3


def test_a_rank_that_computes_is_no_black_hole() -> None:
    def program(driver: Driver) -> None:
        if driver.rank == 0:
            driver.send(1, driver.data(5000))
        else:
            driver.compute(3 * PATIENCE)
        driver.quiesce()
        assert not driver.errors
        if driver.rank == 0:
            assert not probes(driver), "it was given up without a verdict"
        driver.check_inbox(ordered=False)

    world()[0].run(program)


def test_what_a_probe_makes_of_answers() -> None:
    limits = Limits(True, timeout=10, retries=2)
    both = Probe(0)
    assert both.next(0, limits) == [SMALL, LARGE]
    assert both.due == 10
    both.answered.add(LARGE)
    assert both.next(10, limits) == [SMALL]
    both.answered.add(SMALL)
    assert both.next(20, limits) == []
    assert not both.black_hole(limits)
    silent = Probe(0)
    assert [bool(silent.next(now, limits)) for now in range(4)] == [True] * 3 + [False]
    assert silent.over(limits)
    assert not silent.black_hole(limits)
    late = Probe(0)
    assert [late.next(now, limits) for now in range(2)] == [[SMALL, LARGE]] * 2
    late.answered.add(SMALL)  # the large ones count from here on
    assert [late.next(now, limits) for now in range(3)] == [[LARGE]] * 3
    assert late.black_hole(limits)
    assert late.next(9, limits) == []
