"""Records under a seal: nothing passes that the other end has not sealed, in its place."""

from __future__ import annotations

import importlib.util

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.frameworks.btl_base.sealing import AUTO, POLICIES
from ompy.net.base import LinkError
from ompy.net.seals import records
from ompy.net.seals.handshake import SealLevel
from ompy.net.seals.records import (
    COUNT_MAX,
    HASHED_FROM,
    HEAD_SIZE,
    OVERHEAD,
    RECORD_MAX,
    Opener,
    Sealer,
    SealError,
    Writer,
    session_keys,
)

KEY = bytes(range(32))
CRYPTOGRAPHY = importlib.util.find_spec("cryptography") is not None
LEVELS = [
    SealLevel.MAC,
    pytest.param(
        SealLevel.ENCRYPT, marks=pytest.mark.skipif(not CRYPTOGRAPHY, reason="no cryptography")
    ),
]
SIZES = (1, 30, HASHED_FROM - 1, HASHED_FROM, RECORD_MAX)


def record(sealer: Sealer, body: bytes) -> bytes:
    return b"".join(sealer.seal(body))


def feed(opener: Opener, data: bytes, step: int = 1 << 20) -> list[bytes]:
    """What the records in `data` say."""
    found = []
    while data:
        room = opener.room()
        count = min(len(room), len(data), step)
        room[:count] = data[:count]
        opener.received(count)
        data = data[count:]
        while opener.next():
            found.append(bytes(opener.plain))
    return found


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20])
def test_what_was_sealed_comes_out_whatever_the_pieces(level: SealLevel, step: int) -> None:
    sealer, opener = Sealer(KEY, level), Opener(KEY, level)
    bodies = [
        bytes([size % 251]) * size for size in (1, 2, 30, 5000, *([] if step == 1 else SIZES))
    ]
    assert feed(opener, b"".join(record(sealer, body) for body in bodies), step) == bodies
    assert not opener.holds
    assert opener.count == sealer.count == len(bodies)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [1, 30, HASHED_FROM])
def test_every_turned_bit_is_found(level: SealLevel, size: int) -> None:
    good = record(Sealer(KEY, level), bytes(size))
    positions = range(len(good)) if size < 100 else (0, 3, 4, 15, 16, 900, size + 16, size + 31)
    for position in positions:
        for bit in range(8):
            altered = bytearray(good)
            altered[position] ^= 1 << bit
            opener = Opener(KEY, level)
            with pytest.raises(SealError, match="altered, forged or sent again"):
                # all that is behind it, for a length that has grown
                feed(opener, bytes(altered) + bytes(2 * RECORD_MAX))
            with pytest.raises(SealError):  # and nothing behind it is ever looked at
                opener.next()
            assert not opener.plain


@pytest.mark.parametrize("level", LEVELS)
def test_a_forged_length_is_refused_at_once_and_waits_for_nothing(level: SealLevel) -> None:
    """With 16 bytes here, and before any of what it announces."""
    head = record(Sealer(KEY, level), bytes(30))[:HEAD_SIZE]
    assert feed(Opener(KEY, level), head) == [], "the genuine one waits for its body"
    for size in (0, 29, 31, 1000, RECORD_MAX, RECORD_MAX + 1, 2**31, 2**32 - 1):
        opener = Opener(KEY, level)
        room = len(opener.room())
        with pytest.raises(SealError, match="length"):
            feed(opener, size.to_bytes(4, "little") + head[4:])
        assert room <= 2 * (RECORD_MAX + OVERHEAD), "and no memory was taken for it"


@pytest.mark.parametrize("level", LEVELS)
def test_replayed_reordered_and_left_out(level: SealLevel) -> None:
    sealer = Sealer(KEY, level)
    first, second, third = (record(sealer, bytes([n]) * 9) for n in range(3))
    for order in (
        [first, first], [second], [second, first], [first, third], [first, second, second],
        [first, second, first], [first, second, third, first],
    ):  # fmt: skip
        with pytest.raises(SealError):
            feed(Opener(KEY, level), b"".join(order))


@pytest.mark.parametrize("level", LEVELS)
def test_truncated_and_extended(level: SealLevel) -> None:
    good = record(Sealer(KEY, level), b"x" * 40)
    for cut in range(len(good)):
        opener = Opener(KEY, level)
        assert feed(opener, good[:cut]) == [], "what is not whole says nothing"
    opener = Opener(KEY, level)
    assert feed(opener, good + b"\1") == [b"x" * 40]
    assert opener.holds
    with pytest.raises(SealError):
        feed(opener, b"\1" * HEAD_SIZE)


