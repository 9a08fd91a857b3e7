"""The parts of the conduits that do no input or output."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.data.errors import MPIError
from ompy_components.conduit.gni import headers, segment
from ompy_components.conduit.gni.bootstrap import RANK, in_order, node_map
from ompy_components.conduit.gni.credits import CreditError, Credits
from ompy_components.conduit.gni.headers import Command, HeaderError
from ompy_components.conduit.gni.locking import NoLock
from ompy_components.conduit.gni.mailboxes import CREDIT, mailbox_word, message_word
from ompy_components.conduit.gni.smsg import WorkQueue

ARGUMENTS = st.lists(st.integers(-(2**31), 2**31 - 1), max_size=16)
EMPTY = memoryview(b"")


def read(message: bytearray) -> headers.Message:
    return headers.parse_message(memoryview(message))


@given(ARGUMENTS, st.binary(max_size=568), st.integers(0, 255), st.sampled_from([1, 2, 3, 4]))
def test_short_and_medium(arguments: list[int], data: bytes, handler: int, command: int) -> None:
    payload = memoryview(data) if command > Command.SHORT_REPLY else EMPTY
    message = headers.short_or_medium(command, handler, arguments, payload)
    found = read(message)
    assert (found.command, found.handler, list(found.arguments)) == (command, handler, arguments)
    assert bytes(found.payload) == bytes(payload)
    assert (len(message) - len(payload)) % 8 == 0
    longer = memoryview(bytes(message) + bytes(100))
    assert headers.message_size(longer, headers.WORD.unpack_from(message)[0]) == len(message)
    for end in range(len(message)):
        with pytest.raises(HeaderError):
            headers.parse_message(memoryview(message)[:end])


@given(ARGUMENTS, st.binary(max_size=500), st.booleans(), st.integers(0, 2**63))
def test_long(arguments: list[int], data: bytes, packed: bool, offset: int) -> None:
    payload = memoryview(data)
    given_ = payload if packed else None
    message = headers.long(Command.LONG_REQUEST, 200, arguments, offset, len(data), given_)
    found = read(message)
    assert (found.offset, found.length, found.misc) == (offset, len(data), int(packed))
    assert list(found.arguments) == arguments
    assert bytes(found.payload) == (data if packed else b"")
    longer = memoryview(bytes(message) + bytes(100))
    assert headers.message_size(longer, headers.WORD.unpack_from(message)[0]) == len(message)


def test_bits_as_the_reference_has_them() -> None:
    """Reference gasnet.md 5.1: command 4, misc 15, arguments 5, handler 8."""
    message = headers.short_or_medium(Command.MEDIUM_REQUEST, 0xAB, [5], memoryview(b"xyz"))
    assert struct.unpack_from("<II", message) == (3 | 3 << 4 | 1 << 19 | 0xAB << 24, 5)
    assert bytes(message[8:]) == b"xyz"
    assert len(headers.short_or_medium(1, 128, [0] * 16, EMPTY)) == headers.HEAD_MAX == 72
    assert headers.long_head_size(0) == 16
    assert bytes(headers.credit_message()) == struct.pack("<I", 7)
    assert struct.unpack("<I", headers.shutdown(3, 200)) == (8 | 200 << 4 | 3 << 24,)


@given(st.integers(0, 2**32 - 1))
def test_no_bytes_are_read_that_are_not_there(first: int) -> None:
    for size in (4, 16, 640):
        message = bytearray(struct.pack("<I", first).ljust(size, b"\0"))
        try:
            found = read(message)
        except HeaderError:
            continue
        assert len(found.payload) in {0, found.length}


@given(st.sampled_from(range(1, 7)), st.integers(0, 2**28 - 1), st.booleans())
def test_words_in_mailboxes(command: int, rest: int, credit: bool) -> None:
    word = rest << 4 | command
    lying = mailbox_word(word, credit=credit)
    assert message_word(lying) == word
    assert bool(lying & CREDIT) is credit
    assert lying, "a word of zero is an empty mailbox"


def test_credits_are_never_negative_nor_too_many() -> None:
    credits_ = Credits([2, 3])
    assert [credits_.take_credit(1) for _ in range(4)] == [True, True, True, False]
    assert credits_.outstanding() == 3
    credits_.give(1, 2)
    credits_.give(1)
    assert credits_.outstanding() == 0
    with pytest.raises(CreditError):
        credits_.give(1)
    assert credits_.left(1) == 3


def test_the_work_queue_has_a_peer_at_most_once() -> None:
    work = WorkQueue(5, NoLock())
    work.add_nodes([3, 1, 3, 4])
    work.add_nodes([1, 0])
    assert len(work) == 4
    assert [work.take_node() for _ in range(2)] == [3, 1]
    work.add_nodes([3])
    assert [work.take_node() for _ in range(4)] == [4, 0, 3, -1]


def test_records_are_put_in_the_order_of_the_ranks() -> None:
    records = [RANK.pack(rank) + bytes([rank]) for rank in (2, 0, 3, 1)]
    assert in_order(records, 4) == [b"\0", b"\1", b"\2", b"\3"]
    for wrong in (records[:3], [*records, records[0]], [*records[:3], RANK.pack(4)]):
        with pytest.raises(MPIError):
            in_order(wrong, 4)


def test_the_node_map() -> None:
    assert node_map([0, 1, 0, 3, 1]) == [[0, 2], [1, 4], [3]]
    with pytest.raises(MPIError, match="share a host"):
        node_map([0, 0, 3, 2])


MIB = 1 << 20


@pytest.mark.parametrize(
    ("physical", "ratio", "physmem_max", "ranks", "messages", "wanted"),
    [
        (1000 * MIB, 0.80, 0, 1, 0, 800 * MIB),
        (1000 * MIB, 0.80, 0, 4, 0, 200 * MIB),
        (1000 * MIB, 0.80, 500 * MIB, 2, 0, 200 * MIB),
        (1000 * MIB, 1.0, 4000 * MIB, 1, 0, 4000 * MIB),
        (1000 * MIB, 0.80, 0, 1, 1, 800 * MIB - 4096),
        (10 * MIB, 0.5, 0, 2, 5 * MIB, 0),
    ],
)
def test_how_large_a_segment_may_be(
    physical: int, ratio: float, physmem_max: int, ranks: int, messages: int, wanted: int
) -> None:
    assert segment.segment_limit(physical, ratio, physmem_max, ranks, messages) == wanted
