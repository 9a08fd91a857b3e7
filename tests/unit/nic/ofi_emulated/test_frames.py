"""Frames and names: recorded bytes, everything cut short or altered, and streams in any pieces."""

from __future__ import annotations

import errno
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.frameworks.nic.fabric import Datatype, FabricError, Op
from ompy.net.base import Address
from ompy_components.nic.ofi_emulated.headers import (
    ANSWER,
    BYE,
    COMPARE,
    FETCH,
    LEAVES,
    READ,
    REQUEST,
    SEND,
    SIZE_MAX,
    WANTS_ANSWER,
    WRITE,
    Answer,
    BadFrame,
    Request,
    parse_answer,
    parse_request,
)
from ompy_components.nic.ofi_emulated.links.intake import Intake
from ompy_components.nic.ofi_emulated.links.outgoing import Outgoing, OutgoingQueue
from ompy_components.nic.ofi_emulated.vector import Name, parse_name
from ompy_components.nic.ofi_emulated.words import change

RECORDED = {
    "02010000070000000300000000000000090000000000000000100000010000003412000000000000"
    "0004000000000000": Request(WRITE, WANTS_ANSWER, 0, 0, 7, 3, 9, 0x1_0000_1000, 0x1234, 1024),
    "0601070c010000000000000000000000010000000000000008000000000000000500000000000000"
    "0800000000000000": Request(COMPARE, WANTS_ANSWER, Datatype.UINT64, Op.CSWAP, 1, 0, 1, 8, 5, 8),
}


@pytest.mark.parametrize("text", RECORDED)
def test_recorded_requests(text: str) -> None:
    data = bytes.fromhex(text)
    assert parse_request(memoryview(data)) == RECORDED[text]
    assert REQUEST.pack(*RECORDED[text]) == data


def test_recorded_answers() -> None:
    data = bytes.fromhex("0000000000000000090000000000000000040000000000 00".replace(" ", ""))
    assert parse_answer(memoryview(data)) == Answer(0, 9, 1024)
    assert parse_answer(memoryview(ANSWER.pack(LEAVES, 0, 0))) == Answer(LEAVES, 0, 0)


@pytest.mark.parametrize(
    "request_",
    [
        Request(0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        Request(BYE + 1, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        Request(SEND, 2, 0, 0, 0, 0, 0, 0, 0, 0),
        Request(WRITE, 0, 0, 0, 0, 0, 0, 0, 0, SIZE_MAX + 1),
        Request(FETCH, 0, Datatype.UINT64, Op.SUM, 0, 0, 0, 0, 0, 4),
        Request(FETCH, 0, Datatype.UINT64, Op.CSWAP, 0, 0, 0, 0, 0, 8),
        Request(COMPARE, 0, Datatype.UINT64, Op.SUM, 0, 0, 0, 0, 0, 8),
        Request(FETCH, 0, 99, Op.SUM, 0, 0, 0, 0, 0, 8),
        Request(FETCH, 0, Datatype.UINT64, 99, 0, 0, 0, 0, 0, 8),
    ],
)
def test_what_no_peer_of_ours_writes(request_: Request) -> None:
    with pytest.raises(BadFrame):
        parse_request(memoryview(REQUEST.pack(*request_)))


@given(st.binary(min_size=REQUEST.size, max_size=REQUEST.size))
def test_any_bytes_are_a_request_or_bad(data: bytes) -> None:
    with suppress(BadFrame):
        found = parse_request(memoryview(data))
        assert found.follows <= 2 * SIZE_MAX
        assert (found.follows == 0) >= (found.kind == READ)
    with suppress(BadFrame):
        answer = parse_answer(memoryview(data)[: ANSWER.size])
        assert not (answer.status and answer.size)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_name_or_refused(data: bytes) -> None:
    try:
        found = parse_name(data, 4)
    except FabricError as problem:
        assert problem.errno == errno.EINVAL
    else:
        assert found.packed() == data


def test_names() -> None:
    name = Name(3, Address("10.0.0.1", 4711), 5)
    assert parse_name(name.packed(), 4) == name
    with pytest.raises(FabricError):
        parse_name(name.packed(), 3)


@given(st.lists(st.binary(max_size=40), max_size=8), st.integers(1, 17), st.data())
def test_a_stream_in_any_pieces(bodies: list[bytes], step: int, data: st.DataObject) -> None:
    """Every body lands whole where it is meant to, or nowhere."""
    drops = [data.draw(st.sampled_from(["land", "drop", "drop later"])) for _ in bodies]
    wire = b"".join(bytes([index, len(body)]) + body for index, body in enumerate(bodies))
    intake = Intake(2)
    rooms = [bytearray(len(body)) for body in bodies]
    headers = []
    while wire:
        room = intake.room()
        count = min(len(room), step, len(wire))
        room[:count] = wire[:count]
        wire = wire[count:]
        whole = intake.received(count)
        if whole and intake.in_header:
            index, size = intake.header
            headers.append(index)
            intake.land(size, None if drops[index] == "drop" else memoryview(rooms[index]))
        elif whole:
            intake.next_header()
        elif headers and not intake.in_header and drops[headers[-1]] == "drop later":
            intake.drop()
    assert headers == list(range(len(bodies)))
    for body, room, what in zip(bodies, rooms, drops, strict=True):
        if what == "land":
            assert room == body
        elif what == "drop":
            assert room == bytes(len(body))
        else:
            assert body.startswith(bytes(room).rstrip(b"\0"))


class SomeBytes:
    """A stream that takes a few bytes at a time."""

    def __init__(self, takes: list[int]) -> None:
        self.takes = takes
        self.taken = b""

    def send(self, pieces: list[memoryview]) -> int:
        offered = b"".join(pieces)
        count = min(len(offered), self.takes.pop(0)) if self.takes else 0
        self.taken += offered[:count]
        return count


@given(
    st.lists(st.lists(st.binary(max_size=9), min_size=1, max_size=3), max_size=6),
    st.lists(st.integers(0, 12)),
)
def test_what_is_sent_in_parts(frames: list[list[bytes]], takes: list[int]) -> None:
    queue, done = OutgoingQueue(), []
    stream = SomeBytes([*takes, *[1] * 1000])
    memory = [bytearray(b"".join(pieces)) for pieces in frames]
    for index, whole in enumerate(memory):
        view = memoryview(whole)
        if not whole:
            continue
        pieces = [view[:1], view[1:]]
        queue.add(Outgoing(pieces, index, lambda index=index: done.append(index)))  # type: ignore[misc]
    for _ in range(len(takes) + 1000):
        queue.flush(stream, 0)  # type: ignore[arg-type]
    queue.withdraw(0)
    assert stream.taken == b"".join(memory)
    assert not queue
    assert done == [index for index, whole in enumerate(memory) if whole]


def test_memory_that_is_withdrawn_is_sent_as_it_was() -> None:
    queue, memory = OutgoingQueue(), bytearray(b"as it was")
    stream = SomeBytes([2, 0, 100])
    queue.add(Outgoing([memoryview(memory)], "mine"))
    queue.flush(stream, 0)  # type: ignore[arg-type]
    queue.withdraw("mine")
    memory[:] = b"something"
    queue.flush(stream, 0)  # type: ignore[arg-type]
    assert stream.taken == b"as it was"


def test_a_product_wraps_around() -> None:
    word = memoryview(bytearray(b"\xff\xff\xff\x7f"))  # the largest INT32
    assert change(word, Datatype.INT32, Op.PROD, memoryview(b"\x02\0\0\0")) == b"\xff\xff\xff\x7f"
    assert bytes(word) == b"\xfe\xff\xff\xff"
