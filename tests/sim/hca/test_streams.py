"""Streams of random work against a model memory, under every fault of a wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from ompy.frameworks.context import RankContext
from ompy.net.faults.middleware import Corrupt, Drop, Duplicate, FaultCounter, Reorder

from tests.support.effort import effort
from tests.support.hca_job import run
from tests.support.hca_streams import streams

Faults = Callable[[RankContext, FaultCounter], Sequence[Any]]
COUNT = 40
DELAY = 200_000  # ns


def wire(drop: float = 0, duplicate: float = 0, reorder: float = 0, corrupt: float = 0) -> Faults:
    """A wire with these rates, both ways."""

    def faults(context: RankContext, counter: FaultCounter) -> Sequence[Any]:
        engine = context.engine
        return [
            Corrupt(engine, counter, rate=corrupt),
            Reorder(engine, counter, rate=reorder, delay=DELAY),
            Duplicate(engine, counter, rate=duplicate),
            Drop(engine, counter, rate=drop),
        ]

    return faults


WIRES: dict[str, dict[str, float]] = {
    "fine": {},
    "loss 5 %": {"drop": 0.05},
    "loss 20 %": {"drop": 0.2},
    "duplicates 20 %": {"duplicate": 0.2},
    "reordering 20 %": {"reorder": 0.2},
    "corruption 20 %": {"corrupt": 0.2},
    "all 5 %": {"drop": 0.05, "duplicate": 0.05, "reorder": 0.05, "corrupt": 0.05},
    "all 20 %": {"drop": 0.2, "duplicate": 0.2, "reorder": 0.2, "corrupt": 0.2},
}


@pytest.mark.parametrize("seed", range(effort(2)))
@pytest.mark.parametrize("name", WIRES)
def test_random_work(name: str, seed: int) -> None:
    rates = WIRES[name]
    _, counter = run(streams(seed, COUNT), seed=seed, faults=wire(**rates))
    counter.require(*rates)


@pytest.mark.parametrize(
    "settings",
    [
        {"window": 1, "max_reads": 1},
        {"window": 2, "mtu": 256},
        {"window": 2048, "mtu": 256, "max_reads": 64},
        {"mtu": 65_000},
        {"reordering": 0},
        {"reordering": 500},
    ],
    ids=str,
)
def test_random_work_with_other_settings(settings: dict[str, int]) -> None:
    rates = WIRES["all 5 %"]
    _, counter = run(streams(7, COUNT), seed=7, faults=wire(**rates), **settings)
    counter.require(*rates)


def test_one_seed_one_trace() -> None:
    def events(seed: int) -> list[Any]:
        job, counter = run(streams(5, 20), seed=seed, faults=wire(**WIRES["all 20 %"]), trace=True)
        counter.require("drop", "duplicate", "reorder", "corrupt")
        return job.events()

    first = events(3)
    assert len(first) > 100
    assert {event.layer for event in first} >= {"nic.hca"}
    assert events(3) == first
    assert events(4) != first
