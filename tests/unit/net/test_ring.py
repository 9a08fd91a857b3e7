"""The shared-memory ring against a queue."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.net.ring import SLOT_HEADER, RingReader, RingWriter, ring_size


@given(st.integers(1, 5), st.lists(st.one_of(st.binary(max_size=20), st.none()), max_size=60))
def test_is_a_bounded_queue(slots: int, steps: list[bytes | None]) -> None:
    memory = memoryview(bytearray(8 + ring_size(slots, 40)))
    writer, reader = RingWriter(memory, 8, slots, 40), RingReader(memory, 8, slots, 40)
    expected: deque[tuple[int, bytes]] = deque()
    for number, step in enumerate(steps):
        assert reader.pending() == bool(expected)
        if step is None:
            assert reader.peek() == bool(expected)
            if expected:
                tag, data = expected.popleft()
                assert (reader.tag, reader.kind, reader.reference) == (tag, tag % 7, tag * 2**30)
                assert bytes(memory[reader.payload : reader.payload + reader.length]) == data
                reader.release()
            continue
        at = writer.reserve()
        assert (at < 0) == (len(expected) == slots)
        if at >= 0:
            tag = number % 256
            memory[at : at + len(step)] = step
            writer.publish(len(step), tag, tag % 7, tag * 2**30)
            expected.append((tag, step))


def test_room_and_both_ends_attach_to_what_is_there() -> None:
    memory = memoryview(bytearray(ring_size(2, 32)))
    writer = RingWriter(memory, 0, 2, 32)
    assert writer.room == 32 - SLOT_HEADER
    writer.reserve()
    writer.publish(0, 5, 0, 0)
    late = RingReader(memory, 0, 2, 32)
    assert late.peek()
    assert late.tag == 5
    another = RingWriter(memory, 0, 2, 32)
    assert another.reserve() >= 0
    another.publish(0, 6, 0, 0)
    assert another.reserve() == -1


def test_slot_size_must_be_words() -> None:
    with pytest.raises(AssertionError):
        ring_size(2, 33)
