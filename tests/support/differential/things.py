"""Random Python objects, and when two of them are the same."""

from __future__ import annotations

import array
from collections import OrderedDict, deque, namedtuple
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any, Final

import numpy as np
from ompy import MPI

from tests.support.differential.program import some

LENGTHS: Final = (0, 1, 2, 5, 100, 1000, 5000)
LONG: Final = (40_000, 200_000)
DEPTH: Final = 2  # containers, one in another


class Thing:
    """An object of a user's class."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"Thing({self.value!r})"


class SubInteger(int):
    pass


class SubText(str):
    __slots__ = ()


class SubBytes(bytes):
    pass


class SubFloat(float):
    pass


class SubList(list):
    pass


class SubDict(dict):
    pass


class SubArray(np.ndarray):
    pass


Named = namedtuple("Named", "first second")


def fail_to_read(word: str) -> Any:
    raise KeyError(word)


class Unreadable:
    """It can be pickled, and not be read again."""

    def __reduce__(self) -> Any:
        return fail_to_read, ("read",)


class Unwritable:
    """It cannot be pickled."""

    def __reduce__(self) -> Any:
        raise LookupError("pickle")


SIMPLE: Final = (
    *(None, True, False, 0, 1, -1, 255, 256, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63)),
    *(1 << 63, 1 << 64, -(1 << 64), 1 << 500, 0.0, -0.0, 1.5, float("inf"), float("nan")),
    *(1e300, 5e-324, 1j, complex(float("nan"), -0.0), 2 + 3j, "", "a", "ü", "\ud800", "😀" * 3),
    *("\0", b"", SubInteger(5), SubText("q"), SubBytes(b"z"), SubFloat(2.5), Named(1, "x")),
    *(SubList([1, 2]), SubDict(a=1), date(2020, 1, 2), Decimal("1.1"), Fraction(1, 3), Ellipsis),
    *(NotImplemented, int, slice(1, 2), range(5), np.dtype("i4"), MPI.INT, MPI.SUM),
    *({1, "a", (2, 3)}, frozenset((1, 2)), deque((1, 2))),
    *(np.float64(1.5), np.int8(-3), np.uint64(1 << 63), np.float16(2), np.bool_(True)),
    *(np.complex64(1j), np.datetime64("2020-01-01"), np.str_("u"), np.longdouble(1) / 3),
    *(np.array(one) for one in (5, 2.5, "x", None, 1j)),
)
Maker = Callable[[Random, np.random.Generator, int], Any]
TYPES: Final = ("i1", "u2", "f4", "f2", "?", "F", "D", "g", "G", "S3", "U2", "O")
RAW: Final = ("i8", ">i8", "u8", "f8", ">f8", "M8[s]", "m8[ns]")
MADE: Final[tuple[Maker, ...]] = (
    lambda chance, numbers, length: numbers.bytes(length),
    lambda chance, numbers, length: bytearray(numbers.bytes(length)),
    lambda chance, numbers, length: chance.choice("xé") * length,
    lambda chance, numbers, length: np.frombuffer(numbers.bytes(8 * length), chance.choice(RAW)),
    lambda chance, numbers, length: numbers.integers(0, 9, length).astype(chance.choice(TYPES)),
    lambda chance, numbers, length: np.asfortranarray(numbers.random((length % 7, 5))),
    lambda chance, numbers, length: numbers.random((4, length % 50 + 1, 3))[::2, ::-1],
    lambda chance, numbers, length: numbers.random((length % 40, 6))[:, ::2].T,
    lambda chance, numbers, length: np.zeros(length % 9, [("a", "i4"), ("b", "f8", 2)]),
    lambda chance, numbers, length: np.broadcast_to(np.arange(3), (length % 5, 3)),
    lambda chance, numbers, length: np.zeros((0, length % 9)),
    lambda chance, numbers, length: np.zeros((2, 0, 3), order="F"),
    lambda chance, numbers, length: numbers.random(length % 20).view(SubArray),
    lambda chance, numbers, length: np.ma.array(numbers.random(5), mask=[0, 1, 0, 1, 0]),
    lambda chance, numbers, length: array.array(chance.choice("bBhHiIlLqQfd"), range(length % 100)),
)


def draw_container(chance: Random, depth: int) -> Any:
    """Some objects in another one."""
    count, kind = chance.randint(0, 5), chance.randrange(7)
    if kind < 2:
        return [draw_object(chance, depth) for _ in range(count)]
    if kind == 2:
        return tuple(draw_object(chance, depth) for _ in range(count))
    if kind == 3:
        keys = [chance.choice(("a", "b", 1, None, (1, 2), f"key {at}")) for at in range(count)]
        return {key: draw_object(chance, depth) for key in keys}
    if kind == 4:
        return Thing(draw_object(chance, depth))
    if kind == 5:
        return OrderedDict(a=draw_object(chance, depth))
    twice = draw_object(chance, depth)
    return [twice, twice]


def draw_object(chance: Random, depth: int = DEPTH) -> Any:
    """Any object."""
    kind = chance.random()
    if depth and kind < 0.4:
        return draw_container(chance, depth - 1)
    if kind < 0.65:
        return chance.choice(SIMPLE)
    length = chance.choice(LONG if some(chance, 0.03) else LENGTHS)
    numbers = np.random.default_rng(chance.randrange(1 << 30))
    return chance.choice(MADE)(chance, numbers, length)


def same_arrays(first: Any, second: Any) -> bool:
    """Of the same type, shape and content."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if isinstance(first, np.ma.MaskedArray):
        return np.array_equal(first.data, second.data) and np.array_equal(first.mask, second.mask)
    if first.dtype == object:
        return all(map(same_objects, first.ravel(), second.ravel()))
    if first.dtype.names or first.dtype.kind in "Mm":
        return bool(first.tobytes() == second.tobytes())
    return np.array_equal(first, second, equal_nan=first.dtype.kind in "fc")


def same_objects(first: Any, second: Any) -> bool:
    """Of the same type and content; what is no number is the same as itself."""
    if type(first) is not type(second):
        return False
    if isinstance(first, Thing):
        return same_objects(first.value, second.value)
    if isinstance(first, np.ndarray):
        return same_arrays(first, second)
    if isinstance(first, np.generic):
        return first.dtype == second.dtype and first.tobytes() == second.tobytes()
    if isinstance(first, list | tuple | deque):
        return len(first) == len(second) and all(map(same_objects, first, second))
    if isinstance(first, dict):
        return list(first) == list(second) and all(
            same_objects(first[key], second[key]) for key in first
        )
    if isinstance(first, float | complex):
        return repr(first) == repr(second)
    return bool(first == second)
