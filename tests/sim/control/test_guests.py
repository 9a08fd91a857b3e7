"""Whatever becomes of a guest that has met nobody, the job ends as it would have without."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.support.control_world import Misdeed, Shape, faults, judge
from tests.support.effort import THOROUGH, effort
from tests.support.guest_world import GuestWorld

SHAPES = {
    "one host": Shape(1, 1, 2, 1),
    "two hosts": Shape(2, 1, 2, 5),
    "a guest that fails": Shape(2, 1, 1, 3),
    "a relay": Shape(3, 1, 1, 1),
    "an exit": Shape(2, 1, 1, 4, misdeed=Misdeed(1, "work", "exit", 3)),
    "ranks may die": Shape(2, 1, 2, 7, survives=True),
}


@pytest.mark.parametrize("name", SHAPES)
def test_without_a_fault(name: str) -> None:
    world = GuestWorld(SHAPES[name]).run()
    misdeed = world.shape.misdeed
    assert judge(world) == ("well" if misdeed is None else misdeed.kind)
    assert world.guest is not None
    world.judge_guest()


@pytest.mark.parametrize("name", SHAPES)
def test_every_fault(name: str) -> None:
    """One at a time; those of the guest do nothing to the job. CI takes a share."""
    shape, seen = SHAPES[name], Counter[str]()
    every = list(faults(shape, GuestWorld))
    plain = "well" if shape.misdeed is None else shape.misdeed.kind
    for fault in every if THOROUGH else Random(1).sample(every, 60):
        world = GuestWorld(shape, fault).run()
        if not shape.survives or world.is_the_guests(fault):
            became = judge(world)
            if world.is_the_guests(fault):
                assert became == plain, (fault, became)
                seen["of the guest"] += 1
        world.judge_guest()
    assert seen["of the guest"], "faults do strike it"


def test_random_worlds() -> None:
    """Guests that come at any moment, with one fault or two."""
    joined = 0
    for seed in range(effort(60)):
        chance = Random(f"guests {seed}")
        shape = Shape(chance.randint(1, 4), chance.choice((1, 2, 3)), chance.randint(1, 2), seed)
        every = list(faults(shape, GuestWorld))
        world = GuestWorld(shape, *(chance.choice(every) for _ in range(chance.choice((1, 1, 2)))))
        judge(world.run())
        world.judge_guest()
        joined += world.guest is not None
    assert joined
