"""The parts of nic/hca that need no wire: tables, headers, keys, names, congestion window."""

from __future__ import annotations

from itertools import product
from struct import pack_into
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.verbs import ALLOWED, Access, Span, State, Timing
from ompy.mca.component import NotAvailable
from ompy.net.base import Interface
from ompy.net.seals.datagram_seal import SEAL_SIZE, DatagramSeal
from ompy.net.seals.replay import Taken
from ompy_components.nic.hca import headers, responder, timing
from ompy_components.nic.hca.component import COMPONENT
from ompy_components.nic.hca.congestion_window import LEAST, CongestionWindow
from ompy_components.nic.hca.gather import Pieces
from ompy_components.nic.hca.headers import (
    OPCODES,
    SPACE,
    Answer,
    BadPacket,
    Operands,
    Packet,
    Remote,
    header_size,
    pack_extension,
    parse,
    unwrapped,
)
from ompy_components.nic.hca.memory import Regions
from ompy_components.nic.hca.names import LID_MAX, lid_of, rank_of, subnet_of
from ompy_components.nic.hca.states import Step, step

STEPS = """
RESET: INIT keep, ERR flush
INIT: RESET forget, INIT keep, RTR connect, ERR flush
RTR: RESET forget, RTS begin, ERR flush
RTS: RESET forget, RTS retime, ERR flush
SQE: RESET forget, RTS retime, ERR flush
ERR: RESET forget, ERR keep
"""


def test_every_pair_of_states() -> None:
    table = {}
    for line in STEPS.strip().splitlines():
        name, _, steps = line.partition(": ")
        for entry in steps.split(", "):
            wanted, what = entry.split()
            table[State[name], State[wanted]] = Step(what)
    table[State.RESET, State.RESET] = Step.FORGET
    for pair in product(State, State):
        assert step(*pair) is table.get(pair, Step.REFUSE), pair
        allowed = pair in ALLOWED or pair[1] in (State.RESET, State.ERR)
        assert (step(*pair) is not Step.REFUSE) is allowed


@pytest.mark.parametrize(
    ("code", "us"), [(0, 655_360), (1, 10), (7, 120), (12, 640), (25, 61_440), (31, 491_520)]
)
def test_rnr_timer_codes(code: int, us: int) -> None:
    assert timing.rnr_ns(code) == us * 1000


def test_rnr_timers_grow() -> None:
    times = [timing.rnr_ns(code) for code in range(1, 32)]
    assert times == sorted(set(times))
    assert timing.rnr_ns(0) > times[-1]


def test_timeouts() -> None:
    assert timing.timeout_ns(0) == 0
    assert [timing.timeout_ns(code) for code in (1, 8, 20)] == [8192, 1_048_576, 4_294_967_296]


@pytest.mark.parametrize("field", Timing._fields)
@pytest.mark.parametrize("value", [-1, 32])
def test_timing_out_of_range(field: str, value: int) -> None:
    with pytest.raises(NicError, match=field):
        timing.check(Timing(0, 0, 0, 0)._replace(**{field: value}))


numbers = st.integers(0, SPACE - 1)
words = st.integers(0, 2**64 - 1)
keys = st.integers(0, 2**32 - 1)
extensions: dict[int, Any] = {}
for _opcode in OPCODES:
    extensions[_opcode] = st.none()
for _opcode in (headers.WRITE_FIRST, headers.WRITE_ONLY, headers.READ_REQUEST):
    extensions[_opcode] = st.builds(Remote, words, keys, keys, keys)
for _opcode in (headers.FETCH_ADD, headers.COMPARE_SWAP):
    extensions[_opcode] = st.builds(Operands, words, keys, words, words)
for _opcode in (
    headers.READ_RESPONSE_FIRST,
    headers.READ_RESPONSE_LAST,
    headers.READ_RESPONSE_ONLY,
    headers.ACKNOWLEDGE,
):
    extensions[_opcode] = st.builds(Answer, st.integers(0, 255), numbers, st.just(0))
extensions[headers.ATOMIC_ACKNOWLEDGE] = st.builds(Answer, st.integers(0, 255), numbers, words)
NO_PAYLOAD = (
    headers.READ_REQUEST,
    headers.ACKNOWLEDGE,
    headers.ATOMIC_ACKNOWLEDGE,
    headers.FETCH_ADD,
    headers.COMPARE_SWAP,
    headers.SILENT,
    headers.NOP,
)


