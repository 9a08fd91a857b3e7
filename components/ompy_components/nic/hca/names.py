"""What devices are called: LIDs, unique in the job, and the subnets they are in."""

from __future__ import annotations

from typing import Final
from zlib import crc32

from ompy.mca.component import NotAvailable
from ompy.net.base import Interface

LID_MAX: Final = 0xBFFF  # InfiniBand specification 1, 4.1.3, reference: above are multicast LIDs
SITE_LOCAL: Final = 0xFEC0 << 48  # InfiniBand specification 1, 4.1.1, reference: site-local prefix
_PARTS: Final = 4  # POSIX inet_ntoa: numbers in an IPv4 address
_BITS: Final = 32  # POSIX inet_ntoa: bits of it


def lid_of(rank: int, index: int, ranks: int) -> int:
    """The LID of a rank's device: counted by index, then by rank, from 1.

    Raises:
        NotAvailable: the job has more devices than there are LIDs.
    """
    lid = 1 + index * ranks + rank
    if lid > LID_MAX:
        raise NotAvailable(f"device {index} of {ranks} ranks: there are {LID_MAX} LIDs")
    return lid


def rank_of(lid: int, ranks: int) -> int:
    """Whose device a LID is."""
    return (lid - 1) % ranks


def subnet_of(interface: Interface) -> int:
    """The 64-bit prefix of an interface's network: prefix length and network below fec0::.

    Interfaces of the virtual world have no such address: the part before the slash names the
    network.
    """
    parts = interface.address.split(".")
    if len(parts) != _PARTS:
        network = crc32(interface.address.partition("/")[0].encode())
        return SITE_LOCAL | network
    address = int.from_bytes(bytes(int(part) for part in parts))
    free = _BITS - interface.prefix
    return SITE_LOCAL | interface.prefix << _BITS | address >> free << free
