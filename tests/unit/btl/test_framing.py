"""Frames are cut out of a stream whatever its pieces; nonsense ends in one kind of error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.net.base import LinkError
from ompy_components.btl.tcp.framing import (
    BYE,
    DATA,
    DONE,
    FRAME,
    FRAME_SIZE,
    GET,
    GOT,
    LANDED,
    PUT,
    REMOTE,
    REMOTE_SIZE,
    FrameReader,
)

LARGEST = 100


def feed(reader: FrameReader, data: bytes, step: int) -> list[tuple[int, int, bytes]]:
    found = []
    while data:
        room = reader.room()
        count = min(len(room), step, len(data))
        assert count, "a reader always has room"
        room[:count] = data[:count]
        reader.received(count)
        data = data[count:]
        while reader.next():
            found.append((reader.tag, reader.kind, bytes(reader.fragment)))
    return found


frames = st.lists(
    st.tuples(st.integers(0, 255), st.sampled_from([DATA, BYE]), st.binary(max_size=LARGEST))
)


def test_little_of_a_put_is_read_with_the_fragment_before() -> None:
    """What comes in the same read is copied once more, so it must not be much."""
    fragment, put = 50_000, 400_000
    reader = FrameReader(fragment)
    stream = FRAME.pack(1, DATA, 0, fragment) + bytes(fragment)
    stream += FRAME.pack(0, PUT, 0, REMOTE_SIZE + put) + REMOTE.pack(1, 2, 0, put, 0)
    stream += b"p" * put
    place, taken, found = memoryview(bytearray(put)), 0, []
    direct = 0
    while not found or found[-1] != LANDED:
        room = reader.room()
        count = min(len(room), len(stream) - taken)
        assert count
        direct += count if found[-1:] == [PUT] else 0
        room[:count] = stream[taken : taken + count]
        taken += count
        reader.received(count)
        while reader.next():
            found.append(reader.kind)
            if reader.kind == PUT:
                assert not reader.land(place)
    assert found == [DATA, PUT, LANDED]
    assert bytes(place) == b"p" * put
    assert put - 16 * 1024 <= direct < put  # README.md, "Put and get"


@given(frames, st.integers(1, 500))
def test_round_trip(sent: list[tuple[int, int, bytes]], step: int) -> None:
    stream = b"".join(FRAME.pack(tag, kind, 0, len(data)) + data for tag, kind, data in sent)
    assert feed(FrameReader(LARGEST), stream, step) == sent


@pytest.mark.parametrize(
    "header",
    [(65, DATA, 0, LARGEST + 1), (65, DATA, 0, 2**32 - 1), (65, 2, 0, 1), (65, DATA, 1, 1)],
)
def test_nonsense(header: tuple[int, ...]) -> None:
    with pytest.raises(LinkError, match="at most 100 are allowed"):
        feed(FrameReader(LARGEST), FRAME.pack(*header), 3)


@given(st.binary(max_size=400), st.integers(1, 50))
def test_garbage(data: bytes, step: int) -> None:
    try:
        found = feed(FrameReader(LARGEST), data, step)
    except LinkError:
        return
    assert sum(FRAME_SIZE + len(fragment) for _, _, fragment in found) <= len(data)


Item = tuple[int, bytes | None]  # bytes of a fragment or of a put; None: a question


def remote_stream(items: list[Item]) -> bytes:
    """DATA frames for tags, PUT frames for tag -1 with bytes, GET frames for -1 without."""
    stream = b""
    for number, (tag, data) in enumerate(items):
        if tag >= 0:
            stream += FRAME.pack(tag, DATA, 0, len(data or b"")) + (data or b"")
            continue
        kind = GET if data is None else PUT
        brought = data or b""
        stream += FRAME.pack(0, kind, 0, REMOTE_SIZE + len(brought))
        stream += REMOTE.pack(number, 7, 9, len(brought), -1) + brought
    return stream


@given(
    st.lists(
        st.tuples(st.sampled_from([-1, 5, 64]), st.one_of(st.none(), st.binary(max_size=700)))
    ),
    st.integers(1, 400),
    st.sets(st.integers(0, 20)),
)
def test_bytes_land_where_they_belong(items: list[Item], step: int, dropped: set[int]) -> None:
    """In any pieces, between other frames; what has no place is dropped, and all goes on."""
    items = [(tag, data if tag < 0 or data is None else data[:LARGEST]) for tag, data in items]
    reader, data = FrameReader(LARGEST), remote_stream(items)
    found: list[Item] = []
    places: list[bytearray] = []

    def look() -> None:
        while reader.next():
            if reader.kind == DATA:
                found.append((reader.tag, bytes(reader.fragment) or None))
            elif reader.kind == LANDED:
                found.append((-1, bytes(places[-1])))
            else:
                number, identity, offset, size, status = REMOTE.unpack(reader.fragment)
                assert (identity, offset, status) == (7, 9, -1)
                if reader.kind == GET:
                    found.append((-1, None))
                    continue
                assert reader.left == size
                places.append(bytearray(b"\xee" * size))
                if number in dropped:
                    target = None if size % 2 else memoryview(bytearray(size + 1))
                else:
                    target = memoryview(places[-1])
                if reader.land(target):
                    found.append((-1, bytes(places[-1])))

    while data:
        room = reader.room()
        count = min(len(room), step, len(data))
        assert count, "a reader always has room"
        room[:count] = data[:count]
        reader.received(count)
        data = data[count:]
        look()
    expected = [
        (
            tag,
            b"\xee" * len(brought) if tag < 0 and brought is not None and n in dropped else brought,
        )
        for n, (tag, brought) in enumerate(items)
    ]
    assert found == [(tag, brought if tag < 0 else brought or None) for tag, brought in expected]


@pytest.mark.parametrize("kind", [PUT, GET, GOT, DONE, DONE + 1, LANDED])
@pytest.mark.parametrize("size", [0, REMOTE_SIZE - 1, REMOTE_SIZE + 1, 2**32 - 1])
def test_frames_of_put_and_get_have_their_sizes(kind: int, size: int) -> None:
    stream = FRAME.pack(0, kind, 0, size)
    if kind in (PUT, GOT) and size > REMOTE_SIZE:
        assert feed(FrameReader(LARGEST), stream, 3) == []
        return
    with pytest.raises(LinkError, match="a frame of kind"):
        feed(FrameReader(LARGEST), stream, 3)


def test_dropping_in_the_middle() -> None:
    reader, place = FrameReader(LARGEST), bytearray(500)
    header = FRAME.pack(0, PUT, 0, REMOTE_SIZE + 500) + REMOTE.pack(1, 1, 0, 500, 0)
    assert feed(reader, header, 9)[0][1] == PUT
    assert not reader.land(memoryview(place))
    assert feed(reader, b"\1" * 200, 50) == []
    reader.drop()
    rest = b"\2" * 300 + FRAME.pack(9, DATA, 0, 2) + b"ok"
    assert [found[:2] for found in feed(reader, rest, 1000)] == [(0, LANDED), (9, DATA)]
    assert place == b"\1" * 200 + bytes(300)


@pytest.mark.parametrize("wrong", [0, 99, 101])
def test_a_place_of_another_size_is_not_touched(wrong: int) -> None:
    reader, place = FrameReader(LARGEST), bytearray(wrong)
    header = FRAME.pack(0, PUT, 0, REMOTE_SIZE + 100) + REMOTE.pack(1, 1, 0, 100, 0)
    feed(reader, header, 9)
    assert not reader.land(memoryview(place))
    found = feed(reader, b"\1" * 100 + FRAME.pack(9, DATA, 0, 2) + b"ok", 1000)
    assert [item[:2] for item in found] == [(0, LANDED), (9, DATA)]
    assert not any(place)
