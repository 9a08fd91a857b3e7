"""Determinism: the same seed gives the same run, event for event."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import ClassVar, Final
from unittest.mock import patch

import pytest

from ompy.conformance.btl.btl_worlds import World
from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.suite import Suite, Worlds
from ompy.conformance.component_identity import importable
from ompy.net.faults.middleware import Drop, Duplicate, Fault
from ompy.runtime.ranks.environment import OWN_CODE

COUNT: Final = 24  # fragments to each peer; arbitrary
RANKS: Final = 4  # arbitrary: enough peers that a set of them has an order
CLOCKS: Final = (
    "time",
    "time_ns",
    "monotonic",
    "monotonic_ns",
    "perf_counter",
    "perf_counter_ns",
    "process_time",
    "process_time_ns",
)


class DeterminismSuite(Suite):
    """One seed, one trace."""

    title: ClassVar[str] = "determinism"

    def test_same_seed_same_trace(self, worlds: Worlds, seed: int) -> None:
        """Twice the same run in one process, with its memory in disorder in between."""
        first = _run(worlds, seed)  # kept, so that the second one's objects lie elsewhere
        litter = [bytes(size) for size in range(1, 500) for _ in range(20)]
        random.Random(seed).shuffle(litter)  # noqa: S311 - disorder
        del litter[::2]  # and in another order
        _compare(_lines(first), _lines(_run(worlds, seed)), seed, "another run")

    def test_wall_clock_and_chance_have_no_part(self, worlds: Worlds) -> None:
        """The same run while the process's clocks and its own random numbers say other things."""
        first = record_run(worlds, 0)
        with _disturbed():
            second = record_run(worlds, 0)
        _compare(first, second, 0, "a run with other clocks and random numbers")

    def test_hash_seed_has_no_part(self, worlds: Worlds) -> None:
        """The same run in interpreters whose strings have other hashes."""
        target = importable(worlds.component)
        if not target:
            pytest.skip("it cannot be imported by name, so no other interpreter can run it")
        settings = json.dumps(dict(worlds.settings))
        found = {_elsewhere(target, settings, hash_seed) for hash_seed in ("1", "2")}
        assert len(found) == 1, "what it does depends on PYTHONHASHSEED: order of a set?"


def record_run(worlds: Worlds, seed: int) -> list[str]:
    """One run with some of everything, as lines: events, traffic, deliveries, completions."""
    return _lines(_run(worlds, seed))


def _run(worlds: Worlds, seed: int) -> World:
    def plan(driver: Driver) -> list[Fault]:
        if worlds.lacks("reliable"):
            return []
        engine, counter = driver.engine, driver.world.counter
        return [Drop(engine, counter, rate=0.03), Duplicate(engine, counter, rate=0.03)]

    world = worlds.make(RANKS, seed=seed, plan=plan)
    world.run(_program, trace=True)
    return world


def _lines(world: World) -> list[str]:
    lines = [event.line() for event in world.job.events()]
    for rank, driver in sorted(world.drivers.items()):
        lines += _story(rank, driver, world)
    return lines


def digest(lines: list[str]) -> str:
    """A short name for a run."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _program(driver: Driver) -> None:
    for number in range(COUNT):
        for rank in driver.peers:
            module, _ = driver.rails(rank)[0]
            size = module.max_send_size if number % 15 == 0 else 100 * (number % 9)
            driver.send(rank, driver.data(min(size, module.max_send_size)))
        if number % 10 == 0:
            driver.idle(5_000)
    driver.quiesce()
    driver.finalize()


def _story(rank: int, driver: Driver, world: World) -> Iterator[str]:
    for used in driver.wire.carried:
        yield f"{used.time} {rank} {used.what} {used.size} {used.check:08x}"
    for arrival in driver.inbox:
        yield f"{arrival.time} {rank} from {arrival.source} {arrival.tag} {len(arrival.data)}"
    for fragment in driver.sent:
        yield f"{fragment!r} {fragment.result} {fragment.completions}"
    yield f"{rank} refused {driver.refused}, steps {world.job.scheduler.steps}"


def _compare(first: list[str], second: list[str], seed: int, what: str) -> None:
    for number, (one, other) in enumerate(zip_longest(first, second), 1):
        last = max(len(first), len(second))
        assert one == other, f"seed {seed}: {what} differs from line {number} of {last} on"


@contextmanager
def _disturbed() -> Iterator[None]:
    """Clocks of another day, and other random numbers."""
    state = random.getstate()
    random.seed(12345)
    patches = []
    for name in CLOCKS:
        clock = getattr(time, name)
        ahead = 10**15 if name.endswith("_ns") else 10.0**6
        patches.append(patch.object(time, name, lambda c=clock, a=ahead: c() * 3 + a))
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()
        random.setstate(state)


def _elsewhere(target: str, settings: str, hash_seed: str) -> str:
    done = subprocess.run(  # noqa: S603 - this interpreter, our own module
        [sys.executable, *OWN_CODE, "-m", "ompy.conformance.replay", target, settings],
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
