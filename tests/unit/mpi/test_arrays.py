"""Arrays as messages: what a receiver gets is what pickle would have given him."""

from __future__ import annotations

import copyreg
import pickle as standard
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of
from ompy.mpi.buffers.arrays import MAGIC, encode_array
from ompy.mpi.buffers.objects import ARRAY, BESIDE_FROM, PICKLED, Pickle, convertor_of, joined

PICKLE = Pickle()


def travel(obj: Any, pickle: Pickle = PICKLE) -> Any:
    """An object, as a receiver gets it."""
    convertor = convertor_of(pickle.pieces(obj))
    memory = memoryview(bytearray(convertor.size))
    assert convertor.pack(0, memory) == convertor.size
    return pickle.load(memory)


def first_byte(obj: Any) -> int:
    return joined(PICKLE.pieces(obj))[0]


def assert_like_pickle(array: Any) -> None:
    """It comes out as pickle has it, and as an array of its own."""
    expected, found = standard.loads(standard.dumps(array, 5)), travel(array)
    assert type(found) is type(expected)
    assert found.dtype == expected.dtype
    assert found.dtype.str == expected.dtype.str
    assert found.shape == expected.shape
    assert found.strides == expected.strides
    assert found.flags.c_contiguous == expected.flags.c_contiguous
    assert found.flags.f_contiguous == expected.flags.f_contiguous
    assert found.flags.aligned
    assert found.flags.writeable == expected.flags.writeable
    assert found.tobytes() == expected.tobytes()
    assert not np.shares_memory(found, array)


NUMBERS = [*"?bBhHiIlLqQefdgFDG", ">f8", ">i2", "<u4", ">c16"]


@pytest.mark.parametrize("code", NUMBERS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (3, 0, 2), (4, 5), (1, 1, 7)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_number_and_shape(code: str, shape: tuple[int, ...], order: Any) -> None:
    array = np.zeros(shape, code, order)
    array[...] = np.arange(array.size).reshape(shape)
    assert first_byte(array) == ARRAY
    assert_like_pickle(array)


@settings(deadline=None)
@given(
    arrays_of.arrays(
        arrays_of.scalar_dtypes() | arrays_of.array_dtypes() | arrays_of.nested_dtypes(),
        arrays_of.array_shapes(min_dims=0, min_side=0, max_dims=6),
    ),
    st.sampled_from("CFAT"),
)
def test_any_array(array: Any, order: str) -> None:
    array = array.T if order == "T" else array.copy(order=order)
    assert_like_pickle(array)


def test_large_ones_go_from_their_own_memory() -> None:
    array = np.arange(BESIDE_FROM / 8).reshape(2, -1)
    header, memory = PICKLE.pieces(array)
    assert header.startswith(MAGIC)
    assert np.shares_memory(np.frombuffer(memory, "B"), array.view("B"))
    assert_like_pickle(array)


def test_small_ones_are_copied() -> None:
    array = np.arange(10.0)
    pieces = PICKLE.pieces(array)
    array[:] = -1
    found = PICKLE.load(memoryview(joined(pieces)))
    assert found.tolist() == list(range(10))
    found[0] = 5


class Mine(np.ndarray[Any, Any]):
    """A class of the user's."""


@pytest.mark.parametrize(
    "array",
    [
        np.arange(5).view(Mine),
        np.ma.masked_equal(np.arange(5), 2),
        np.array([{}, None, 3], object),
        np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
        np.array(["2020-01-01"], "M8[D]"),
        np.array([b"ab"]),
        np.array(["ab"]),
        np.zeros(3, np.dtype("f8", metadata={"unit": "m"})),
        np.arange(10)[::2],
        np.arange(12).reshape(3, 4)[:, :2],
        np.broadcast_to(np.arange(3), (2, 3)),
        np.ones(3, np.dtype("g").newbyteorder()),
        np.float64(3.5),
    ],
    ids=lambda array: f"{type(array).__name__}-{array.dtype}",
)
def test_the_rest_goes_by_pickle(array: Any) -> None:
    assert first_byte(array) == PICKLED
    found, expected = travel(array), standard.loads(standard.dumps(array, 5))
    assert type(found) is type(expected)
    assert repr(found) == repr(expected)
    assert found.dtype.metadata == expected.dtype.metadata


def test_read_only_ones_go_by_pickle() -> None:
    array = np.arange(3)
    array.flags.writeable = False
    assert encode_array(array) is None
    assert_like_pickle(array)


def test_the_users_pickle_sees_arrays() -> None:
    seen: list[Any] = []

    def dumps(obj: Any) -> bytes:
        seen.append(obj)
        return standard.dumps(obj)

    def loads(data: Any) -> Any:
        seen.append(bytes(data))
        return standard.loads(data)

    array = np.arange(4)
    assert travel(array, Pickle(dumps, loads)).tolist() == [0, 1, 2, 3]
    assert seen[0] is array
    assert seen[1:] == [standard.dumps(array)]
    assert joined(Pickle(protocol=4).pieces(array))[0] == PICKLED
    # functions of one side only: his loads has what dumps would have made
    message = joined(PICKLE.pieces(array))
    assert Pickle(None, loads).load(memoryview(message)).tolist() == [0, 1, 2, 3]
    assert len(seen) == 3


def test_a_registered_reduction_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(copyreg.dispatch_table, np.ndarray, lambda array: (sum, (array.tolist(),)))
    assert travel(np.arange(4)) == 6


def test_bytes_that_only_begin_like_an_array_are_the_users() -> None:
    text = bytes((ARRAY,)) + bytes(99)
    pickle = Pickle(lambda obj: obj, bytes)
    assert travel(text, pickle) == text
    assert travel(text[:5], pickle) == text[:5]


def test_numpy_is_not_imported_for_it() -> None:
    program = (
        "import sys; from ompy.mpi.buffers.objects import pickle; pickle.pieces([1]); "
        "pickle.pieces(bytearray(9)); assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
