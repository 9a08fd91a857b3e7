"""Framing of control messages: round trips, any split, garbage, descriptors."""

import contextlib
import os
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.runtime.connections.control import (
    BODY_LIMIT,
    DESCRIPTOR_LIMIT,
    HEADER_LIMIT,
    PREFIX_SIZE,
    ControlError,
    Decoder,
    Frame,
    Kind,
    encode,
)
from ompy.runtime.connections.frame_io import receive_frames, send_all

HEADERS = st.dictionaries(st.text(max_size=8), st.integers() | st.text(max_size=8), max_size=3)
FRAMES = st.lists(
    st.tuples(st.sampled_from(Kind), HEADERS, st.binary(max_size=200)), min_size=1, max_size=5
)


def decode_all(decoder):
    frames = []
    while (frame := decoder.next()) is not None:
        frames.append(frame)
    return frames


@given(FRAMES, st.lists(st.integers(1, 40), min_size=1, max_size=10))
def test_frames_survive_any_split(messages, sizes):
    stream = b"".join(encode(*message) for message in messages)
    decoder = Decoder()
    frames = []
    position = turn = 0
    while position < len(stream):
        size = sizes[turn % len(sizes)]
        decoder.feed(stream[position : position + size])
        frames += decode_all(decoder)
        position += size
        turn += 1
    assert frames == [Frame(*message) for message in messages]
    assert not decoder.partial


@given(st.binary(min_size=PREFIX_SIZE, max_size=300))
def test_garbage_is_refused(data):
    decoder = Decoder()
    if data.startswith(encode(Kind.FENCE)[:3]):
        return
    decoder.feed(data)
    with pytest.raises(ControlError, match="not a control message"):
        decoder.next()


@given(st.integers(0, PREFIX_SIZE + 20), st.integers(0, 255))
def test_a_changed_byte_raises_the_one_error_or_nothing(position, value):
    data = bytearray(encode(Kind.LOOKUP, {"rank": 3, "call": 7}, b"body"))
    data[position % len(data)] = value
    decoder = Decoder()
    decoder.feed(bytes(data))
    with contextlib.suppress(ControlError):
        decode_all(decoder)


def test_an_incomplete_frame_is_no_frame():
    data = encode(Kind.COMMIT, {"call": 1}, b"x" * 50)
    decoder = Decoder()
    decoder.feed(data[:-1])
    assert decoder.next() is None
    assert decoder.partial
    decoder.feed(data[-1:])
    assert decoder.next() == Frame(Kind.COMMIT, {"call": 1}, b"x" * 50)


@pytest.mark.parametrize(
    ("header", "body", "descriptors"),
    [
        ({"x": "y" * HEADER_LIMIT}, b"", 0),
        ({}, bytes(BODY_LIMIT + 1), 0),
        ({}, b"", DESCRIPTOR_LIMIT + 1),
    ],
)
def test_too_large_is_not_sent(header, body, descriptors):
    with pytest.raises(ControlError):
        encode(Kind.OUTPUT, header, body, descriptors)


@pytest.mark.parametrize(
    ("descriptors", "header", "body"),
    [(0, HEADER_LIMIT + 1, 0), (0, 0, BODY_LIMIT + 1), (DESCRIPTOR_LIMIT + 1, 0, 0)],
)
def test_too_large_is_refused_before_it_is_kept(descriptors, header, body):
    good = encode(Kind.OUTPUT)
    decoder = Decoder()
    decoder.feed(good[:4] + struct.pack("!BII", descriptors, header, body))
    with pytest.raises(ControlError):
        decoder.next()


@pytest.mark.parametrize("text", [b"[1]", b"{", b"7", b"\xff", b"[" * 60000])
def test_a_header_that_is_no_object_is_refused(text):
    decoder = Decoder()
    prefix = encode(Kind.OUTPUT)[:5]
    decoder.feed(prefix + struct.pack("!II", len(text), 0) + text)
    with pytest.raises(ControlError, match="OUTPUT: header"):
        decoder.next()


def test_an_unknown_kind_or_version_is_refused():
    good = encode(Kind.OUTPUT)
    for place, value in ((2, 99), (3, 250)):
        bad = bytearray(good)
        bad[place] = value
        decoder = Decoder()
        decoder.feed(bytes(bad))
        with pytest.raises(ControlError):
            decoder.next()


def test_promised_descriptors_have_to_come():
    decoder = Decoder()
    decoder.feed(encode(Kind.HELLO, descriptors=1))
    with pytest.raises(ControlError, match="descriptors missing"):
        decoder.next()


def test_descriptors_go_with_their_frames():
    left, right = socket.socketpair()
    readers = []
    with left, right:
        for number in range(3):
            reader, writer = os.pipe()
            readers.append(reader)
            data = encode(Kind.REPLY, {"call": number}, b"z" * number, descriptors=1)
            send_all(left, data, (writer,))
            os.close(writer)
        send_all(left, encode(Kind.FENCE))
        left.shutdown(socket.SHUT_WR)
        decoder = Decoder()
        while receive_frames(right, decoder):
            pass
    frames = decode_all(decoder)
    assert [len(frame.descriptors) for frame in frames] == [1, 1, 1, 0]
    for number, frame in enumerate(frames[:3]):
        assert not os.get_inheritable(frame.descriptors[0])
        os.write(frame.descriptors[0], b"%d" % number)
        os.close(frame.descriptors[0])
        assert os.read(readers[number], 10) == b"%d" % number
        os.close(readers[number])


def test_descriptors_nobody_took_are_closed():
    reader, writer = os.pipe()
    decoder = Decoder()
    decoder.feed(b"", [writer])
    decoder.close()
    assert os.read(reader, 1) == b""
    os.close(reader)
