"""Random work for pools of workers: every way to hand it out, also work that fails."""

from __future__ import annotations

import operator
from collections.abc import Callable
from random import Random
from typing import Any, Final

from ompy.addons import futures

from tests.support.differential.program import Program, some
from tests.support.differential.things import draw_object, same_objects

ROUNDS: Final = 5  # of a pool, at most
TASKS: Final = (0, 1, 2, 7, 30, 100)
FAILS: Final = 0.1  # of tasks
LARGE: Final = 200_000  # bytes of some results


class Refused(Exception):
    """What failing work raises."""


def work(number: int) -> tuple[int, bytes]:
    """Most often a result, some are large."""
    chance = Random(number)
    if some(chance, FAILS):
        raise Refused(number)
    return number, bytes(LARGE if some(chance, 0.03) else number % 50)


def combine(first: int, second: Any, last: int = 0) -> tuple[int, Any, int]:
    """Its arguments."""
    return first, second, last


def outcome(call: Callable[[], Any]) -> tuple[Any, ...]:
    """What a call returned or raised."""
    try:
        return ("returned", call())
    except Refused as problem:
        return ("raised", *problem.args)


class Round:
    """Some tasks of a pool."""

    def __init__(self, program: Program, pool: Any, number: int) -> None:
        self.program, self.pool, self.chance = program, pool, program.chance
        count = self.chance.choice(TASKS)
        self.numbers = [self.chance.randrange(1 << 20) for _ in range(count)]
        self.what = f"round {number}, {count} tasks"

    def judge(self, got: Any, want: Any, how: str) -> None:
        """Judge what came of it."""
        self.program.judge.compare_objects(got, want, f"{self.what}: {how}", same_objects)

    def submit(self) -> None:
        """One after the other, asked for in any order."""
        pending = [self.pool.submit(work, number) for number in self.numbers]
        want = [outcome(lambda n=number: work(n)) for number in self.numbers]  # type: ignore[misc]
        places = list(range(len(pending)))
        self.chance.shuffle(places)
        for place in places:
            self.judge(outcome(pending[place].result), want[place], "submit")

    def map_all(self) -> None:
        """In their order, up to the first one that fails."""
        chunk = self.chance.choice((1, 1, 3, 10, 1000))
        found: list[Any] = []
        results = self.pool.map(work, self.numbers, chunksize=chunk)
        end = outcome(lambda: found.extend(results))
        want: list[Any] = []
        expected = outcome(lambda: want.extend(map(work, self.numbers)))
        self.judge(end, expected, f"map by {chunk}")
        if end[0] == "returned":
            self.judge(found, want, f"map by {chunk}")

    def map_unordered(self) -> None:
        """In any order."""
        chunk = self.chance.choice((1, 4))
        found = self.pool.map(operator.neg, self.numbers, chunksize=chunk, unordered=True)
        self.judge(sorted(found), sorted(map(operator.neg, self.numbers)), "map unordered")

    def starmap(self) -> None:
        """Several arguments, which are objects of any type."""
        chunk = self.chance.choice((1, 2, 50))
        given = [(number, draw_object(Random(number))) for number in self.numbers]
        found = list(self.pool.starmap(combine, given, chunksize=chunk))
        want = [combine(number, draw_object(Random(number))) for number in self.numbers]
        self.judge(found, want, "starmap")

    def map_several(self) -> None:
        """Iterables of different lengths: the shortest one counts."""
        second = range(len(self.numbers) // 2)
        found = list(self.pool.map(combine, self.numbers, second))
        self.judge(found, list(map(combine, self.numbers, second)), "map of two")


WAYS: Final = (Round.submit, Round.map_all, Round.map_unordered, Round.starmap, Round.map_several)


def run(program: Program) -> None:
    """A pool of all ranks; the root hands out, the others work."""
    comm = program.comm.Dup()
    root = program.chance.randrange(program.size)
    with futures.MPICommExecutor(comm, root) as pool:
        if pool is not None:
            for number in range(program.chance.randint(1, ROUNDS)):
                program.chance.choice(WAYS)(Round(program, pool, number))
    comm.Free()
