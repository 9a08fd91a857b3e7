"""What all kinds of random programs are made with: chance, bytes to give, and the judge."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import numpy as np

GUARD: Final = 0xA5  # in all bytes that nobody may write; arbitrary


class WrongData(Exception):
    """A result is not what the model says."""


class Judge:
    """Compares results, and counts what it compared.

    Attributes:
        plant: change the first result that is judged: it has to be found.
        compared: results; none of them empty memory.
    """

    def __init__(self, plant: bool = False) -> None:
        self.plant = plant
        self.compared = 0

    def compare(self, got: Any, want: Any, what: str) -> None:
        """Compare two arrays of the same type, in each field by value.

        Raises:
            WrongData: they differ.
        """
        if got.shape != want.shape:
            raise WrongData(f"{what}: {got.shape} elements, not {want.shape}")
        if not got.size:
            return
        self.compared += 1
        if self.plant:
            self.plant = False
            got = np.frombuffer(bytearray(got.tobytes()), got.dtype)
            got.view(np.uint8)[0] ^= 1
        equal = np.ones(got.shape, bool)
        for name in got.dtype.names or (...,):
            equal &= got[name] == want[name]
        if not equal.all():
            (wrong,) = np.nonzero(~equal)
            some = wrong[:6]
            raise WrongData(
                f"{what}: {len(wrong)} of {len(want)} differ, at {some}: "
                f"{got[some]}, not {want[some]}"
            )

    def require(self, got: Any, want: Any, what: str) -> None:
        """Compare what is said: a count, a position, a status.

        Raises:
            WrongData: they differ.
        """
        self.compared += 1
        if got != want:
            raise WrongData(f"{what}: {got}, not {want}")

    def compare_objects(
        self, got: Any, want: Any, what: str, same: Callable[[Any, Any], bool]
    ) -> None:
        """Compare two objects.

        Raises:
            WrongData: they differ.
        """
        self.compared += 1
        if self.plant:
            self.plant = False
            got = ("planted", got)
        if not same(got, want):
            raise WrongData(f"{what}: {got!r:.300} ({type(got)}), not {want!r:.300} ({type(want)})")


class Program:
    """One random program.

    Attributes:
        comm: it has for itself.
        judge: of its results.
        chance: draws alike in all ranks.
        own: draws for this rank.
        one_world: nobody was spawned by others.
    """

    def __init__(self, comm: Any, seed: int, judge: Judge, *, one_world: bool = True) -> None:
        self.comm = comm
        self.one_world = one_world
        self.seed = seed
        self.judge = judge
        self.size: int = comm.size
        self.me: int = comm.rank
        self.chance = Random(f"program {seed}")
        self.own = Random(f"program {seed}, rank {comm.rank}")

    def generator(self, *names: int) -> np.random.Generator:
        """Numbers that depend on the seed and on `names` alone, which are not negative."""
        return np.random.Generator(np.random.PCG64([self.seed, *names]))

    def given(self, call: int, turn: int, rank: int, part: int, count: int) -> Any:
        """The bytes that a rank gives to a part of a call, in one of its turns."""
        return np.frombuffer(self.generator(call, turn, rank, part).bytes(count), np.uint8)


def some(chance: Random, likelihood: float) -> bool:
    """Whether something happens."""
    return chance.random() < likelihood
