"""Handles of registered memory: what is looked at for every put and get."""

from __future__ import annotations

from struct import Struct

from hypothesis import given
from hypothesis import strategies as st
from ompy.frameworks.btl import REMOTE_ATOMIC, REMOTE_READ, REMOTE_WRITE
from ompy_components.btl.ofi.registered import BASE, HANDLE_SIZE, KEY, allows, remote_of

LAYOUT = Struct("<QQQIHH")  # as the module's docstring has it
MAGIC = 0x464F
WORD = st.sampled_from([0, 1, 7, 8, 100, 1 << 40, (1 << 64) - 1])


@given(
    st.tuples(WORD, WORD, WORD, st.integers(0, 2), st.integers(0, 15)),
    st.sampled_from([MAGIC, MAGIC ^ 1]),
    st.integers(0, 2),
    WORD,
    st.sampled_from([1, 7, 8, 100]),
    st.sampled_from([REMOTE_READ, REMOTE_WRITE, REMOTE_ATOMIC]),
)
def test_it_is_allowed_what_the_handle_says(
    fields: tuple[int, int, int, int, int],
    magic: int,
    rank: int,
    offset: int,
    size: int,
    access: int,
) -> None:
    handle = LAYOUT.pack(*fields, magic)
    there = remote_of(handle, rank)
    expected = there is not None and there.allows(offset, size, access)
    assert allows(handle, rank, offset, size, access) == expected
    assert int.from_bytes(handle[KEY : KEY + 8], "little") == fields[0]
    assert int.from_bytes(handle[BASE : BASE + 8], "little") == fields[1]


@given(st.binary(max_size=2 * HANDLE_SIZE))
def test_no_other_bytes_are_a_handle(handle: bytes) -> None:
    if len(handle) != HANDLE_SIZE:
        assert not allows(handle, 0, 0, 1, REMOTE_READ)
