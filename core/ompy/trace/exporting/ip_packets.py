"""IP packets around what was sent: headers as the protocols have them, sums included.

The kernel's own headers are not in a trace. These are made from what is: addresses, ports, sizes,
and of a connection how much had gone each way. Sums are right where all bytes of a packet are
there, and 0 where they are not.

Source: RFC 791, 8200 (IP), 768 (UDP), 9293 (TCP).
"""

from __future__ import annotations

import sys
from array import array
from struct import Struct
from typing import Final, NamedTuple

TCP: Final = 6  # reference RFC 9293 3.1: protocol number
UDP: Final = 17  # reference RFC 768: protocol number
_IPV4: Final = Struct(">BBHHHBBH4s4s")
_IPV6: Final = Struct(">IHBB16s16s")
_UDP: Final = Struct(">HHHH")
_TCP: Final = Struct(">HHIIBBHHH")
_HOPS: Final = 64  # reference RFC 1700: the recommended time to live
_PUSH_ACK: Final = 0x18  # reference RFC 9293 3.1: flags
_WINDOW: Final = 0xFFFF  # arbitrary: none is known
_WORD: Final = 1 << 32  # reference RFC 9293 3.4: numbers wrap


class End(NamedTuple):
    """One end of a flow.

    Attributes:
        address: 4 or 16 bytes.
        port: its port.
    """

    address: bytes
    port: int


def udp_packet(source: End, target: End, data: bytes, size: int) -> tuple[bytes, int]:
    """A datagram.

    Args:
        source: where it comes from.
        target: where it goes, of the same version of IP.
        data: the first bytes of it.
        size: bytes of it.

    Returns:
        The packet as far as it is known, and how many bytes it has.
    """
    header = bytearray(_UDP.pack(source.port, target.port, _UDP.size + size, 0))
    return _packet(source, target, UDP, header, 6, data, size)


def tcp_packet(
    source: End, target: End, data: bytes, size: int, *, sent: int, heard: int
) -> tuple[bytes, int]:
    """A segment. The arguments are those of `udp_packet`, and how much had gone each way before.

    Numbers begin at 1 both ways, as behind a SYN with 0.
    """
    sequence, acknowledged = (1 + sent) % _WORD, (1 + heard) % _WORD
    offset = _TCP.size // 4 << 4
    header = bytearray(
        _TCP.pack(
            source.port, target.port, sequence, acknowledged, offset, _PUSH_ACK, _WINDOW, 0, 0
        )
    )
    return _packet(source, target, TCP, header, 16, data, size)


def _packet(
    source: End, target: End, protocol: int, header: bytearray, place: int, data: bytes, size: int
) -> tuple[bytes, int]:
    """IP around a header, which gets its sum at byte `place`."""
    length = len(header) + size
    if len(data) == size:
        ends = source.address + target.address
        pseudo = ends + length.to_bytes(4, "big") + protocol.to_bytes(4, "big")
        sum_ = _sum(pseudo + header + data) or 0xFFFF  # RFC 768: 0 says that there is none
        header[place : place + 2] = sum_.to_bytes(2, "big")
    outer = _outer(source.address, target.address, protocol, length)
    return outer + header + data, len(outer) + length


def _outer(source: bytes, target: bytes, protocol: int, length: int) -> bytes:
    if len(source) > 4:
        return _IPV6.pack(6 << 28, length, protocol, _HOPS, source, target)
    whole = _IPV4.size + length
    first = (0x45, 0, whole, 0, 0x4000, _HOPS, protocol)  # version 4, five words; not to be cut
    plain = _IPV4.pack(*first, 0, source, target)
    return _IPV4.pack(*first, _sum(plain), source, target)


def _sum(data: bytes | bytearray) -> int:
    """The Internet checksum (RFC 1071)."""
    words = array("H", bytes(data) + bytes(len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    total = ~total & 0xFFFF
    return total if sys.byteorder == "big" else (total >> 8) | (total & 0xFF) << 8
