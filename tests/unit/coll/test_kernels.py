"""The predefined operations: what they are defined for, and C's arithmetic."""

from __future__ import annotations

import struct
import subprocess
import sys

import numpy as np
import pytest
from ompy.data import kernels, kernels_numpy, kernels_plain
from ompy.data.errors import ERR_OP, MPIError
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout, combine_layouts, repeat_layout

INTEGERS = ["b", "h", "i", "l", "q", "B", "H", "I", "L", "Q"]
FLOATS = ["f", "d", "g"]
COMPLEX = ["F", "D", "G"]
PAIRS = ["fi", "di", "li", "ii", "hi", "gi"]
KINDS = [*INTEGERS, *FLOATS, *COMPLEX, *PAIRS, "?", "x", "c", ""]
# MPI 4.0, tables in 6.9.2 and 6.9.4
TABLE = {
    "MPI_MAX": [*INTEGERS, *FLOATS],
    "MPI_MIN": [*INTEGERS, *FLOATS],
    "MPI_SUM": [*INTEGERS, *FLOATS, *COMPLEX],
    "MPI_PROD": [*INTEGERS, *FLOATS, *COMPLEX],
    "MPI_LAND": [*INTEGERS, "?"],
    "MPI_LOR": [*INTEGERS, "?"],
    "MPI_LXOR": [*INTEGERS, "?"],
    "MPI_BAND": [*INTEGERS, "x"],
    "MPI_BOR": [*INTEGERS, "x"],
    "MPI_BXOR": [*INTEGERS, "x"],
    "MPI_MAXLOC": PAIRS,
    "MPI_MINLOC": PAIRS,
    "MPI_REPLACE": KINDS,
    "MPI_NO_OP": KINDS,
}
BOTH = pytest.mark.parametrize("combine", [kernels_plain.COMBINE, kernels_numpy.COMBINE])


def layout(kind: str) -> Layout:
    size = sum(1 if each in "xc" else np.dtype(each).itemsize for each in kind) or 4
    return Layout(((0, size),), 0, size, kind)


def run(name: str, left: bytes, right: bytes, of: Layout, count: int) -> bytes:
    result = bytearray(right)
    PREDEFINED[name].kernel(memoryview(left), memoryview(result), of, count)
    return bytes(result)


def apply(combine: dict, name: str, kind: str, left: list, right: list) -> list:
    a, b = (np.array(values, kind).tobytes() for values in (left, right))
    result = bytearray(b)
    combine[name](memoryview(a), memoryview(result), kind)
    return np.frombuffer(result, kind).tolist()


def test_the_names() -> None:
    assert set(PREDEFINED) == set(TABLE)
    assert all(name == operation.name for name, operation in PREDEFINED.items())
    assert all(operation.commutative for operation in PREDEFINED.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TABLE)
def test_defined_for_what_the_standard_says(name: str, kind: str) -> None:
    of = layout(kind)
    operation = PREDEFINED[name]
    zeros = bytes(of.size)
    if kind in TABLE[name]:
        operation.check_layout(of)
        assert len(run(name, zeros, zeros, of, 1)) == of.size
        return
    for attempt in (
        lambda: operation.check_layout(of),
        lambda: run(name, zeros, zeros, of, 1),
        lambda: run(name, b"", b"", of, 0),
    ):
        with pytest.raises(MPIError) as caught:
            attempt()
        assert caught.value.code == ERR_OP
        assert name in str(caught.value)
        assert kernels.NAMES.get(kind, "mixed") in str(caught.value)


@BOTH
def test_integers_wrap(combine: dict) -> None:
    assert apply(combine, "MPI_SUM", "b", [127, -128, 5], [1, -1, 6]) == [-128, 127, 11]
    assert apply(combine, "MPI_SUM", "B", [255, 1], [1, 2]) == [0, 3]
    assert apply(combine, "MPI_PROD", "i", [1 << 20, -3], [1 << 12, 5]) == [0, -15]
    assert apply(combine, "MPI_PROD", "Q", [1 << 63], [3]) == [1 << 63]
    assert apply(combine, "MPI_SUM", "q", [(1 << 63) - 1], [1]) == [-(1 << 63)]


@BOTH
@pytest.mark.parametrize("name", ["MPI_MAX", "MPI_MIN"])
def test_a_comparison_with_nan_is_false_so_the_right_stays(combine: dict, name: str) -> None:
    nan = float("nan")
    first, second, third = apply(combine, name, "d", [nan, 1.0, nan], [1.0, nan, nan])
    assert first == 1.0
    assert second != second
    assert third != third


@BOTH
def test_equal_zeros_keep_the_sign_of_the_right(combine: dict) -> None:
    for name in ("MPI_MAX", "MPI_MIN"):
        got = apply(combine, name, "d", [0.0, -0.0] * 9, [-0.0, 0.0] * 9)
        assert [str(value) for value in got] == ["-0.0", "0.0"] * 9


