"""What a traced job sent as a pcapng file: for Wireshark and whatever else reads packets.

An interface for each rail, rank and protocol; its name says which: `rail0 rank 3 btl.tcp`, and the
dissector goes by that. A packet is what one rank has handed to a socket, stamped when it did: so it
is there once, also where it was lost. Its length is the real one; of what was not kept the file
says so, as captures do that are cut.

Source: draft-ietf-opsawg-pcapng (PCAP Next Generation); link type 101, LINKTYPE_RAW, of
www.tcpdump.org/linktypes.html: packets begin with IP.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Any, Final, NamedTuple

from ompy.trace.addresses import packed_address
from ompy.trace.calls import fields_of
from ompy.trace.exporting.ip_packets import End, tcp_packet, udp_packet
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace

LINKTYPE_RAW: Final = 101  # reference tcpdump.org, linktypes
# reference draft-ietf-opsawg-pcapng 4: types of blocks
_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_PACKET: Final = 6  # reference pcapng 4.3: an enhanced packet
_MAGIC: Final = 0x1A2B3C4D  # reference pcapng 4.1, as the next one
_LENGTH_UNKNOWN: Final = 0xFFFF_FFFF_FFFF_FFFF  # reference pcapng 4.1
_APPLICATION, _COMMENT = 4, 1  # options: shb_userappl, opt_comment
_NAME, _DESCRIPTION, _RESOLUTION = 2, 3, 9  # options: if_name, if_description, if_tsresol
_NANOSECONDS: Final = 9  # reference pcapng 4.2, if_tsresol: 10 to the power of -9
_BLOCK: Final = Struct("<II")
_OPTION: Final = Struct("<HH")
_WORD: Final = Struct("<I")
STREAM: Final = "stream"


class Interface(NamedTuple):
    """Where packets come from."""

    rail: str
    rank: int
    protocol: str

    @property
    def name(self) -> str:
        """As the dissector reads it."""
        return f"{self.rail or 'no rail'} rank {self.rank} {self.protocol or 'unknown'}"


class Packet(NamedTuple):
    """One packet.

    Attributes:
        time: nanoseconds from the beginning of the trace.
        interface: that sent it.
        data: as far as it was kept.
        size: bytes it had.
    """

    time: int
    interface: Interface
    data: bytes
    size: int


def packets_of(trace: JobTrace) -> Iterator[Packet]:
    """The packets of a trace in order. What is damaged is left out."""
    flows: dict[tuple[int, int], dict[str, Any]] = {}
    for event in trace.wire:
        fields = fields_of(event)
        if event.name == "FLOW":
            flows[event.rank, fields["flow"]] = fields
        elif event.name == "SENT":
            flow = flows.get((event.rank, fields["flow"]))
            packet = None if flow is None else _packet(event, fields, flow)
            if packet is not None:
                yield packet


def _packet(event: Event, fields: dict[str, Any], flow: dict[str, Any]) -> Packet | None:
    ends = {**flow, **fields}
    source = End(packed_address(flow["host"]), flow["port"])
    target = End(packed_address(str(ends.get("to", ""))), int(ends.get("to_port", 0)))
    if len(source.address) != len(target.address):
        return None
    try:
        data = a2b_base64(fields["data"], strict_mode=True)
    except ValueError:  # and what is no ASCII
        return None
    size = max(fields["size"], len(data))
    if flow["via"] == STREAM:
        sent, heard = fields.get("offset", 0), fields.get("heard", 0)
        made, length = tcp_packet(source, target, data, size, sent=sent, heard=heard)
    else:
        made, length = udp_packet(source, target, data, size)
    interface = Interface(flow["rail"], event.rank, flow["protocol"])
    return Packet(event.time, interface, made, length)


def pcapng(trace: JobTrace) -> tuple[bytes, int]:
    """The bytes of the file, and how many packets are in it; the same for the same trace."""
    packets = list(packets_of(trace))
    interfaces = sorted({packet.interface for packet in packets})
    numbers = {interface: number for number, interface in enumerate(interfaces)}
    blocks = [_section(trace)]
    for interface in interfaces:
        header = trace.headers.get(interface.rank)
        host = header.host if header is not None else ""
        blocks.append(_interface(interface, host))
    for packet in packets:
        blocks.append(_packet_block(packet, numbers[packet.interface], trace.wall))
    return b"".join(blocks), len(packets)


def _section(trace: JobTrace) -> bytes:
    body = Struct("<IHHQ").pack(_MAGIC, 1, 0, _LENGTH_UNKNOWN)
    said = f"what the ranks of job {trace.job.get('job', '')} sent; headers of IP are made up"
    options = [(_APPLICATION, f"ompy {trace.job.get('ompy', '')}".strip()), (_COMMENT, said)]
    return _block(_SECTION, body + _options(options))


def _interface(interface: Interface, host: str) -> bytes:
    body = Struct("<HHI").pack(LINKTYPE_RAW, 0, 0)
    where = f" on {host}" if host else ""
    what = f"what rank {interface.rank}{where} sends over {interface.rail or 'a rail'}"
    options: list[tuple[int, str | bytes]] = [(_NAME, interface.name), (_DESCRIPTION, what)]
    return _block(_INTERFACE, body + _options([*options, (_RESOLUTION, bytes([_NANOSECONDS]))]))


def _packet_block(packet: Packet, number: int, wall: int) -> bytes:
    time = max(wall + packet.time, 0)
    head = Struct("<IIIII").pack(
        number, time >> 32 & 0xFFFF_FFFF, time & 0xFFFF_FFFF, len(packet.data), packet.size
    )
    return _block(_PACKET, head + _padded(packet.data))


def _options(options: Iterable[tuple[int, str | bytes]]) -> bytes:
    found = []
    for code, value in options:
        data = value.encode() if isinstance(value, str) else value
        found.append(_OPTION.pack(code, len(data)) + _padded(data))
    return b"".join(found) + _OPTION.pack(0, 0)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _block(kind: int, body: bytes) -> bytes:
    length = _BLOCK.size + len(body) + _WORD.size
    return _BLOCK.pack(kind, length) + body + _WORD.pack(length)
