"""What is late comes in the order that chance drew, whatever keeps it, and in few steps each."""

from __future__ import annotations

import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest
from ompy_components.nic.gni.lateness import LOOKS, Lateness
from ompy_components.nic.gni.places import FreePlaces

PERCENT = 60


class Clock:
    """Time that passes with each look, and chance."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.time = 0

    def now(self) -> int:
        self.time += 300
        return self.time


class Plain:
    """The same by a plain list: all that is free is listed for each one that is done."""

    def __init__(self, seed: int, percent: int) -> None:
        self.random = Random(seed)
        self.percent = percent
        self.waiting: list[tuple[object, Callable[[], object]]] = []

    def happens(self) -> bool:
        return self.random.randrange(100) < self.percent

    def do(self, effect: Callable[[], object], lane: object = None) -> None:
        held = lane is not None and any(other is lane for other, _ in self.waiting)
        if held or self.happens():
            self.waiting.append((lane, effect))
        else:
            effect()

    def some(self) -> None:
        while self.waiting:
            seen: list[object] = []
            free = []
            for place, (lane, _) in enumerate(self.waiting):
                if lane is None or not any(other is lane for other in seen):
                    free.append(place)
                    seen.append(lane)
            self.waiting.pop(self.random.choice(free))[1]()
            if self.happens():
                return

    def finish(self) -> None:
        while self.waiting:
            self.waiting.pop(0)[1]()


def history(late: Any, rounds: Callable[[], object], seed: int) -> list[tuple[str, int]]:
    """What happens, in its order: effects of three lanes and of none, some making more of them."""
    lanes = [None, None, [], [], []]  # equal, and not the same
    draws, seen = Random(seed + 1), list[tuple[str, int]]()
    for number in range(300):

        def effect(number: int = number) -> None:
            seen.append(("done", number))
            if number % 7 == 0:
                late.do(lambda: seen.append(("after", number)), lanes[number % 5])

        late.do(effect, draws.choice(lanes))
        if not draws.randrange(3):
            rounds()
    late.finish()
    return seen


@pytest.mark.parametrize("seed", range(20))
def test_the_order_is_that_of_a_plain_list(seed: int) -> None:
    late = Lateness(Clock(seed), PERCENT)  # type: ignore[arg-type]
    plain = Plain(seed, PERCENT)

    def round_() -> None:
        for _ in range(LOOKS):
            if late.round():
                return

    assert history(late, round_, seed) == history(plain, plain.some, seed)
    assert not len(late)


def steps(effects: int) -> int:
    """Lines of Python that so many late effects take, until all are done."""
    late = Lateness(Clock(0), 100)  # type: ignore[arg-type]
    counted = 0

    def count(frame: FrameType, event: str, _: object) -> Any:
        nonlocal counted
        counted += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        for _ in range(effects):
            late.do(int)
        while len(late):
            late.round()
    finally:
        sys.settrace(before)
    return counted


def test_twice_as_many_take_about_twice_as_many_steps() -> None:
    """It was four times as many: a put of 1 MiB took 5 s of a processor."""
    few, many = steps(500), steps(1000)
    assert many < 2.5 * few, (few, many)


@pytest.mark.parametrize("seed", range(5))
def test_places(seed: int) -> None:
    random, places, model = Random(seed), FreePlaces(), list[bool]()
    for _ in range(400):
        if not model or random.randrange(2):
            free = bool(random.randrange(2))
            assert places.append(free=free) == len(model)
            model.append(free)
        else:
            place = random.randrange(len(model))
            model[place] = not model[place]
            places.change(place, free=model[place])
        found = [place for place, free in enumerate(model) if free]
        assert places.free == len(found)
        assert [places.find(number) for number in range(len(found))] == found