@st.composite
def packets(draw: st.DrawFn) -> Packet:
    opcode = draw(st.sampled_from(sorted(OPCODES)))
    return Packet(
        opcode,
        draw(st.booleans()),
        draw(st.integers(0, 255)),
        draw(st.integers(0, 65_535)),
        draw(numbers),
        draw(st.integers(0, 65_535)),
        draw(numbers),
        draw(numbers),
        draw(extensions[opcode]),
        memoryview(b"" if opcode in NO_PAYLOAD else draw(st.binary(max_size=50))),
    )


def written(packet: Packet) -> bytearray:
    room = bytearray(header_size(packet.opcode)) + packet.payload
    headers.BASE.pack_into(
        room,
        SEAL_SIZE,
        packet.opcode,
        packet.asks,
        packet.round,
        packet.to_lid,
        packet.from_lid,
        packet.to,
        packet.source,
        packet.sequence,
    )
    if packet.extension is not None:
        pack_extension(packet.extension, packet.opcode, room)
    return room


@given(packets())
def test_headers_there_and_back(packet: Packet) -> None:
    assert parse(memoryview(written(packet))) == packet


@given(packets())
def test_a_truncated_packet_is_none_or_has_less_payload(packet: Packet) -> None:
    data = memoryview(written(packet))
    size = header_size(packet.opcode)
    for end in range(len(data)):
        if end < size:
            with pytest.raises(BadPacket, match="too few"):
                parse(data[:end])
        else:
            assert parse(data[:end]).payload == packet.payload[: end - size]


