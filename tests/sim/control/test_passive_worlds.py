"""Passive mode: every kill, every host that goes down, every loss, from the first rank on."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.support.control_processes import Fault
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
    for fault in every if THOROUGH else Random(1).sample(every, min(len(every), 50)):
        seen[judge(World(shape, fault).run())] += 1
    assert {"agent", "rank"} <= set(seen), "faults do strike"


def test_random_worlds() -> None:
    """None to two faults."""
    for number in range(effort(300)):
        shape, chance = shape_of(number), Random(f"faults {number}")
        every = list(faults(shape))
        chosen = [chance.choice(every) for _ in range(chance.choice((0, 1, 1, 2)))]
        judge(World(shape, *chosen).run())


def test_the_host_that_looks_is_killed_too() -> None:
    """The agents of the first two hosts end before any has met: a later host finds it out."""
    shape = Shape(4, 3, 46401, stubborn=frozenset({1, 4, 9, 11}), spread_s=2.0)
    faults_of_it = (Fault("kill", "agent 1", 6), Fault("kill", "agent 0", 5))
    world = World(shape, *faults_of_it).run()
    assert judge(world) == "agent"
    assert len(world.struck) == len(faults_of_it)


def test_all_are_killed_before_any_has_come() -> None:
    """Nobody of the job ever knew of it: what is to be said, srun says."""
    shape = Shape(1, 2, 50595, stubborn=frozenset({1}), spread_s=2.0)
    world = World(shape, Fault("kill", "rank 0", 0), Fault("kill", "rank 1", 0)).run()
    assert judge(world) == "rank"
    assert not world.agents


def test_what_a_killed_agent_has_sent_is_read_before_its_end() -> None:
    """So a rank that it has admitted does not look for another agent."""
    shape = Shape(3, 2, 76437, (1, "work"), frozenset({4}), 2.0)
    world = World(shape, Fault("kill", "agent 2", 10)).run()
    assert judge(world) == "agent"
