"""Passive mode: every kill, every host that goes down, every loss, from the first rank on."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.support.effort import THOROUGH, effort
from tests.support.passive_world import Shape, World, faults, judge, shape_of

SHAPES = {
    "one host": Shape(1, 3, 1),
    "two hosts": Shape(2, 2, 2, stubborn=frozenset({1})),
    "three hosts, slowly": Shape(3, 1, 3, spread_s=2.0),
    "an abort": Shape(3, 2, 4, aborts=(3, "work")),
}


@pytest.mark.parametrize("name", SHAPES)
def test_without_a_fault(name: str) -> None:
    world = World(SHAPES[name]).run()
    assert judge(world) == ("well" if world.shape.aborts is None else "aborted")


@pytest.mark.parametrize("name", SHAPES)
def test_every_fault(name: str) -> None:
    """One at a time, at every act of every process and every message; CI takes a share."""
    shape, seen = SHAPES[name], Counter[str]()
    every = list(faults(shape))
    for fault in every if THOROUGH else Random(1).sample(every, min(len(every), 100)):
        seen[judge(World(shape, fault).run())] += 1
    assert {"agent", "rank"} <= set(seen), "faults do strike"


def test_random_worlds() -> None:
    """None to two faults."""
    for number in range(effort(300)):
        shape, chance = shape_of(number), Random(f"faults {number}")
        every = list(faults(shape))
        chosen = [chance.choice(every) for _ in range(chance.choice((0, 1, 1, 2)))]
        judge(World(shape, *chosen).run())
