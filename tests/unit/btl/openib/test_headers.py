"""openib's bytes: there and back, cut short, and those of others."""

from __future__ import annotations

import pytest
from ompy_components.btl.openib import coalescing, headers
from ompy_components.btl.openib.headers import BadFragment, Broken, Given, QueueOffer, RingOffer


@pytest.mark.parametrize(
    ("tag", "given", "recorded"),
    [
        (0x41, Given(0, 0, 0, ring=False), "41000000"),
        (0x41, Given(3, 2047, 255, ring=False), "41ffff1f"),
        (0xFF, Given(15, 1, 0, ring=False), "ff000178"),
        (0x20, Given(0, 9, 0, ring=True), "20000980"),
    ],
)
def test_header(tag: int, given: Given, recorded: str) -> None:
    """Tag, messages seen, 16 bits: of the ring, queue, how many (reference openmpi.md 5.3)."""
    assert headers.pack_header(tag, given).hex() == recorded
    assert headers.unpack_header(memoryview(bytes.fromhex(recorded))) == (tag, given)
    for size in range(4):
        with pytest.raises(BadFragment):
            headers.unpack_header(memoryview(bytes.fromhex(recorded))[:size])


def test_footer() -> None:
    """24 bits of size, then the owner's byte, which comes last (reference openmpi.md 5.4)."""
    assert headers.pack_footer(0x123456).hex() == "563412ff"


RING = RingOffer(17, 0xDEADBEEF, 1 << 40, 12304)
BROKEN = Broken(7, 0xFEC0 << 48, 3, 2, 99)
QUEUE = QueueOffer(7, 0xABCDEF, 0x123456, 3, answer=True)


@pytest.mark.parametrize(
    ("message", "read", "value"),
    [
        (headers.pack_ring(RING), headers.unpack_ring, RING),
        (headers.pack_broken(headers.EP_BROKEN, BROKEN), headers.unpack_broken, BROKEN),
        (headers.pack_queue(QUEUE), headers.unpack_queue, QUEUE),
    ],
)
def test_control_messages(message: bytes, read: object, value: object) -> None:
    assert callable(read)
    assert read(memoryview(message)) == value
    assert len(message) <= headers.CONTROL_MAX
    for other in (message[:-1], message + b"\0", message[:1], b""):
        with pytest.raises(BadFragment):
            read(memoryview(other))


def test_credit_messages_say_whether_they_took_reserve() -> None:
    for reserved in (False, True):
        message = memoryview(headers.pack_credits(2, reserved=reserved))
        assert headers.control_type(message) == headers.CREDITS
        assert headers.took_reserve(message) is reserved
    assert not headers.took_reserve(memoryview(headers.pack_bye()))
    with pytest.raises(BadFragment):
        headers.control_type(memoryview(b""))


@pytest.mark.parametrize("offer", [RingOffer(0, 1, 1, 100), RingOffer(4, 1, 1, 8)])
def test_a_ring_that_holds_nothing_is_refused(offer: RingOffer) -> None:
    with pytest.raises(BadFragment):
        headers.unpack_ring(memoryview(headers.pack_ring(offer)))


FRAGMENTS = [(0x40, b""), (0x41, b"a"), (0xFF, b"12345678"), (0x42, b"x" * 13)]


def coalesced() -> memoryview:
    room = memoryview(bytearray(1 + sum(coalescing.room_for(len(data)) for _, data in FRAGMENTS)))
    at = coalescing.begin_coalesced(room)
    for tag, data in FRAGMENTS:
        at = coalescing.append_fragment(room, at, tag, memoryview(data))
    assert at == len(room)
    return room


def test_coalesced_fragments_are_teased_out() -> None:
    assert [
        (tag, bytes(data)) for tag, data in coalescing.split_coalesced(coalesced())
    ] == FRAGMENTS


def test_a_coalesced_message_that_was_cut_is_refused() -> None:
    whole = coalesced()
    ends = {1}
    for _, data in FRAGMENTS:
        ends.add(max(ends) + coalescing.room_for(len(data)))
    for size in range(1, len(whole)):
        if size in ends:
            assert len(list(coalescing.split_coalesced(whole[:size]))) < len(FRAGMENTS)
        else:
            with pytest.raises(BadFragment):
                list(coalescing.split_coalesced(whole[:size]))
