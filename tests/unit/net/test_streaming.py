"""Copies that another core reads: the right bytes in the right places, whichever way they go."""

from __future__ import annotations

import os
from typing import Any

import pytest
from ompy.data.convertor import Convertor, GatherConvertor, stream_part
from ompy.net.memory.streaming import STREAM_ALWAYS, STREAM_LEAST, TRIED_AGAIN, Streaming

from tests.support.convertors import borrowed, contiguous

LINE = 64
SIZES = (1, 63, 64, 127, 128, 129, STREAM_LEAST - 1, STREAM_LEAST, STREAM_ALWAYS, 100_003)
PLACES = (0, 1, 15, 16, 17, 63)


def in_pieces(memory: memoryview) -> Convertor:
    cuts = [0, len(memory) // 3, len(memory) // 2, len(memory)]
    return GatherConvertor([memory[a:b] for a, b in zip(cuts, cuts[1:], strict=False)])


class Noted(Convertor):
    """A message that says by which way it was copied."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.ways: list[str] = []

    def pack_at(self, target: memoryview, at: int, count: int) -> None:
        self.ways.append("through the cache")

    def pack_streamed(self, target: memoryview, at: int, count: int) -> None:
        self.ways.append("past it")


@pytest.mark.parametrize("kind", [contiguous, borrowed, in_pieces])
@pytest.mark.parametrize("size", SIZES)
def test_bytes_are_the_same_and_those_beside_them_untouched(kind: Any, size: int) -> None:
    sent = os.urandom(size)
    room = memoryview(bytearray(size + 4 * LINE))
    for at in PLACES:
        for way in ("pack_streamed", "pack", "pack_part", "stream_part"):
            room[:] = bytes([7]) * len(room)
            message, streaming = kind(memoryview(bytearray(sent))), Streaming(1)
            begin = size // 3 if way.endswith("part") else 0
            if way == "pack_streamed":
                message.pack_streamed(room, at, size)
            elif way == "pack":
                streaming.pack(message, room, at, size)
            elif way == "pack_part":
                streaming.pack_part(message, begin, room, at, size - begin)
            else:
                stream_part(message, begin, room, at, size - begin)
            end = at + size - begin
            assert room[at:end] == sent[begin:], way
            assert set(room[:at]) | set(room[end:]) == {7}, way


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("slow", [False, True])
def test_a_part_of_a_view_is_copied(size: int, slow: bool) -> None:
    sent, streaming = os.urandom(size + 9), Streaming(STREAM_LEAST)
    if slow:
        streaming.judge(STREAM_LEAST, 1 << 40)
    for at in PLACES:
        room = memoryview(bytearray(size + 4 * LINE))
        streaming.copy(room, at, memoryview(sent), 5, size)
        assert room[at : at + size] == sent[5 : 5 + size]
        assert not any(room[:at])
        assert not any(room[at + size :])


def test_only_those_of_a_middling_size_depend_on_how_long_others_took() -> None:
    streaming, room = Streaming(STREAM_LEAST), memoryview(b"")
    small, large = Noted(STREAM_LEAST - 1), Noted(STREAM_ALWAYS)
    for _ in range(3):
        streaming.pack(small, room, 0, small.size)
        streaming.pack(large, room, 0, large.size)
        streaming.judge(STREAM_LEAST, 1 << 40)
    assert (set(small.ways), set(large.ways)) == ({"through the cache"}, {"past it"})


def test_where_copies_take_long_the_next_ones_go_past_the_cache_and_then_one_is_tried() -> None:
    streaming, room, middling = Streaming(STREAM_LEAST), memoryview(b""), Noted(STREAM_LEAST)
    streaming.judge(STREAM_LEAST, STREAM_LEAST)  # a byte a nanosecond
    for _ in range(TRIED_AGAIN + 1):
        streaming.pack(middling, room, 0, middling.size)
    assert middling.ways == ["past it"] * TRIED_AGAIN + ["through the cache"]


def test_where_they_do_not_they_go_on_through_it() -> None:
    streaming, room, middling = Streaming(STREAM_LEAST), memoryview(b""), Noted(STREAM_LEAST)
    streaming.judge(STREAM_LEAST, STREAM_LEAST // 20)
    streaming.pack(middling, room, 0, middling.size)
    assert middling.ways == ["through the cache"]
