"""The seal of datagrams: recorded ones are refused at once, and after every wrap there could be."""

from __future__ import annotations

from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.net.seals.datagram_seal import NUMBER_SIZE, SEAL_SIZE, DatagramSeal
from ompy.net.seals.replay import ROOM, WINDOW, ReplayWindow, Taken
from ompy.net.seals.seal import MAC_SIZE, PacketSeal

KEY = bytes(range(32))
NEAR, FAR, THIRD = b"near", b"far.", b"3rd."
NEW, REPEATED, LATE = Taken.NEW, Taken.REPEATED, Taken.LATE


def seal(first: int = 0, key: bytes = KEY, protocol: bytes = b"test") -> DatagramSeal:
    return DatagramSeal(key, protocol, (0, 4), first)


def closed(by: DatagramSeal, to: bytes, sender: bytes = NEAR, text: bytes = b"text") -> memoryview:
    made = memoryview(bytearray(SEAL_SIZE) + sender + text)
    by.close(made, to)
    return made


def skip(by: DatagramSeal, to: bytes, count: int) -> None:
    """As if `count` datagrams had been sent that were all lost."""
    by._numbers[to] += count


def test_bytes_as_they_are() -> None:
    ours = seal(first=0x0102030405060707)
    datagram = closed(ours, FAR)
    assert datagram[MAC_SIZE:].hex() == "0807060504030201" + b"near".hex() + b"text".hex()
    assert datagram[:MAC_SIZE].hex() == "3b094b76b2a63e00ab40f544567a75aa"
    assert (MAC_SIZE, NUMBER_SIZE, SEAL_SIZE) == (16, 8, 24)


@pytest.mark.parametrize("bits", [2, 8, 16, 24, 32, 48, 63])
@pytest.mark.parametrize("later", [0, 1, 65_536, 1 << 24, 1 << 32])
def test_a_recorded_datagram_is_never_taken_again(bits: int, later: int) -> None:
    ours, theirs = seal(first=(1 << bits) - 3), seal()
    for _ in range(5):
        recorded = closed(ours, FAR)
        assert theirs.open(recorded, FAR) is NEW
        assert theirs.open(recorded, FAR) is REPEATED
    if later:
        skip(ours, FAR, later - 1)
        assert theirs.open(closed(ours, FAR), FAR) is NEW
    assert theirs.open(recorded, FAR) is (REPEATED if later <= 1 else LATE)
    assert (theirs.repeated, theirs.late, theirs.refused) == (
        (6, 0, 0) if later <= 1 else (5, 1, 0)
    )
    assert theirs.open(closed(ours, FAR), FAR) is NEW


def test_the_same_content_is_another_datagram_each_time() -> None:
    ours, theirs = seal(), seal()
    datagram = closed(ours, FAR)
    before = bytes(datagram)
    assert theirs.open(datagram, FAR) is NEW
    ours.close(datagram, FAR)
    assert bytes(datagram) != before
    assert theirs.open(datagram, FAR) is NEW


def test_receivers_and_senders_have_numbers_of_their_own() -> None:
    ours, other, theirs = seal(), seal(), seal()
    for _ in range(3):
        assert theirs.open(closed(ours, FAR), FAR) is NEW
        assert theirs.open(closed(other, FAR, sender=THIRD), FAR) is NEW
    assert closed(ours, THIRD)[MAC_SIZE] == 1
    recorded = closed(ours, FAR)
    assert theirs.open(recorded, THIRD) is None, "for somebody else"
    assert theirs.open(recorded, FAR) is NEW, "which has moved no window"


@pytest.mark.parametrize(
    "other", [{"key": KEY[::-1]}, {"protocol": b"tset"}, {"key": b""}], ids=repr
)
def test_what_is_forged_moves_no_window(other: dict[str, bytes]) -> None:
    ours, theirs, forger = seal(), seal(), seal(**other)  # type: ignore[arg-type]
    forged = closed(forger, FAR)
    skip(forger, FAR, 1 << 40)
    assert theirs.open(closed(forger, FAR), FAR) is None
    assert theirs.open(forged, FAR) is None
    assert theirs.open(memoryview(b""), FAR) is theirs.open(memoryview(bytes(27)), FAR) is None
    assert theirs.refused == 4
    assert theirs.open(closed(ours, FAR), FAR) is NEW


@given(st.integers(0, 8 * (SEAL_SIZE + 8) - 1))
def test_every_bit_is_covered_the_number_too(bit: int) -> None:
    ours, theirs = seal(), seal()
    datagram = closed(ours, FAR)
    datagram[bit // 8] ^= 1 << bit % 8
    assert theirs.open(datagram, FAR) is None
    datagram[bit // 8] ^= 1 << bit % 8
    assert theirs.open(datagram, FAR) is NEW


def test_opened_anew_its_numbers_go_on_above() -> None:
    """A socket that is opened later by the clock, after a billion datagrams a second."""
    theirs = seal()
    assert theirs.open(closed(seal(first=5 * 10**9), FAR), FAR) is NEW
    assert theirs.open(closed(seal(first=6 * 10**9), FAR), FAR) is NEW
    assert theirs.open(closed(seal(first=5 * 10**9), FAR), FAR) is LATE


# -- the window


def test_what_is_overtaken_by_less_than_a_window_is_taken() -> None:
    for highest in range(ROOM, ROOM + 9):
        window = ReplayWindow()
        assert window.accept_number(highest) is NEW
        oldest = highest - WINDOW + 1
        assert [window.accept_number(n) for n in (oldest, oldest, oldest - 1)] == [
            NEW,
            REPEATED,
            LATE,
        ]
        assert all(window.accept_number(n) is NEW for n in range(oldest + 1, highest))
        assert all(window.accept_number(n) is REPEATED for n in range(oldest, highest + 1))


STEPS = st.one_of(
    st.integers(-20, 20), st.integers(-WINDOW - 20, -WINDOW + 20), st.integers(0, 3 * ROOM)
)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 1 << 63), st.lists(STEPS, max_size=300))
def test_against_a_set(first: int, steps: list[int]) -> None:
    """Each number once; within the window none is refused that was not here."""
    window, seen, number = ReplayWindow(), set[int](), first
    highest = 0
    for step in steps:
        number = max(1, (highest or number) + step)
        expected = REPEATED if number in seen else NEW
        if highest - number >= WINDOW:
            expected = LATE
        assert window.accept_number(number) is expected
        if expected is NEW:
            seen.add(number)
        highest = max(highest, number)
        assert window.highest == highest


@pytest.mark.parametrize("salt", [b"", b"x", b"0123456789abcdef"])
def test_macs_are_those_of_hashlib(salt: bytes) -> None:
    """Of any length, around the blocks of the hash most of all; compiled they are made by us."""
    for key in (b"", b"k" * 32, bytes(range(64))):
        seal = PacketSeal(key, b"some protocol")
        own = blake2b(b"some protocol", key=key, digest_size=32).digest()
        for size in (*range(300), 1023, 1024, 1025, 2047, 2048, 8972, 65_507):
            data = bytes(index * 7 + index // 251 & 255 for index in range(size))
            expected = blake2b(data, key=own, salt=salt, digest_size=MAC_SIZE).digest()
            assert seal.mac(data, salt) == expected, (key, size)
            packet = memoryview(bytearray(MAC_SIZE) + data)
            seal.seal(packet, salt)
            assert bytes(packet) == expected + data
            assert seal.genuine(packet, salt)
            packet[size % MAC_SIZE] ^= 1 << size % 8
            assert not seal.genuine(packet, salt)
        assert not seal.genuine(b"too short", salt)
