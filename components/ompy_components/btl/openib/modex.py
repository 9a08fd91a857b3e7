"""What a rank tells its peers about its openib modules: lines of text.

    version receive_queues
    subnet lid speed host          of each module

Source: reference openmpi.md 5.1; that peers have the same `receive_queues` is a rule of 5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

KEY: Final = "btl.openib"
VERSION: Final = 1  # arbitrary: counts changes of what goes over the wire


class PortRecord(NamedTuple):
    """One port as its peers see it.

    Attributes:
        subnet: ports with the same one reach each other.
        lid: of the device.
        speed: Mbit/s, 0 when unknown.
        host: address of its interface.
    """

    subnet: int
    lid: int
    speed: int
    host: str


def pack_records(receive_queues: str, records: Sequence[PortRecord]) -> bytes:
    """The records as they are published."""
    lines = [f"{VERSION} {receive_queues}"]
    lines += [f"{one.subnet:x} {one.lid} {one.speed} {one.host}" for one in records]
    return "\n".join(lines).encode()


def unpack_records(blob: bytes, receive_queues: str) -> list[PortRecord]:
    """The records of a peer; none if it has another version or other `receive_queues`."""
    first, *lines = blob.decode().split("\n")
    if first != f"{VERSION} {receive_queues}":
        return []
    found = []
    for line in lines:
        subnet, lid, speed, host = line.split(" ", 3)
        found.append(PortRecord(int(subnet, 16), int(lid), int(speed), host))
    return found
