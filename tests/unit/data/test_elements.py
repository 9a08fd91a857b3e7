"""Operations on numbers: the loops in C, where there are any, against their twins in Python."""

from __future__ import annotations

import struct
from random import Random

import pytest
from ompy.data import elements
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout
from ompy.data.operation import COMPILED

COUNT = 37  # arbitrary: no multiple of what a vector register holds
SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.5, -2.25, 1e30)


def numbers(kind: str, random: Random) -> bytes:
    if kind not in "fd":
        return random.randbytes(COUNT * struct.calcsize(kind))
    values = [random.choice((*SPECIAL, random.uniform(-9, 9))) for _ in range(COUNT)]
    return struct.pack(f"={COUNT}{kind}", *values)


@pytest.mark.parametrize("name", elements.OPERATIONS)
def test_combine_does_what_its_twin_does(name: str) -> None:
    operation = PREDEFINED[name]
    random = Random(name)
    for kind, loop in elements.LOOPS[name].items():
        size = COUNT * struct.calcsize(kind)
        layout = Layout(((0, struct.calcsize(kind)),), 0, struct.calcsize(kind), kind)
        assert (operation.loops.get(kind) == loop) is COMPILED
        left = memoryview(b"abc" + numbers(kind, random) + b"de")
        right = bytearray(b"x" + numbers(kind, random) + b"yz")
        expected = bytearray(right)
        elements.combine(loop, left, 3, memoryview(expected), 1, size)
        operation.combine(layout, left, 3, memoryview(right), 1, size)
        # which NaN it is may differ, as in C
        assert same(right[1:-2], expected[1:-2], kind), (name, kind)
        assert (right[:1], right[-2:]) == (b"x", b"yz")


def same(one: bytes, other: bytes, kind: str) -> bool:
    if kind not in "fd":
        return one == other
    pairs = zip(struct.iter_unpack(kind, one), struct.iter_unpack(kind, other), strict=True)
    return all(repr(a) == repr(b) for (a,), (b,) in pairs)


def test_every_operation_is_asked_whether_it_is_defined() -> None:
    assert all(set(kinds) <= set(elements.KINDS) for kinds in elements.LOOPS.values())
    assert "f" not in elements.LOOPS["MPI_BAND"]
    assert "d" in elements.LOOPS["MPI_SUM"]