@BOTH
def test_floats_are_rounded_and_overflow_to_infinity(combine: dict) -> None:
    assert apply(combine, "MPI_SUM", "f", [16777216.0], [1.0]) == [16777216.0]
    assert apply(combine, "MPI_PROD", "f", [3e38], [10.0]) == [float("inf")]
    assert apply(combine, "MPI_PROD", "d", [1e308], [-10.0]) == [float("-inf")]


@BOTH
def test_truth_is_any_bit(combine: dict) -> None:
    left, right = bytearray((0, 0, 2, 4)), bytearray((0, 8, 0, 1))
    for name, expected in (
        ("MPI_LAND", (0, 0, 0, 1)),
        ("MPI_LOR", (0, 1, 1, 1)),
        ("MPI_LXOR", (0, 1, 1, 0)),
    ):
        result = bytearray(right)
        combine[name](memoryview(left), memoryview(result), "?")
        assert tuple(result) == expected


@BOTH
def test_lowest_index_of_equal_values(combine: dict) -> None:
    left = struct.pack("=" + "di" * 4, 1.0, 7, 2.0, 3, 2.0, 9, 5.0, 0)
    right = struct.pack("=" + "di" * 4, 3.0, 4, 2.0, 8, 2.0, 1, 4.0, 1)
    for name, expected in (
        ("MPI_MAXLOC", (3.0, 4, 2.0, 3, 2.0, 1, 5.0, 0)),
        ("MPI_MINLOC", (1.0, 7, 2.0, 3, 2.0, 1, 4.0, 1)),
    ):
        result = bytearray(right)
        combine[name](memoryview(left), memoryview(result), "di")
        assert struct.unpack("=" + "di" * 4, result) == expected


def test_derived_layouts_hold_elements_of_one_kind() -> None:
    of = repeat_layout(layout("h"), (0, 6, 2))
    assert of.size == 6
    left, right = struct.pack("6h", *range(6)), struct.pack("6h", *range(10, 16))
    assert struct.unpack("6h", run("MPI_SUM", left, right, of, 2)) == (10, 12, 14, 16, 18, 20)


def test_mixtures_are_refused() -> None:
    of = combine_layouts([(0, layout("i")), (4, layout("f"))])
    with pytest.raises(MPIError, match="MPI_SUM is not defined for a datatype of mixed contents"):
        PREDEFINED["MPI_SUM"].check_layout(of)


def test_nothing_can_be_reduced_whatever_its_type() -> None:
    PREDEFINED["MPI_SUM"].check_layout(Layout((), 0, 0))
    assert run("MPI_SUM", b"", b"", Layout((), 0, 0), 3) == b""


def test_replace_keeps_the_right_and_no_op_the_left() -> None:
    of = layout("i")
    assert run("MPI_REPLACE", b"left", b"wins", of, 1) == b"wins"
    assert run("MPI_NO_OP", b"left", b"lost", of, 1) == b"left"


@pytest.mark.parametrize("count", [1, 15, 16, 1000])
def test_counts_around_the_change_of_ways(count: int) -> None:
    left, right = np.arange(count, dtype="i"), np.arange(count, dtype="i") * 3
    got = run("MPI_SUM", left.tobytes(), right.tobytes(), layout("i"), count)
    assert np.frombuffer(got, "i").tolist() == (left + right).tolist()


ALONE = """
import sys
from array import array
from ompy.data.errors import MPIError
from ompy.data.kernels import IMPORT_NUMPY_FROM, PREDEFINED
from ompy.data.layout import Layout
{before}
def add(count, kind="d", size=8):
    view = memoryview(bytearray(size * count))
    PREDEFINED["MPI_SUM"].kernel(view, view, Layout(((0, size),), 0, size, kind), count)
add(1000)
assert "numpy" not in sys.modules or sys.modules["numpy"] is None
add(IMPORT_NUMPY_FROM)
{after}
"""


def alone(before: str, after: str) -> None:
    code = ALONE.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


def test_numpy_is_imported_when_that_pays() -> None:
    alone("", 'assert sys.modules["numpy"]')


def test_many_small_calls_earn_numpy_too() -> None:
    """ALONE has added once below the limit before; these are all below it."""
    alone(
        "import ompy.data.kernels as kernels\nkernels.IMPORT_NUMPY_FROM = 1 << 40",
        "assert 'numpy' not in sys.modules\n"
        "for _ in range(kernels.IMPORT_NUMPY_AFTER // 30_000): add(30_000)\n"
        "assert sys.modules['numpy']",
    )


def test_without_numpy_all_but_long_double_works() -> None:
    alone(
        'sys.modules["numpy"] = None',
        "try: add(1, 'g', 16)\n"
        "except MPIError as error: assert 'MPI_LONG_DOUBLE needs NumPy' in str(error), error\n"
        "else: raise SystemExit('no error')",
    )