@given(packets(), st.integers(0))
def test_no_altered_bit_gets_through(packet: Packet, bit: int) -> None:
    seal = DatagramSeal(b"k" * 32, b"test", headers.SENDER, 0)
    data = written(packet)
    seal.close(memoryview(data), b"to")
    altered = bytearray(data)
    bit %= 8 * len(data)
    altered[bit // 8] ^= 1 << bit % 8
    assert seal.open(memoryview(altered), b"to") is None
    assert seal.refused == 1
    assert seal.open(memoryview(data), b"to") is Taken.NEW, "what is altered moves no window"


@given(st.binary(max_size=200))
def test_nothing_else_comes_out_of_the_parser(data: bytes) -> None:
    try:
        packet = parse(memoryview(data))
    except BadPacket:
        return
    assert packet.opcode in OPCODES


def test_what_is_no_packet() -> None:
    room = bytearray(headers.BEGIN)
    room[SEAL_SIZE] = 0x03  # a send with immediate data
    with pytest.raises(BadPacket, match="no opcode 0x03"):
        parse(memoryview(room))
    room[SEAL_SIZE] = headers.NOP
    with pytest.raises(BadPacket, match="no payload"):
        parse(memoryview(room + b"x"))
    for at in (8, 12, 16):
        other = bytearray(room)
        pack_into("<I", other, SEAL_SIZE + at, SPACE)
        with pytest.raises(BadPacket, match="24 bits"):
            parse(memoryview(other))


@given(st.integers(0, 1 << 40), st.integers(-(SPACE // 2), SPACE // 2 - 1))
def test_numbers_within_half_their_range(near: int, distance: int) -> None:
    number = near + distance
    assert unwrapped(number % SPACE, near) == number


@given(st.lists(st.binary(max_size=9), max_size=5), st.data())
def test_pieces(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    views = [memoryview(bytearray(part)) for part in parts]
    pieces = Pieces(views)
    assert pieces.size == len(whole)
    assert pieces.copy() == whole
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    assert b"".join(pieces.views(begin, end)) == whole[begin:end]
    pieces.store(begin, memoryview(b"#" * (end - begin)))
    assert b"".join(views) == whole[:begin] + b"#" * (end - begin) + whole[end:]


def test_pieces_of_other_formats() -> None:
    assert Pieces([memoryview(bytearray(8)).cast("Q"), memoryview(b"ab")]).size == 10


class Domain:
    """What a region has to tell apart."""


ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC


def test_keys_are_never_used_again() -> None:
    seen = set()
    for index in (0, 3):
        given_back = Mock()
        regions, domain = Regions(index, given_back), Domain()
        for _ in range(2000):
            region = regions.register(domain, memoryview(bytearray(8)), ALL)  # type: ignore[arg-type]
            assert region.lkey < 1 << 32 > region.rkey
            seen |= {region.lkey, region.rkey}
            region.close()
            region.close()
        assert given_back.call_count == 2000
    assert len(seen) == 8000
    assert not {key + 1 for key in seen} & seen


def test_regions_do_not_touch() -> None:
    regions, domain = Regions(0, Mock()), Domain()
    made = [
        regions.register(domain, memoryview(bytearray(size)), ALL)  # type: ignore[arg-type]
        for size in (0, 1, 4095, 4096, 4097)
    ]
    for one, next_one in zip(made, made[1:], strict=False):
        assert next_one.address >= one.address + len(one.memory) + 4096
        assert regions.reach(domain, one.rkey, next_one.address, 1, 0) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("begin", [-1, 0, 1, 99, 100, 101])
@pytest.mark.parametrize("size", [1, 2, 100, 101])
def test_bounds(begin: int, size: int) -> None:
    regions, domain = Regions(0, Mock()), Domain()
    around = memoryview(bytearray(400))
    region = regions.register(domain, around[100:200], Access.LOCAL_WRITE)  # type: ignore[arg-type]
    inside = begin >= 0 and begin + size <= 100
    span = Span(around[100 + begin : 100 + begin + size], region.lkey)
    assert (regions.unsuitable(domain, [span], 0) == "") is inside  # type: ignore[arg-type]
    found = regions.reach(domain, region.rkey, region.address + begin, size, 0)  # type: ignore[arg-type]
    assert (found is not None) is inside
    assert found is None or len(found) == size


def test_what_cannot_be_registered() -> None:
    regions, domain = Regions(0, Mock()), Domain()
    for memory, access, why in (
        (b"constant", Access.LOCAL_WRITE, "read-only"),
        (bytearray(8), Access.REMOTE_WRITE, "LOCAL_WRITE is missing"),
        (memoryview(bytearray(8))[::2], Access.LOCAL_WRITE, "not contiguous"),
    ):
        with pytest.raises(NicError, match=why):
            regions.register(domain, memoryview(memory), access)  # type: ignore[arg-type]
    constant = regions.register(domain, memoryview(b"constant"), Access.REMOTE_READ)  # type: ignore[arg-type]
    assert regions.reach(domain, constant.rkey, constant.address, 8, 4) == b"constant"  # type: ignore[arg-type]


def test_lids_are_unique_and_tell_the_rank() -> None:
    seen = {lid_of(rank, index, 7): rank for index in range(4) for rank in range(7)}
    assert len(seen) == 28
    assert min(seen) == 1
    assert all(rank_of(lid, 7) == rank for lid, rank in seen.items())
    with pytest.raises(NotAvailable, match="there are 49151 LIDs"):
        lid_of(1, 1, LID_MAX)


def test_subnets() -> None:
    def subnet(address: str, prefix: int) -> int:
        return subnet_of(Interface("", address, prefix, loopback=False))

    assert subnet("10.1.2.3", 16) == 0xFEC0_0010_0A01_0000
    assert subnet("10.1.200.3", 16) == subnet("10.1.2.3", 16)
    assert subnet("10.2.2.3", 16) != subnet("10.1.2.3", 16)
    assert subnet("10.1.2.3", 24) != subnet("10.1.2.3", 16)
    assert subnet("10.1.2.3", 0) == 0xFEC0_0000_0000_0000
    assert subnet("rail0/1", 0) == subnet("rail0/2", 0) != subnet("rail1/1", 0)


def test_congestion_window() -> None:
    window = CongestionWindow(32)
    window.lost()
    assert window.packets == 16
    window.gained(15)
    assert window.packets == 16
    window.gained(1)
    assert window.packets == 17
    window.expired()
    window.expired()
    assert window.packets == 1
    window.gained(1)
    assert window.packets == 8
    for _ in range(5):
        window.lost()
    assert window.packets == LEAST
    for _ in range(1000):
        window.gained(40)
    assert window.packets == 32


def test_congestion_window_of_one() -> None:
    window = CongestionWindow(1)
    window.lost()
    window.expired()
    window.gained(1)
    assert window.packets == 1


def test_numbers_that_belong_together() -> None:
    most = {parameter.name: parameter.maximum for parameter in COMPONENT.parameters}
    assert most["max_reads"] == responder.READS_MAX
    assert most["window"] == 2 * responder.ANSWER_MAX
    assert most["mtu"] + headers.OVERHEAD <= 65_507
