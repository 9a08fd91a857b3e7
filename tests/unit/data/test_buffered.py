"""What a buffered send's convertor still needs of the user's memory, before and after `keep`."""

from __future__ import annotations

import pytest
from ompy.data.buffered import BufferedConvertor
from ompy.data.convertor import ContiguousConvertor, Convertor, GatherConvertor

MESSAGE = bytes(range(100))


def sources() -> list[Convertor]:
    pieces = [memoryview(bytearray(MESSAGE[:30])), memoryview(bytearray(MESSAGE[30:]))]
    return [ContiguousConvertor(memoryview(bytearray(MESSAGE))), GatherConvertor(pieces)]


def packed(convertor: Convertor, offset: int, size: int) -> bytes:
    room = bytearray(size)
    return bytes(room[: convertor.pack(offset, memoryview(room))])


@pytest.mark.parametrize("first", [0, 1, 29, 30, 31, 99, 100])
@pytest.mark.parametrize("source", sources(), ids=["contiguous", "pieces"])
def test_only_the_rest_is_kept(source: Convertor, first: int) -> None:
    lent: list[bytearray] = []

    def lend(size: int) -> memoryview:
        lent.append(bytearray(size))
        return memoryview(lent[-1])

    buffered = BufferedConvertor(source, lend)
    assert buffered.view is None
    assert packed(buffered, 0, first) == MESSAGE[:first]
    assert not lent, "nothing is lent before it is needed"
    buffered.keep(first)
    assert [len(block) for block in lent] == ([100 - first] if first < 100 else [])
    buffered.keep(0)  # the second call does nothing
    for offset in range(first, 101, 7):
        assert packed(buffered, offset, 20) == MESSAGE[offset : offset + 20]
    if first:
        with pytest.raises(AssertionError, match="was not kept"):
            packed(buffered, first - 1, 4)


def test_the_users_memory_is_free_once_it_is_kept() -> None:
    memory = bytearray(MESSAGE)
    buffered = BufferedConvertor(
        ContiguousConvertor(memoryview(memory)), lambda size: memoryview(bytearray(size))
    )
    buffered.keep(10)
    memory[:] = b"\xee" * 100
    assert packed(buffered, 10, 90) == MESSAGE[10:]


def test_other_memory_stays_where_it_is() -> None:
    plain = ContiguousConvertor(memoryview(bytearray(MESSAGE)))
    plain.keep(5)
    assert packed(plain, 0, 100) == MESSAGE
