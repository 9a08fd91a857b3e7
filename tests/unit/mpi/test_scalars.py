"""Numbers, texts and bytes that travel without pickle: equal, of the same class, told apart."""

from __future__ import annotations

import math
import pickle as pickles
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.mpi.buffers import scalars
from ompy.mpi.buffers.objects import Pickle

PICKLE = Pickle()
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.complex_numbers(),
)


class Number(int):
    """A user's class of numbers, which a receiver must get as such."""


def message(obj: Any, codec: Pickle = PICKLE) -> bytearray:
    return bytearray(b"".join(codec.pieces(obj)))


@given(VALUES)
def test_what_comes_is_equal_and_of_the_same_class(value: Any) -> None:
    came = PICKLE.load(message(value))
    assert type(came) is type(value)
    assert pickles.dumps(came) == pickles.dumps(value)  # tells 0.0 from -0.0, and has NaN equal


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        (1 << 40) - 1,
        -(1 << 40) + 1,
        0.5,
        -0.0,
        math.inf,
        "é",
        b"\x80\x05",
    ],
)
def test_these_need_no_pickle(value: Any) -> None:
    said = scalars.encode_scalar(value)
    assert said is not None
    assert said.startswith(scalars.MARK)
    assert scalars.is_scalar(bytearray(said))


@pytest.mark.parametrize(
    "value", [1 << 40, -(1 << 40), Number(3), "\ud800", "x" * 16385, b"x" * 16385, 1j, [1], (1,)]
)
def test_these_go_by_pickle(value: Any) -> None:
    assert scalars.encode_scalar(value) is None
    came = PICKLE.load(message(value))
    assert came == value
    assert type(came) is type(value)


def test_a_user_with_functions_of_his_own_gets_a_pickle() -> None:
    got: list[bytes] = []

    def loads(data: Any) -> Any:
        got.append(bytes(data))
        return pickles.loads(data)

    assert Pickle(pickles.dumps, loads).load(message(7)) == 7
    assert pickles.loads(got[0]) == 7
    assert message(7, Pickle(lambda obj: repr(obj).encode())) == b"7"
    assert message(7, Pickle(protocol=2)) == pickles.dumps(7, 2)


@pytest.mark.parametrize("text", [b"\x03", b"\x03ompy", b"\x03ompy\xa5\xfe\x00"])
def test_what_only_begins_like_one_is_none(text: bytes) -> None:
    said = bytearray(text)
    assert not scalars.is_scalar(said)
    with pytest.raises(pickles.UnpicklingError):
        PICKLE.load(said)
