"""Arrays of NumPy as buffers: compiled, they are read by their fields and not by their buffer."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest
from ompy.data.operation import COMPILED
from ompy.mpi.buffers.common_forms import bytes_of, plain

np = pytest.importorskip("numpy")

NUMBERS = [*"?bBhHiIlLqQfd", *("egFDG" if COMPILED else "")]


@pytest.mark.parametrize("code", NUMBERS)
@pytest.mark.parametrize("shape", [(1,), (5,), (2, 3), (2, 3, 4)])
def test_numbers_that_lie_together(code, shape):
    array = np.arange(np.prod(shape)).astype(code).reshape(shape)
    view = bytes_of(array, True)
    assert view.tobytes() == array.tobytes()
    assert (view.format, view.ndim, view.readonly, view.obj is array) == ("B", 1, False, True)
    message = plain(array, True)
    assert message.count == array.size
    assert message.layout.size == array.itemsize


def test_a_view_of_a_view_and_of_a_part():
    array = np.arange(10.0)
    view = bytes_of(array[2:5], True)
    assert memoryview(view)[8:].cast("d").tolist() == [3.0, 4.0]
    view[:8] = memoryview(np.array([7.0])).cast("B")
    assert array[2] == 7.0


def test_it_keeps_the_array_and_no_longer_than_itself():
    array = np.zeros(4)
    there = weakref.ref(array)
    before = sys.getrefcount(array)
    view = bytes_of(array, True)
    again = memoryview(view)
    del view
    assert again.tobytes() == bytes(32)
    del again
    assert sys.getrefcount(array) == before
    view = bytes_of(array, True)
    del array
    gc.collect()
    assert there() is not None
    assert view.tobytes() == bytes(32)
    del view
    assert there() is None


def test_what_may_not_be_written():
    array = np.zeros(3)
    array.flags.writeable = False
    assert bytes_of(array, False).readonly
    assert bytes_of(array, True) is None
    assert plain(array, True) is None
    array = np.zeros(3)
    assert bytes_of(array, True) is not None
    array.flags.writeable = False
    assert bytes_of(array, True) is None, "it is asked each time"


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((3, 4))[:, 1],
        np.zeros((3, 4), "D")[:, 1],
        np.zeros(3, "datetime64[s]"),
        np.array([None, 1], object),
        np.zeros(3, [("a", "i4"), ("b", object)]),
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_what_has_no_short_way(array):
    assert plain(array, False) is None
    assert bytes_of(array, False) is None


@pytest.mark.parametrize(
    "array",
    [
        np.asfortranarray(np.arange(12.0).reshape(3, 4)),
        np.array(2.5),
        np.zeros(0),
        np.zeros((3, 0), "i4"),
        np.broadcast_to(np.zeros(1), (1, 1))[::-1, 0:0],
    ],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_what_has_a_short_way_compiled(array):
    message = plain(array, False)
    assert (message is not None) is COMPILED
    if message is not None:
        assert message.count == array.size
        assert bytes_of(array, False).tobytes() == array.tobytes("A")


@pytest.mark.parametrize(
    "array",
    [np.zeros(3, ">f8"), np.zeros(3, [("a", "i4"), ("b", "f8")]), np.array(["ab"])],
    ids=lambda array: f"{array.dtype.str}{array.shape}",
)
def test_what_needs_a_datatype(array):
    assert plain(array, False) is None
    found = bytes_of(array, False)
    assert (found is not None) is COMPILED
    assert found is None or found.tobytes() == array.tobytes()


@pytest.mark.parametrize("make", [np.ma.array, np.float64, np.recarray])
def test_relatives_of_arrays_are_read_like_any_buffer(make):
    if make is np.recarray:
        made = np.zeros(3).view(np.recarray)
    else:
        made = make(2.5) if make is np.float64 else make([[1.0, 2.0]])
    view = bytes_of(made, False)
    assert view is None or view.tobytes() == np.asarray(made).tobytes()


def test_rows_of_numbers_as_large_as_their_product_says():
    array = np.zeros((1 << 10, 1 << 8), "i2")
    assert len(bytes_of(array, True)) == array.nbytes
