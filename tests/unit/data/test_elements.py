"""Operations on numbers: the loops in C, where there are any, against their twins in Python."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from ompy.data import elements
from ompy.data.kernels import DEFINED, PREDEFINED
from ompy.data.layout import Layout
from ompy.data.operation import COMPILED

COUNT = 37  # arbitrary: no multiple of what a vector register holds
SPECIAL = (0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1.5, -2.25, 1e30, 6e-8, 65519.0)
REAL = {"F": "f", "D": "d", "G": "g"}


def dtype(kind: str) -> np.dtype:
    if len(kind) > 1:
        return np.dtype([("value", kind[0]), ("index", kind[1])])
    return np.dtype("u1" if kind in "?x" else kind)


def numbers(kind: str, random: Random) -> bytes:
    of = dtype(kind)
    if len(kind) > 1:
        made = np.zeros(COUNT, of)
        made["value"] = [random.choice((1, 2, *SPECIAL[5:7])) for _ in range(COUNT)]
        made["index"] = [random.randrange(-9, 9) for _ in range(COUNT)]
        return made.tobytes()
    if kind not in "fdgeFDG":
        return random.randbytes(COUNT * of.itemsize)
    if kind == "e" and random.random() < 0.5:
        return random.randbytes(COUNT * of.itemsize)
    part = np.dtype(REAL.get(kind, kind))
    values = [
        random.choice((*SPECIAL, random.uniform(-9, 9)))
        for _ in range(COUNT * of.itemsize // part.itemsize)
    ]
    with np.errstate(over="ignore"):
        return np.array(values).astype(part).tobytes()


@pytest.mark.parametrize("name", elements.OPERATIONS)
def test_combine_does_what_its_twin_does(name: str) -> None:
    operation = PREDEFINED[name]
    random = Random(name)
    for kind, loop in elements.LOOPS[name].items():
        each = dtype(kind).itemsize
        size = COUNT * each
        layout = Layout(((0, each),), 0, each, kind)
        assert (operation.loops.get(kind) == loop) is COMPILED
        left = memoryview(b"abc" + numbers(kind, random) + b"de")
        right = bytearray(b"x" + numbers(kind, random) + b"yz")
        expected = bytearray(right)
        elements.combine(loop, left, 3, memoryview(expected), 1, size)
        operation.combine(layout, left, 3, memoryview(right), 1, size)
        # which NaN it is may differ, as in C
        assert same(right[1:-2], expected[1:-2], kind), (name, kind)
        assert (right[:1], right[-2:]) == (b"x", b"yz")


@pytest.mark.parametrize("name", ["MPI_MAXLOC", "MPI_MINLOC"])
@pytest.mark.parametrize("kind", ["fi", "di", "li", "ii", "hi", "gi"])
def test_pairs_with_gaps_stay_where_they_are(name: str, kind: str) -> None:
    """The gaps, too: nothing is stored there."""
    random = Random(name + kind)
    lying = np.dtype([("value", kind[0]), ("index", "i")], align=True)
    layout = Layout(
        ((0, np.dtype(kind[0]).itemsize), (lying.fields["index"][1], 4)), 0, lying.itemsize, kind
    )
    left, right = (np.frombuffer(bytearray(b"g" * COUNT * lying.itemsize), lying) for _ in range(2))
    for array in (left, right):
        array["value"] = [random.choice((1, 2, 3)) for _ in range(COUNT)]
        array["index"] = [random.randrange(-9, 9) for _ in range(COUNT)]
    better = np.greater if name == "MPI_MAXLOC" else np.less
    wins = better(left["value"], right["value"])
    equal_ones = left["value"] == right["value"]
    index = np.where(equal_ones, np.minimum(left["index"], right["index"]), right["index"])
    wanted = [np.where(wins, left["value"], right["value"]), np.where(wins, left["index"], index)]
    gaps = gaps_of(right)
    memory = right.view("u1").data
    one = left.view("u1").data
    operation = PREDEFINED[name]
    if not operation.combine_pairs(layout, one, 0, memory, 0, COUNT):
        assert not COMPILED
        loop = elements.LOOPS[name][kind]
        elements.combine_pairs(loop, one, 0, memory, 0, COUNT, lying.itemsize, layout.node.high - 4)
    assert [right["value"].tolist(), right["index"].tolist()] == [each.tolist() for each in wanted]
    assert gaps_of(right) == gaps


def gaps_of(pairs: np.ndarray) -> bytes:
    """What lies between the values and the indices."""
    rows = pairs.view("u1").reshape(len(pairs), -1)
    size, at = pairs["value"].itemsize, pairs.dtype.fields["index"][1]
    return rows[:, size:at].tobytes() + rows[:, at + 4 :].tobytes()


def same(one: bytes, other: bytes, kind: str) -> bool:
    if kind in {"fi", "di", "gi"}:
        a, b = (np.frombuffer(each, dtype(kind)) for each in (one, other))
        return equal(a["value"], b["value"]) and a["index"].tolist() == b["index"].tolist()
    if kind not in [*"fdgeFDG"]:
        return one == other
    a, b = (np.frombuffer(each, REAL.get(kind, kind)) for each in (one, other))
    return equal(a, b)


def equal(a: np.ndarray, b: np.ndarray) -> bool:
    """Zeros with their signs; which bits fill up a long double is nobody's concern."""
    numbers = ~np.isnan(a)
    return (
        np.array_equal(a, b, equal_nan=True)
        and (np.signbit(a[numbers]) == np.signbit(b[numbers])).all()
    )


def test_there_is_a_loop_for_whatever_an_operation_is_defined_for() -> None:
    assert {name: set(kinds) for name, kinds in elements.LOOPS.items()} == {
        name: set(kinds) for name, kinds in DEFINED.items()
    }


def test_every_half_is_rounded_as_numpy_rounds_it() -> None:
    """All halves, added to one that makes ties, overflow and numbers without a leading one."""
    every = np.arange(1 << 16, dtype="u2")
    layout = Layout(((0, 2),), 0, 2, "e")
    for other in (0.0, 6e-8, 3e-5, 0.00049, 1.0, 2048.0, 65504.0, -65504.0):
        expected = np.full(1 << 16, other, "e").view("u2")
        right = bytearray(expected.tobytes())
        with np.errstate(all="ignore"):
            wanted = every.view("e") + expected.view("e")
        size = len(right)
        PREDEFINED["MPI_SUM"].combine(
            layout, memoryview(every.tobytes()), 0, memoryview(right), 0, size
        )
        assert equal(np.frombuffer(right, "e"), wanted), other
