"""The reader of a connection that acknowledges: counts in headers, and who waits."""

from __future__ import annotations

import pytest
from ompy_components.btl.tcp.acknowledging import AcknowledgingReader
from ompy_components.btl.tcp.framing import (
    ACK,
    ASKS,
    COUNT_MAX,
    DATA,
    DONE,
    FRAME,
    LANDED,
    PART,
    PUT,
    REMOTE,
)

LARGEST = 64


def feed(reader: AcknowledgingReader, data: bytes) -> None:
    room = reader.room()
    room[: len(data)] = data
    reader.received(len(data))


def data_frame(size: int, counted: int = 0) -> bytes:
    return FRAME.pack(7, DATA, counted, size) + b"x" * size


@pytest.mark.parametrize("split", range(1, 24))
def test_a_header_is_counted_once_however_it_comes(split: int) -> None:
    """Who waits is known when the whole fragment is here, not before."""
    whole = data_frame(16, ASKS | 5)
    reader = AcknowledgingReader(LARGEST)
    for part in (whole[:split], whole[split:]):
        assert not reader.wanted
        if part:
            feed(reader, part)
        found = reader.next()
    assert found
    assert (reader.acknowledged, reader.taken, reader.taken_bytes) == (5, 1, 16)
    assert reader.wanted
    assert not reader.next()
    assert reader.acknowledged == 5


def test_one_that_asks_does_not_speak_for_the_next() -> None:
    reader = AcknowledgingReader(LARGEST)
    feed(reader, data_frame(1, ASKS) + data_frame(2, COUNT_MAX))
    assert reader.next()
    assert reader.wanted
    reader.wanted = False  # it was said
    assert reader.next()
    assert not reader.wanted
    assert reader.acknowledged == COUNT_MAX


def test_what_a_put_will_answer_is_not_pressing() -> None:
    reader = AcknowledgingReader(LARGEST)
    feed(reader, data_frame(1, ASKS) + FRAME.pack(0, PUT, 2, REMOTE.size + 10))
    assert reader.next()
    assert reader.presses()
    feed(reader, REMOTE.pack(1, 2, 0, 10, PART) + b"12345")
    assert reader.next()
    assert (reader.kind, reader.acknowledged) == (PUT, 2)
    place = memoryview(bytearray(10))
    assert not reader.land(place)
    assert not reader.presses()
    feed(reader, b"67890")
    assert reader.next()
    assert reader.kind == LANDED
    assert bytes(place) == b"1234567890"
    assert reader.presses()


@pytest.mark.parametrize("split", range(1, FRAME.size + REMOTE.size + 1))
def test_a_put_is_counted_once_however_it_comes(split: int) -> None:
    whole = FRAME.pack(0, PUT, 3, REMOTE.size + 4) + REMOTE.pack(1, 2, 0, 4, 0) + b"1234"
    reader = AcknowledgingReader(LARGEST)
    for part in (whole[:split], whole[split:]):
        feed(reader, part)
        found = reader.next()
    assert found or split == FRAME.size + REMOTE.size
    assert (reader.kind, reader.acknowledged, reader.taken) == (PUT, 3, 0)


def test_every_kind_of_frame_carries_a_count() -> None:
    reader = AcknowledgingReader(LARGEST)
    done = FRAME.pack(0, DONE, 3, REMOTE.size) + REMOTE.pack(1, 0, 0, 0, 0)
    feed(reader, FRAME.pack(0, ACK, 0, 4) + done)
    assert reader.next()
    assert (reader.kind, reader.acknowledged, reader.taken) == (DONE, 7, 0)
