"""A message is packed and unpacked right wherever its bytes and their room lie within pages.

Compiled, large copies go another way where string moves crawl: net/README.md.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from ompy.net.memory.vm import PAGE, address_of

from tests.support.convertors import borrowed, contiguous

SIZES = (1, 1999, 2000, 2001, 2047, 2048, 2049, 4096, 4097, 100_001)  # around what short moves have
BEHIND = (*range(34), 64, 2048, 4064, 4095)  # bytes from the source's place to the target's


@pytest.mark.parametrize("convertor", [contiguous, borrowed])
@pytest.mark.parametrize("size", SIZES)
def test_bytes_are_the_same_and_those_beside_them_untouched(convertor: Any, size: int) -> None:
    sent = os.urandom(size)
    message, room = memoryview(bytearray(size)), memoryview(bytearray(size + 2 * PAGE))
    first = (address_of(message) - address_of(room)) % PAGE
    for behind in BEHIND:
        at = (first + behind) % PAGE
        message[:], room[:] = sent, bytes([7]) * len(room)
        convertor(message).pack_at(room, at, size)
        assert room[at : at + size] == sent
        assert set(room[:at]) | set(room[at + size :]) == {7}
        room[:] = bytes([7]) * len(room)
        assert convertor(message).pack(0, room[at : at + size]) == size
        assert (
            convertor(message).pack(size // 2, room[at + size // 2 : at + size]) == size - size // 2
        )
        assert room[at : at + size] == sent
        assert set(room[:at]) | set(room[at + size :]) == {7}


@pytest.mark.parametrize("convertor", [contiguous, borrowed])
@pytest.mark.parametrize("size", SIZES)
def test_what_comes_is_stored_and_nothing_else(convertor: Any, size: int) -> None:
    sent = os.urandom(size)
    whole, source = memoryview(bytearray(size + 2 * PAGE)), memoryview(sent)
    first = (address_of(source) - address_of(whole)) % PAGE
    for behind in BEHIND:
        at = (first + behind) % PAGE
        for stored in (0, 1):
            whole[:] = bytes([7]) * len(whole)
            made = convertor(whole[at : at + size])
            if stored:
                assert made.unpack_from(source, 0, size) == size
            else:
                half = size // 2
                assert made.unpack(half, source[half:]) == size - half
                assert made.unpack(0, source[:half]) == half
            del made
            assert whole[at : at + size] == sent
            assert set(whole[:at]) | set(whole[at + size :]) == {7}
