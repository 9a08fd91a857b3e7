"""Both ways of the kernels on any bytes, against numpy and against each other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data import kernels, kernels_numpy, kernels_plain
from ompy.data.kernels_plain import SIZES

from tests.support.effort import effort

Combine = Callable[[memoryview, memoryview, str], None]
CASES = [(name, kind) for name, kinds in kernels.DEFINED.items() for kind in sorted(kinds)]
PLAIN_CASES = [(name, kind) for name, kind in CASES if kind in SIZES]
REAL = {"F": np.float32, "D": np.float64}
SPECIAL = (0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e38, 1e-45, 1e308, 5e-324)


def dtype(kind: str) -> np.dtype:
    if kind in kernels.PAIRS:
        return np.dtype([("value", kind[0]), ("index", kind[1])])
    return np.dtype({"?": "u1", "x": "u1"}.get(kind, kind))


@st.composite
def operands(draw: Callable, kind: str) -> tuple[bytes, bytes]:
    """Any bytes; where they are floats, often such as make a difference."""
    count = draw(st.integers(1, 24))
    size = dtype(kind).itemsize * count
    raw = [draw(st.binary(min_size=size, max_size=size)) for _ in range(2)]
    if kind in "fdFD?" and draw(st.booleans()):
        part = np.dtype({"F": "f", "D": "d", "?": "u1"}.get(kind, kind))
        values = st.lists(
            st.sampled_from((0, 1, 2) if kind == "?" else SPECIAL),
            min_size=size // part.itemsize,
            max_size=size // part.itemsize,
        )
        with np.errstate(over="ignore"):
            raw = [np.array(draw(values)).astype(part).tobytes() for _ in range(2)]
    elif draw(st.booleans()):  # equal operands: maxloc's other branch
        raw[1] = raw[0]
    return raw[0], raw[1]


def combined(combine: Combine, left: bytes, right: bytes, kind: str) -> bytes:
    result = bytearray(right)
    combine(memoryview(left), memoryview(result), kind)
    return bytes(result)


def same(one: bytes, other: bytes, kind: str) -> bool:
    """Equal bits; any NaN is as good as another."""
    if kind in "fdFD":
        part = {"F": "f", "D": "d"}.get(kind, kind)
        a, b = np.frombuffer(one, part), np.frombuffer(other, part)
        nan = np.isnan(a)
        bits = f"u{a.itemsize}"
        return bool(
            np.array_equal(nan, np.isnan(b))
            and np.array_equal(a.view(bits)[~nan], b.view(bits)[~nan])
        )
    if kind in ("fi", "di"):
        pairs = [np.frombuffer(data, dtype(kind)) for data in (one, other)]
        values = [pair["value"].tobytes() for pair in pairs]
        return same(values[0], values[1], kind[0]) and bool(
            np.array_equal(pairs[0]["index"], pairs[1]["index"])
        )
    return one == other


@pytest.mark.parametrize(("name", "kind"), PLAIN_CASES)
@settings(max_examples=effort(30), deadline=None)
@given(data=st.data())
def test_both_ways_give_the_same_bits(name: str, kind: str, data: st.DataObject) -> None:
    left, right = data.draw(operands(kind))
    plain = combined(kernels_plain.COMBINE[name], left, right, kind)
    assert same(plain, combined(kernels_numpy.COMBINE[name], left, right, kind), kind)


def _loc(a: np.ndarray, b: np.ndarray, better: Callable) -> np.ndarray:
    out = b.copy()
    for i in range(len(a)):
        if better(a["value"][i], b["value"][i]):
            out[i] = a[i]
        elif a["value"][i] == b["value"][i]:
            out["index"][i] = min(a["index"][i], b["index"][i])
    return out


EXPECTED: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "MPI_MAX": lambda a, b: np.where(a > b, a, b),
    "MPI_MIN": lambda a, b: np.where(a < b, a, b),
    "MPI_SUM": lambda a, b: a + b,
    "MPI_PROD": lambda a, b: a * b,
    "MPI_LAND": lambda a, b: (a != 0) & (b != 0),
    "MPI_BAND": lambda a, b: a & b,
    "MPI_LOR": lambda a, b: (a != 0) | (b != 0),
    "MPI_BOR": lambda a, b: a | b,
    "MPI_LXOR": lambda a, b: (a != 0) ^ (b != 0),
    "MPI_BXOR": lambda a, b: a ^ b,
    "MPI_MAXLOC": lambda a, b: _loc(a, b, np.greater),
    "MPI_MINLOC": lambda a, b: _loc(a, b, np.less),
}


@pytest.mark.parametrize(("name", "kind"), CASES)
@settings(max_examples=effort(20), deadline=None)
@given(data=st.data())
def test_the_result_is_what_numpy_computes(name: str, kind: str, data: st.DataObject) -> None:
    left, right = data.draw(operands(kind))
    if "g" in kind or kind == "G":  # bytes at random are no long doubles
        left, right = _long_doubles(left, kind), _long_doubles(right, kind)
    a, b = np.frombuffer(left, dtype(kind)), np.frombuffer(right, dtype(kind))
    with np.errstate(all="ignore"):
        expected = EXPECTED[name](a, b).astype(dtype(kind))
    result = combined(kernels_numpy.COMBINE[name], left, right, kind)
    got = np.frombuffer(result, dtype(kind))
    if name == "MPI_PROD" and kind in "FDG":  # numpy may fuse, and so round otherwise
        with np.errstate(all="ignore"):
            finite = np.isfinite(np.abs(expected) * np.abs(a) * np.abs(b))
            close = np.abs(got - expected) <= 1e-5 * np.abs(a) * np.abs(b) + 1e-30
        assert close[finite].all()
    elif kind == "gi":
        assert np.array_equal(got["value"], expected["value"])
        assert np.array_equal(got["index"], expected["index"])
    elif kind in "gG":
        assert np.array_equal(got, expected, equal_nan=True)
    else:
        assert same(result, expected.tobytes(), kind)


def _long_doubles(raw: bytes, kind: str) -> bytes:
    numbers = np.frombuffer(raw, np.int8)
    made = np.zeros(len(raw) // dtype(kind).itemsize, dtype(kind))
    if kind == "gi":
        made["value"], made["index"] = numbers[: len(made)], numbers[-len(made) :]
    else:
        made[:] = numbers[: len(made)] / np.longdouble(3)
    return made.tobytes()
