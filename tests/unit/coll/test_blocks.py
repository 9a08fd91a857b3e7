"""Messages of the trees of scatter and gather."""

from __future__ import annotations

import pytest
from ompy.data.errors import ERR_ROOT, MPIError
from ompy.frameworks.coll_base.blocks import Subtree, parse_blocks


def packed(subtree: Subtree) -> memoryview:
    convertor = subtree.convertor()
    data = memoryview(bytearray(convertor.size))
    assert convertor.pack(0, data) == convertor.size
    return data


def test_round_trip_leaves_large_blocks_out() -> None:
    blocks = [b"abc", b"", b"too large", b"wxyz"]
    small = [memoryview(block) for block in blocks if len(block) <= 4]
    data = packed(Subtree([len(block) for block in blocks], small))
    assert bytes(data) == b"".join(
        [*(len(block).to_bytes(8, "little") for block in blocks), b"abc", b"wxyz"]
    )
    sizes, found = parse_blocks(data, 4, 4)
    assert sizes == [3, 0, 9, 4]
    assert [None if block is None else bytes(block) for block in found] == [
        b"abc",
        b"",
        None,
        b"wxyz",
    ]


@pytest.mark.parametrize("cut", range(24))
def test_truncated(cut: int) -> None:
    data = packed(Subtree([3, 5], [memoryview(b"abcdefgh")]))
    assert len(data) == 24
    with pytest.raises(MPIError, match="agree about the root") as caught:
        parse_blocks(data[:cut], 2, 100)
    assert caught.value.code == ERR_ROOT


def test_other_number_of_places_or_other_limit() -> None:
    data = packed(Subtree([3, 5], [memoryview(b"abcdefgh")]))
    for places, limit in ((1, 100), (3, 100), (2, 4)):
        with pytest.raises(MPIError, match="agree"):
            parse_blocks(data, places, limit)
