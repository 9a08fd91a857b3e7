"""NumPy's datatypes as MPI's and back: what comes back describes the same bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy import MPI
from ompy.addons.dtlib import from_numpy_dtype, to_numpy_dtype

BASIC = [np.dtype(code) for code in "?bhilqBHILQfdFD"]
basic = st.sampled_from(BASIC)


def structs(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.lists(inside, min_size=1, max_size=4)
    return st.builds(
        lambda found, aligned: np.dtype([("", each) for each in found], align=aligned),
        members,
        st.booleans(),
    )


def arrays(inside: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    shapes = st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple)
    return st.builds(lambda element, shape: np.dtype((element, shape)), inside, shapes)


@given(st.recursive(basic, lambda inside: structs(inside) | arrays(inside), max_leaves=6))
def test_there_and_back(dtype: np.dtype[Any]) -> None:
    datatype = from_numpy_dtype(dtype)
    found = to_numpy_dtype(datatype)
    assert datatype.Get_extent() == (0, dtype.itemsize)
    assert found.itemsize == dtype.itemsize
    again = from_numpy_dtype(found)
    assert again.Get_extent() == datatype.Get_extent()
    assert to_numpy_dtype(again) == found
    datatype.Free()
    again.Free()


@given(basic, st.data())
def test_it_says_where_each_number_is(dtype: np.dtype[Any], data: st.DataObject) -> None:
    base = MPI.Datatype.fromcode(dtype.char)
    places = sorted(data.draw(st.sets(st.integers(0, 20), min_size=1, max_size=4)))
    at = [4 * place for place in places]  # so that blocks of up to 4 do not overlap
    lengths = [data.draw(st.integers(1, 4)) for _ in at]
    datatype = base.Create_indexed(lengths, at)
    found = to_numpy_dtype(datatype)
    assert [found.fields[name][1] for name in found.names] == [
        place * dtype.itemsize for place in at
    ]
    assert [found.fields[name][0].shape for name in found.names] == [(one,) for one in lengths]
    datatype.Free()


def test_what_neither_has_a_word_for() -> None:
    for wrong in ("O", ">i4" if np.dtype("<i4").isnative else "<i4"):
        with pytest.raises(ValueError, match=r"Python objects|byte order"):
            from_numpy_dtype(wrong)
    part = MPI.INT.Create_subarray([4], [2], [0])
    gaps = MPI.INT.Create_resized(0, 64)
    for datatype in (MPI.DATATYPE_NULL, part, gaps):
        with pytest.raises(ValueError):
            to_numpy_dtype(datatype)
    part.Free()
    gaps.Free()
