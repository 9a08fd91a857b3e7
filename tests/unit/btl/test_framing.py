"""Frames are cut out of a stream whatever its pieces; nonsense ends in one kind of error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.net.base import LinkError
from ompy_components.btl.tcp.framing import BYE, DATA, FRAME, FRAME_SIZE, FrameReader

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