@pytest.mark.parametrize("level", LEVELS)
def test_another_direction_key_or_level(level: SealLevel) -> None:
    forth, back = session_keys(KEY, b"transcript")
    assert len({forth, back, KEY, *session_keys(KEY, b"transcripT")}) == 5
    assert session_keys(b"k" * 32, b"transcript")[0] != forth
    good = record(Sealer(forth, level), b"x" * 40)
    with pytest.raises(SealError):
        feed(Opener(back, level), good)
    if CRYPTOGRAPHY:
        other = SealLevel.MAC if level is SealLevel.ENCRYPT else SealLevel.ENCRYPT
        with pytest.raises(SealError):
            feed(Opener(forth, other), good)


@pytest.mark.parametrize("level", LEVELS)
def test_the_number_never_wraps(level: SealLevel) -> None:
    sealer, opener = Sealer(KEY, level), Opener(KEY, level)
    sealer.count = opener.count = COUNT_MAX - 1
    last = record(sealer, b"last")
    assert feed(opener, last) == [b"last"]
    with pytest.raises(SealError, match="fresh connection"):
        sealer.seal(b"one more")
    sealer.count = COUNT_MAX - 1  # what a broken sender might do
    sealer.seal(b"last")
    assert COUNT_MAX < 1 << 63
    assert issubclass(SealError, LinkError), "a lost path, to whoever uses the connection"


@pytest.mark.skipif(not CRYPTOGRAPHY, reason="no cryptography")
def test_encrypted_is_not_readable_and_mac_is() -> None:
    secret = b"a secret of forty bytes, which is not short"
    assert secret in record(Sealer(KEY, SealLevel.MAC), secret)
    assert secret not in record(Sealer(KEY, SealLevel.ENCRYPT), secret)
    twice = Sealer(KEY, SealLevel.ENCRYPT)
    assert record(twice, secret)[HEAD_SIZE:] != record(twice, secret)[HEAD_SIZE:]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 90_000), min_size=1, max_size=4), min_size=1, max_size=5),
    st.lists(st.integers(0, 70_000), min_size=1, max_size=30),
)
def test_a_writer_over_a_transport_that_takes_what_it_likes(
    frames: list[list[int]], gulps: list[int]
) -> None:
    """Whatever is taken at a time, the other end reads what was offered."""
    sent = bytearray()
    calls = 0

    def transmit(pieces: list[memoryview]) -> int:  # type: ignore[type-arg]
        nonlocal calls
        calls += 1
        offered = b"".join(pieces)
        assert offered, "nothing is never sent"
        most = gulps[calls % len(gulps)] if calls < 200 else len(offered)
        sent.extend(offered[:most])
        return min(most, len(offered))

    writer = Writer(Sealer(KEY, SealLevel.MAC), transmit)  # type: ignore[arg-type]
    wanted = b""
    for number, sizes in enumerate(frames):
        pieces = [memoryview(bytes([number + 1]) * size) for size in sizes]
        wanted += b"".join(pieces)
        while pieces:
            taken = writer.write_pieces(pieces)
            pieces = [piece for piece in records.without(pieces, taken) if len(piece)]
            if pieces and writer.pending:
                # what has been sealed is sent, whatever becomes of the memory meanwhile
                pieces[0] = memoryview(bytes(pieces[0]))
    assert b"".join(feed(Opener(KEY, SealLevel.MAC), bytes(sent))) == wanted


def test_what_is_sealed_is_what_is_sent_though_the_user_writes_into_it() -> None:
    """A window's memory may change while a get of it is on the way: no wrong MAC comes of that."""
    memory = bytearray(b"a" * 10_000)
    sent = bytearray()

    def transmit(pieces: list[memoryview]) -> int:  # type: ignore[type-arg]
        offered = b"".join(pieces)[:3000]
        sent.extend(offered)
        memory[:] = bytes([memory[0] + 1]) * len(memory)
        return len(offered)

    writer = Writer(Sealer(KEY, SealLevel.MAC), transmit)  # type: ignore[arg-type]
    while not writer.write_pieces([memoryview(memory)]):
        assert writer.pending
    assert feed(Opener(KEY, SealLevel.MAC), bytes(sent)) == [b"a" * 10_000]


def test_the_values_of_the_parameter_are_the_levels() -> None:
    levels = {level.name.lower(): int(level) for level in SealLevel}
    assert levels | {"auto": AUTO} == POLICIES
    assert AUTO not in levels.values()
