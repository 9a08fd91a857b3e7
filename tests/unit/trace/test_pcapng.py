"""pcapng files, read block by block, and the IP packets in them."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterator
from struct import unpack_from

import pytest
from ompy.trace.addresses import packed_address
from ompy.trace.exporting.ip_packets import TCP, UDP, End, tcp_packet, udp_packet
from ompy.trace.exporting.pcapng import LINKTYPE_RAW, packets_of, pcapng
from ompy.trace.reading import DamageError, RankHeader, event_of
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace

WALL = 1_700_000_000_000_000_123


def event(time: int, name: str, rank: int = 0, **fields: object) -> Event:
    return Event(time, rank, "wire", name, tuple(fields.items()))


def encoded(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def job(*events: Event) -> JobTrace:
    headers = {rank: RankHeader(rank, rank, f"host{rank}") for rank in (0, 1)}
    return JobTrace({"job": "4711", "ompy": "0"}, headers, {}, [], wire=events, wall=WALL)


FLOW = event(
    0, "FLOW", flow=1, protocol="btl.x", via="datagram", rail="rail0", host="rail0/0", port=7
)
STREAM = event(
    0, "FLOW", flow=2, protocol="btl.tcp", via="stream", rail="eth0", host="192.0.2.1", port=8,
    to="192.0.2.2", to_port=9, peer=1,
)  # fmt: skip


def blocks(file: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and body of each block; both lengths are right and nothing is left."""
    at = 0
    while at < len(file):
        kind, length = unpack_from("<II", file, at)
        assert length % 4 == 0
        assert unpack_from("<I", file, at + length - 4) == (length,)
        yield kind, file[at + 8 : at + length - 4]
        at += length
    assert at == len(file)


def options(body: bytes) -> dict[int, bytes]:
    found, at = {}, 0
    while True:
        code, length = unpack_from("<HH", body, at)
        if code == 0:
            assert at + 4 == len(body)
            return found
        found[code] = body[at + 4 : at + 4 + length]
        at += 4 + (length + 3) // 4 * 4


def test_blocks() -> None:
    to = {"peer": 1, "to": "rail0/1", "to_port": 9}
    sent = event(5, "SENT", flow=1, **to, size=100, data=encoded(b"abc"))
    other = event(6, "SENT", flow=2, offset=0, heard=0, size=4, data=encoded(b"abcd"))
    file, count = pcapng(job(FLOW, STREAM, sent, other))
    (section, first), *rest = blocks(file)
    assert section == 0x0A0D0D0A
    assert unpack_from("<IHHQ", first) == (0x1A2B3C4D, 1, 0, (1 << 64) - 1)
    assert options(first[16:])[4] == b"ompy 0"
    assert [kind for kind, _ in rest] == [1, 1, 6, 6]
    assert count == 2
    names = [options(body[8:]) for kind, body in rest if kind == 1]
    assert [each[2] for each in names] == [b"eth0 rank 0 btl.tcp", b"rail0 rank 0 btl.x"]
    assert {each[9] for each in names} == {b"\x09"}
    assert all(unpack_from("<HH", body) == (LINKTYPE_RAW, 0) for kind, body in rest if kind == 1)
    interface, high, low, kept, size = unpack_from("<IIIII", rest[2][1])
    assert (interface, high << 32 | low) == (1, WALL + 5)
    assert (kept, size) == (20 + 8 + 3, 20 + 8 + 100), "what was not kept is said"
    assert rest[2][1][20 + 28 : 20 + 31] == b"abc"


def sum_of(data: bytes) -> int:
    """Of 16-bit words, as RFC 1071 adds them; 0xFFFF where a sum is in it that is right."""
    data += bytes(len(data) % 2)
    total = sum(unpack_from(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.parametrize("size", [0, 1, 2, 999])
@pytest.mark.parametrize("version", [4, 16])
def test_sums(size: int, version: int) -> None:
    source, target = End(bytes(range(version)), 1), End(bytes(range(9, 9 + version)), 2)
    data = bytes(range(256)) * 4
    outer = 20 if version == 4 else 40
    for protocol, (packet, whole) in {
        UDP: udp_packet(source, target, data[:size], size),
        TCP: tcp_packet(source, target, data[:size], size, sent=1 << 40, heard=7),
    }.items():
        assert len(packet) == whole
        inner = packet[outer:]
        pseudo = source.address + target.address + len(inner).to_bytes(4, "big")
        assert sum_of(pseudo + protocol.to_bytes(4, "big") + inner) == 0xFFFF
        if version == 4:
            assert sum_of(packet[:20]) == 0xFFFF
            assert unpack_from(">H", packet, 2) == (whole,)
            assert packet[9] == protocol


def test_numbers_of_connections() -> None:
    sent = event(5, "SENT", flow=2, offset=10, heard=20, size=4, data=encoded(b"abcd"))
    (packet,) = packets_of(job(STREAM, sent))
    assert unpack_from(">HHII", packet.data, 20) == (8, 9, 11, 21)
    assert packet.data[12:20] == bytes([192, 0, 2, 1, 192, 0, 2, 2])
    assert packet.data[40:] == b"abcd"


def test_addresses() -> None:
    assert packed_address("rail0/3") == bytes([10, 1, 0, 3])
    assert packed_address("rail12/300") == bytes([10, 13, 1, 44])
    assert packed_address("2001:db8::1")[:4] == bytes([0x20, 1, 0x0D, 0xB8])
    assert packed_address("what is this")[0] == 198
    assert packed_address("rail900/3")[:1] == b"\xc6"


def test_what_is_damaged_is_left_out() -> None:
    lost = event(1, "SENT", flow=9, size=1, data="", to="rail0/1", to_port=1)
    odd = event(2, "SENT", flow=1, size=1, data="!", to="rail0/1", to_port=1)
    mixed = event(3, "SENT", flow=1, size=1, data="", to="::1", to_port=1)
    assert not list(packets_of(job(FLOW, lost, odd, mixed)))


@pytest.mark.parametrize(
    "fields",
    [
        {"flow": 1, "size": 1 << 16, "data": ""},
        {"flow": 1, "size": -1, "data": ""},
        {"flow": 1, "size": 1},
        {"flow": 1, "size": 1, "data": 7},
        {"flow": "1", "size": 1, "data": ""},
    ],
)
def test_lines_that_are_none(fields: dict[str, object]) -> None:
    with pytest.raises(DamageError):
        event_of([1, "wire", "SENT", fields], 0)
