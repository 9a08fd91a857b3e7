"""The shared-memory ring against a queue."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.net.memory.ring import CACHE_LINE, SLOT_HEADER, RingReader, RingWriter, ring_size

SLOT = 4 * CACHE_LINE
ROOM = SLOT - SLOT_HEADER
LARGE = 32 * CACHE_LINE  # eight of them are as long as the producer goes on at least
LARGE_SIZES = st.integers(LARGE // 2, LARGE - SLOT_HEADER)
SIZES = st.one_of(st.integers(0, ROOM), st.sampled_from([0, ROOM]))


@given(st.integers(1, 5), st.lists(st.one_of(SIZES, st.none()), max_size=120), st.booleans())
def test_is_a_bounded_queue(slots: int, steps: list[int | None], fresh: bool) -> None:
    """Records of all lengths go in; `None` takes one out. With `fresh`, by new ends each time."""
    memory = memoryview(bytearray(8 + ring_size(slots, SLOT) + 8))
    memory[-8:] = b"untouched"[:8]
    writer, reader = RingWriter(memory, 8, slots, SLOT), RingReader(memory, 8, slots, SLOT)
    expected: deque[tuple[int, bytes]] = deque()
    for number, size in enumerate(steps):
        if fresh:
            writer, reader = RingWriter(memory, 8, slots, SLOT), RingReader(memory, 8, slots, SLOT)
        assert reader.pending() == bool(expected)
        if size is None:
            assert reader.peek() == bool(expected)
            if expected:
                tag, data = expected.popleft()
                assert (reader.tag, reader.kind, reader.reference) == (tag, tag % 7, tag * 2**30)
                assert bytes(memory[reader.payload : reader.payload + reader.length]) == data
                reader.release()
            continue
        assert (writer.reserve(0) < 0) == (len(expected) == slots), "asking takes nothing"
        at = writer.reserve(size)
        assert (at < 0) == (len(expected) == slots)
        if at >= 0:
            tag = number % 256
            data = bytes([tag ^ 0xFF]) * size
            memory[at : at + size] = data
            writer.publish(size, tag, tag % 7, tag * 2**30)
            expected.append((tag, data))
    assert bytes(memory[:8]) == bytes(8), "nothing lies before the ring"
    assert bytes(memory[-8:]) == b"untouche", "nor behind it"


@pytest.mark.parametrize("size", [0, 1, 48, 49, ROOM - CACHE_LINE, ROOM])
def test_goes_round_with_records_of_one_size(size: int) -> None:
    memory = memoryview(bytearray(ring_size(3, SLOT)))
    writer, reader = RingWriter(memory, 0, 3, SLOT), RingReader(memory, 0, 3, SLOT)
    places = set()
    for number in range(100):
        for ahead in range(3):
            places.add(writer.reserve(size))
            writer.publish(size, number, ahead, 0)
        assert writer.reserve(size) == -1
        for ahead in range(3):
            assert reader.peek()
            assert (reader.tag, reader.kind, reader.length) == (number, ahead, size)
            reader.release()
        assert not reader.peek()
    assert writer.records_written() == reader.records_read() == 300
    assert max(places) + size <= len(memory)


@given(st.integers(40, 80), st.lists(st.tuples(st.integers(0, 14), LARGE_SIZES), max_size=150))
def test_begins_again_when_it_is_empty_and_loses_nothing(
    slots: int, steps: list[tuple[int, int]]
) -> None:
    """Bursts of records, each followed by as many as that are taken out: often all of them."""
    memory = memoryview(bytearray(ring_size(slots, LARGE)))
    writer, reader = RingWriter(memory, 0, slots, LARGE), RingReader(memory, 0, slots, LARGE)
    expected: deque[tuple[int, bytes]] = deque()
    for number, (burst, size) in enumerate(steps):
        for _ in range(burst):
            at = writer.reserve(size)
            if at >= 0:
                memory[at : at + size] = bytes([number % 251]) * size
                writer.publish(size, number % 256, 1, number)
                expected.append((number, bytes([number % 251]) * size))
        while expected and number % 5:
            assert reader.peek()
            wanted, data = expected.popleft()
            assert reader.reference == wanted
            assert bytes(memory[reader.payload : reader.payload + reader.length]) == data
            reader.release()
            if number % 5 == 1:
                break
        assert reader.pending() == bool(expected)


def test_an_empty_ring_stays_in_the_same_lines() -> None:
    memory = memoryview(bytearray(ring_size(512, 4160)))
    writer, reader = RingWriter(memory, 0, 512, 4160), RingReader(memory, 0, 512, 4160)
    places = set()
    for number in range(10_000):
        places.add(writer.reserve(8))
        writer.publish(8, 1, 1, number)
        assert reader.peek()
        assert reader.reference == number
        reader.release()
    assert max(places) < 20_000


def test_the_word_that_says_where_to_go_on_is_not_written_over() -> None:
    """The consumer has not followed yet when the producer comes there again."""
    memory = memoryview(bytearray(ring_size(512, 4160)))
    writer, reader = RingWriter(memory, 0, 512, 4160), RingReader(memory, 0, 512, 4160)
    count = 0
    for burst in (5, 400, 1, 5, 400, 3, 511):
        first = count
        for _ in range(burst):
            assert writer.reserve(4000) >= 0
            writer.publish(4000, 1, 1, count)
            count += 1
        for number in range(first, count):
            assert reader.peek()
            assert reader.reference == number
            reader.release()


def test_the_length_of_what_lies_elsewhere_takes_no_room() -> None:
    memory = memoryview(bytearray(ring_size(3, SLOT)))
    writer, reader = RingWriter(memory, 0, 3, SLOT), RingReader(memory, 0, 3, SLOT)
    for number in range(50):
        writer.reserve(0)
        writer.publish(1 << 20, 1, 1, number)
        assert reader.peek()
        assert (reader.length, reader.reference) == (1 << 20, number)
        reader.release()


def test_small_records_share_pages() -> None:
    memory = memoryview(bytearray(ring_size(64, 4096)))
    writer = RingWriter(memory, 0, 64, 4096)
    places = []
    for _ in range(64):
        places.append(writer.reserve(8))
        writer.publish(8, 0, 0, 0)
    assert places == [places[0] + CACHE_LINE * number for number in range(64)]


def test_room_and_both_ends_attach_to_what_is_there() -> None:
    memory = memoryview(bytearray(ring_size(2, CACHE_LINE)))
    writer = RingWriter(memory, 0, 2, CACHE_LINE)
    assert writer.room == CACHE_LINE - SLOT_HEADER
    writer.reserve(0)
    writer.publish(0, 5, 0, 0)
    late = RingReader(memory, 0, 2, CACHE_LINE)
    assert late.peek()
    assert late.tag == 5
    another = RingWriter(memory, 0, 2, CACHE_LINE)
    assert another.reserve(0) >= 0
    another.publish(0, 6, 0, 0)
    assert another.reserve(0) == -1


def test_slots_must_be_cache_lines() -> None:
    with pytest.raises(AssertionError):
        ring_size(2, 72)
