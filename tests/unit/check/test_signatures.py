"""The basic types of what a program gives as a message."""

from __future__ import annotations

import numpy as np
import pytest
from ompy import MPI
from ompy.check.signatures import basic_text, first_difference, of_message

SIZED = ("INT8_T", "INT16_T", "INT32_T", "INT64_T", "UINT8_T", "UINT16_T", "UINT32_T", "UINT64_T")


@pytest.mark.parametrize("name", SIZED)
def test_a_type_whose_name_says_its_size_is_that_of_numpy(name: str) -> None:
    array = np.zeros(3, dtype=name.removesuffix("_T").lower())
    by_name = of_message([bytearray(array.nbytes), 3, getattr(MPI, name)])
    assert by_name == of_message(array)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("INT32_T", "INT"),
        ("INT64_T", "LONG"),
        ("UINT64_T", "UNSIGNED_LONG_LONG"),
        ("REAL8", "DOUBLE"),
        ("INTEGER4", "INTEGER"),
        ("COMPLEX16", "C_DOUBLE_COMPLEX"),
        ("C_BOOL", "CXX_BOOL"),
    ],
)
def test_names_of_one_basic_type(one: str, other: str) -> None:
    sides = [of_message([bytearray(32), 2, getattr(MPI, name)]) for name in (one, other)]
    assert None not in sides
    assert first_difference(*sides) is None  # type: ignore[arg-type]


def test_those_that_differ() -> None:
    sides = [of_message([bytearray(8), 2, kind]) for kind in (MPI.INT32_T, MPI.UINT32_T, MPI.REAL4)]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert first_difference(sides[one], sides[other]) is not None  # type: ignore[arg-type]
    assert [basic_text(side[0][0][0]) for side in sides if side] == ["int32", "uint32", "float32"]
