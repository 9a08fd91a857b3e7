"""bfo's headers: recorded bytes, round trips, what is too short or of another type."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.data.errors import MPIError
from ompy_components.pml.bfo import headers
from ompy_components.pml.bfo.headers import Step, fin_words
from ompy_components.pml.ob1.headers import FIN, RNDV_HEADER, RNDV_SIZE

U16, U32, U64 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
RANK = st.integers(-1, 2**31 - 1)


SIZE = st.integers(-(2**63), 2**63 - 1)
TAG = st.sampled_from(sorted(headers.RESTART_NAMES))


@given(st.tuples(st.integers(0, 1), U16, RANK, U32, U32, SIZE, U64, U64))
def test_fin(fields: tuple[int, ...]) -> None:
    data = fin_words(*fields)
    assert data == headers.FIN_HEADER.pack(FIN, *fields)
    fin = headers.parse_fin(memoryview(data))
    assert fields == (
        fin.flags,
        fin.context_id,
        fin.source,
        fin.sequence,
        fin.generation,
        fin.size,
        fin.fragment,
        fin.offset,
    )
    again = headers.parse_fin(memoryview(headers.fin_again(data)))
    assert again.flags & headers.FLAG_RESENT
    assert again.fragment == fin.fragment


@given(st.builds(Step, TAG, U16, RANK, U32, U32, U64, U64))
def test_steps(step: Step) -> None:
    data = step.pack()
    assert len(data) == 32
    assert headers.parse_step(step.tag, memoryview(data)) == step


def test_recorded() -> None:
    step = Step(headers.NOTIFY, 0x0102, 3, 0x0A0B0405, 6, 7, 8)
    assert step.pack().hex() == (
        "4a0002010300000005040b0a06000000" + "0700000000000000" + "0800000000000000"
    )
    assert fin_words(0, 0x0102, 3, 0x0A0B0405, 6, -2, 7, 8).hex() == (
        "490002010300000005040b0a06000000"
        + "feffffffffffffff"
        + "0700000000000000"
        + "0800000000000000"
    )


@given(st.binary(max_size=50), U64, U32)
def test_restarted(payload: bytes, receive_id: int, generation: int) -> None:
    first = RNDV_HEADER.pack(66, 0x09, 1, 2, 3, 4, 5, 6)
    data = headers.restarted(first, receive_id, generation) + payload
    plain, *rest = headers.first_try(RNDV_SIZE, memoryview(data))
    assert bytes(plain) == first + payload
    assert rest == [receive_id, generation]


@pytest.mark.parametrize("size", range(40))
def test_too_short(size: int) -> None:
    data = memoryview(fin_words(0, 1, 2, 3, 4, 5, 6, 7)[:size])
    with pytest.raises(MPIError):
        headers.parse_fin(data)
    with pytest.raises(MPIError):
        headers.parse_step(FIN + 1, data[: min(size, 31)])
    with pytest.raises(MPIError):
        headers.first_try(RNDV_SIZE, data)


def test_another_type() -> None:
    with pytest.raises(MPIError):
        headers.parse_step(headers.NOTIFY, memoryview(Step(headers.RECV_ERR, 0, 0, 0, 0).pack()))


@given(U32, st.integers(1, 2**31 - 1))
def test_generations_have_no_end(generation: int, steps: int) -> None:
    later = (generation + steps) % 2**32
    assert headers.newer(later, generation)
    assert not headers.newer(generation, later)
    assert not headers.newer(generation, generation)
    assert headers.following(2**32 - 1) == 0


@given(U32, st.integers(1, 2**31))
def test_behind(expected: int, count: int) -> None:
    assert headers.is_behind((expected - count) % 2**32, expected)
    assert not headers.is_behind((expected + count - 1) % 2**32, expected)
