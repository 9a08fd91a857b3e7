"""Every kill, every host that goes down, every loss on a connection, at every step of a job."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from ompy.data.errors import ERR_SPAWN

from tests.support.control_processes import Fault
from tests.support.control_world import (
    Misdeed,
    Shape,
    World,
    depth_of,
    faults,
    judge,
    shape_of,
)
from tests.support.effort import THOROUGH, effort

SHAPES = {
    "two hosts": Shape(2, 1, 2, 5),
    "a relay": Shape(3, 1, 1, 1, stubborn=frozenset({1}), litter=frozenset({0, 1, 2})),
    "a slow end": Shape(
        3,
        1,
        1,
        6,
        misdeed=Misdeed(1, "work", "exit", 3),
        stubborn=frozenset({0, 2}),
        slow=frozenset({2}),
    ),
    "a chain": Shape(4, 1, 1, 2, litter=frozenset({1})),
    "a tree": Shape(5, 2, 1, 4),
    "an exit": Shape(3, 1, 1, 3, misdeed=Misdeed(1, "work", "exit", 3)),
    "an abort": Shape(3, 1, 1, 3, misdeed=Misdeed(2, "finalize", "abort", 7)),
    "more ranks": Shape(3, 3, 1, 5, spawned=2),
    "more ranks by a relay": Shape(3, 1, 1, 7, spawned=4),
    "no process": Shape(2, 2, 1, 5, spawned=3, unforkable=3),
    "no program": Shape(3, 1, 1, 6, spawned=3, unexecutable=4),
    "a crash": Shape(3, 1, 1, 8, misdeed=Misdeed(2, "leave", "crash", -11)),
}


@pytest.mark.parametrize("name", SHAPES)
def test_without_a_fault(name: str) -> None:
    world = World(SHAPES[name]).run()
    misdeed = world.shape.misdeed
    assert judge(world) == ("well" if misdeed is None else misdeed.kind)


@pytest.mark.parametrize("name", SHAPES)
def test_every_fault(name: str) -> None:
    """One at a time, at every act of every process and every message; CI takes a share."""
    shape, seen = SHAPES[name], Counter[str]()
    every = list(faults(shape))
    for fault in every if THOROUGH else Random(1).sample(every, 40):
        world = World(shape, fault).run()
        seen[judge(world)] += 1
    assert "launcher killed" in seen
    for process in ("agent", "wire"):
        assert any(word.startswith(process) for word in seen), "faults do strike"


@pytest.mark.parametrize("shape", [Shape(3, 3, 1, 5, spawned=2), Shape(3, 1, 2, 7, spawned=3)])
def test_a_later_rank_is_killed_at_every_step(shape: Shape) -> None:
    """Until its world is made its end is an error of the spawn, and from then on the job's."""
    became: Counter[str] = Counter()
    first = shape.hosts * shape.per_host
    count, whole = 0, World(shape)
    while any(process.alive for process in whole.processes) and whole.clock.step():
        count += 1
    steps = range(count) if THOROUGH else Random(1).sample(range(count), 60)
    for step in steps:
        for rank in range(first, first + shape.spawned):
            became[_killed_later(shape, step, rank)] += 1
    assert became.keys() >= {"refused", "rank killed", "well"}, became


def _killed_later(shape: Shape, step: int, number: int) -> str:
    """What becomes of a world one of whose later ranks is killed after so many steps."""
    world = World(shape)
    for _ in range(step):
        world.clock.step()
    victim = next((rank for rank in world.ranks() if rank.number == number), None)
    making = world.launcher.job._asked.is_being_made(number)
    if victim is None or not victim.alive:
        return judge(world.run())
    victim.die()
    world.struck.add(Fault("kill", victim.name, 0))
    word = judge(world.run())
    if word == "well":
        assert making, "it was a rank of the job"
        assert world.answers == [ERR_SPAWN]
        word = "refused"
    elif making:
        assert not world.answers or world.answers == [0], "the spawn was over before that was known"
    return word


def test_random_worlds() -> None:
    """None to two faults, in trees of all depths."""
    depths = Counter[int]()
    for number in range(effort(200)):
        shape, chance = shape_of(number), Random(f"faults {number}")
        every = list(faults(shape))
        chosen = [chance.choice(every) for _ in range(chance.choice((0, 1, 1, 2)))]
        judge(World(shape, *chosen).run())
        depths[depth_of(shape)] += 1
    assert set(depths) >= {1, 2, 3}


def test_the_last_word_of_a_rank_whose_end_is_being_noted() -> None:
    """It is an abort, for which the agent looks once more who has ended: that is said once."""
    shape = Shape(
        3, 2, 1, 18134, misdeed=Misdeed(0, "fence", "abort", 7), stubborn=frozenset({2}), spawned=1
    )
    world = World(shape, Fault("cut", 1, 2, "up"), Fault("dumb down", 1, 2, "down"))
    assert judge(world.run()) == "wire cut"


def test_a_world_repeats() -> None:
    shape = SHAPES["a tree"]
    one, other = (World(shape, Fault("cut", 3, 4, "up")).run() for _ in range(2))
    assert one.clock.now == other.clock.now
    assert [process.done for process in one.processes] == [p.done for p in other.processes]
    assert one.failures == other.failures


def test_a_connection_that_breaks_twice_is_told_of_once() -> None:
    """The second break takes away what is under way, but not the word that it is broken."""
    shape = Shape(2, 2, 2, 53362, misdeed=Misdeed(2, "commit", "abort", 7), stubborn=frozenset({1}))
    world = World(
        shape._replace(spawned=1, unforkable=13),
        Fault("cut", 1, 3, "down"),
        Fault("cut", 1, 4, "down"),
    )
    assert judge(world.run()) == "abort"
