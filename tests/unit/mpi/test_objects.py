"""Objects as messages: plain pickles, frames, and the user's own dumps and loads."""

from __future__ import annotations

import json
import marshal
import pickle as standard
from pickle import PickleBuffer
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.mpi.buffers.objects import (
    ALIGNMENT,
    HEADER,
    MAGIC,
    PICKLED,
    PLACE,
    Pickle,
    convertor_of,
    joined,
)

PICKLE = Pickle()


def travel(pickle: Pickle, obj: Any) -> Any:
    """An object, as a receiver gets it: through a convertor into one memory."""
    pieces = pickle.pieces(obj)
    convertor = convertor_of(pieces)
    memory = memoryview(bytearray(convertor.size))
    for start in range(0, convertor.size, 1000):
        convertor.pack(start, memory[start : start + 1000])
    assert memory == joined(pieces)
    return pickle.load(memory)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(VALUES)
def test_plain_objects_are_plain_pickles(value: Any) -> None:
    (data,) = PICKLE.pieces([value])
    assert data[0] == PICKLED
    assert standard.loads(data) == [value] == travel(PICKLE, [value])
    assert travel(PICKLE, value) == value == PICKLE.copy(value)


def test_an_empty_message_is_none() -> None:
    assert PICKLE.load(memoryview(b"")) is None


def test_large_buffers_stay_out_of_the_pickle() -> None:
    arrays = {"a": np.arange(5000.0), "b": np.ones(10), "c": np.zeros((300, 70), "i")}
    pieces = PICKLE.pieces(arrays)
    assert sum(len(p) for p in pieces if not isinstance(p, memoryview)) < 2000
    assert any(np.shares_memory(np.frombuffer(p, "B"), arrays["a"].view("B")) for p in pieces)
    frame = bytes(joined(pieces))
    magic, _, number = HEADER.unpack_from(frame)
    assert (magic, number) == (MAGIC, 2)
    for offset, length in PLACE.iter_unpack(frame[HEADER.size : HEADER.size + number * PLACE.size]):
        assert offset % ALIGNMENT == 0
        assert length in (40_000, 84_000)
    back = travel(PICKLE, arrays)
    assert all((back[key] == arrays[key]).all() for key in arrays)
    assert all(array.flags.writeable for array in back.values())
    back["a"][0] = 7
    assert arrays["a"][0] == 0


@given(st.lists(st.integers(0, 70_000), max_size=4), st.integers(0, 40_000))
def test_frames_of_any_sizes(sizes: list[int], threshold: int) -> None:
    pickle = Pickle(threshold=threshold)
    arrays = [np.full(size, index + 1, "B") for index, size in enumerate(sizes)]
    back = travel(pickle, arrays)
    assert [list(a[:3]) for a in back] == [list(a[:3]) for a in arrays]
    assert [a.size for a in back] == sizes
    assert all((a == index + 1).all() for index, a in enumerate(back))


def test_fortran_order_and_views() -> None:
    fortran = np.asfortranarray(np.arange(30_000.0).reshape(100, 300))
    assert (travel(PICKLE, fortran) == fortran).all()
    every_other = np.arange(30_000.0)[::2]
    assert (travel(PICKLE, every_other) == every_other).all()


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5, -1, None])
def test_protocols(protocol: int | None) -> None:
    pickle = Pickle(protocol=protocol)
    value = {"numbers": list(range(10)), "array": bytes(30_000)}
    assert travel(pickle, value) == value
    frames = len(pickle.pieces(np.zeros(10_000))) > 1
    assert frames == (protocol in (5, -1, None))


def test_the_users_functions_are_used() -> None:
    for dumps, loads in ((marshal.dumps, marshal.loads), (standard.dumps, standard.loads)):
        for protocol in (2, 4, None):
            pickle = Pickle(dumps, loads, protocol)
            assert travel(pickle, [1, {"a": b"b"}]) == [1, {"a": b"b"}]
    heard = []

    def loads(data: Any) -> Any:
        heard.append(type(data))
        return json.loads(bytes(data))

    pickle = Pickle(lambda obj: json.dumps(obj).encode(), loads)
    assert travel(pickle, {"x": [1, None]}) == {"x": [1, None]}
    assert len(heard) == 1
    pickle.__init__()
    assert travel(pickle, (1, 2)) == (1, 2)


def test_beside_the_pickle() -> None:
    obj = [np.arange(100_000), "text"]
    data, buffers = PICKLE.dumps_oob(obj)
    assert len(data) < 1000
    assert [buffer.nbytes for buffer in buffers] == [800_000]
    back = PICKLE.loads_oob(data, buffers)
    assert (back[0] == obj[0]).all()


def test_the_environment_sets_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPI4PY_PICKLE_PROTOCOL", "3")
    monkeypatch.setenv("MPI4PY_PICKLE_THRESHOLD", "100")
    assert (Pickle().PROTOCOL, Pickle().THRESHOLD) == (3, 100)
    monkeypatch.setenv("MPI4PY_PICKLE_THRESHOLD", "much")
    with pytest.warns(RuntimeWarning, match="MPI4PY_PICKLE_THRESHOLD: unexpected value 'much'"):
        assert Pickle().THRESHOLD == PICKLE.THRESHOLD


def test_what_cannot_be_pickled() -> None:
    # Python 3.14 calls it a PicklingError
    with pytest.raises((AttributeError, TypeError, standard.PicklingError)):
        PICKLE.pieces(lambda: None)
    with pytest.raises(standard.PicklingError, match="contiguous"):
        PICKLE.pieces([PickleBuffer(memoryview(bytes(90_000))[::2])])
