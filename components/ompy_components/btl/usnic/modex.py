"""What a rank tells its peers about its usnic modules: a record for each, one behind the other.

    interface address and ports of the two channels, as text with its length, padded to 48 bytes
    prefix       2  bits of the network part of the address
    isn          2  number of the first packet of this module to any peer
    max_message  4  bytes of a packet on the data channel
    speed        4  of the link, Mbit/s
    version      4  of this protocol

Little-endian. Source: reference usnic.md 2.2; an address is text here, as the virtual world's are
no numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from ompy.net.base import Address

KEY: Final = "btl.usnic"
VERSION: Final = 5  # arbitrary: counts changes of what goes over the wire
_RECORD: Final = Struct("<48sHHIII")


class ModuleRecord(NamedTuple):
    """One module as its peers see it.

    Attributes:
        host: address of its interface.
        ports: of its priority and its data channel.
        prefix: bits of the network part of the address.
        isn: number of its first packet to any peer.
        max_message: bytes of a packet on its data channel.
        speed: Mbit/s, 0 when unknown.
    """

    host: str
    ports: tuple[int, int]
    prefix: int
    isn: int
    max_message: int
    speed: int

    @property
    def addresses(self) -> tuple[Address, Address]:
        """Where its two channels are reached."""
        return Address(self.host, self.ports[0]), Address(self.host, self.ports[1])


def pack_records(records: Sequence[ModuleRecord]) -> bytes:
    """The records as they are published."""
    packed = []
    for record in records:
        text = f"{record.host} {record.ports[0]} {record.ports[1]}".encode()
        assert len(text) <= 48, f"{record.host} is too long an address"
        fields = (record.prefix, record.isn, record.max_message, record.speed, VERSION)
        packed.append(_RECORD.pack(text, *fields))
    return b"".join(packed)


def unpack_records(blob: bytes) -> list[ModuleRecord]:
    """The records a peer has published; none if it has published nothing of this version."""
    if len(blob) % _RECORD.size:
        return []
    found = []
    for text, prefix, isn, max_message, speed, version in _RECORD.iter_unpack(blob):
        if version != VERSION:
            return []
        host, priority, data = text.rstrip(b"\0").decode().split()
        ports = int(priority), int(data)
        found.append(ModuleRecord(host, ports, prefix, isn, max_message, speed))
    return found
