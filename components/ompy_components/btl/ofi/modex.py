"""What a rank tells its peers about its ofi modules: a line of text for each, in order.

    version provider mode window name address prefix port

`name` is the endpoint's, in hexadecimal digits; `address` that of the network interface behind it,
or `-` where there is none; `port` that of a listener there, or 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

KEY: Final = "btl.ofi"
VERSION: Final = 3  # arbitrary: counts changes of what goes over the wire
_NO_ADDRESS: Final = "-"


class PeerRecord(NamedTuple):
    """A module as its peers see it.

    Attributes:
        provider: both ends must have the same.
        mode: as well.
        window: fragments that it has buffers for.
        name: of the endpoint, for address vectors.
        address: of the interface behind it; empty where there is none.
        prefix: bits of the network part of the address.
        port: where a listener at the address shows that it can be reached; 0 where nobody asks.
    """

    provider: str
    mode: int
    window: int
    name: bytes
    address: str
    prefix: int = 0
    port: int = 0


def pack(records: Iterable[PeerRecord]) -> bytes:
    """The records as they are published."""
    return "\n".join(_line(record) for record in records).encode()


def _line(record: PeerRecord) -> str:
    words = (
        str(VERSION),
        record.provider,
        str(record.mode),
        str(record.window),
        record.name.hex(),
        record.address or _NO_ADDRESS,
        str(record.prefix),
        str(record.port),
    )
    return " ".join(words)


def unpack(blob: bytes) -> list[PeerRecord]:
    """The records of a peer; none if it has none, or those of another version."""
    lines = [line.split(" ") for line in blob.decode().splitlines()]
    return [_record(words) for words in lines if words[0] == str(VERSION)]


def _record(words: list[str]) -> PeerRecord:
    _, provider, mode, window, name, address, prefix, port = words
    where = "" if address == _NO_ADDRESS else address
    numbers = int(prefix), int(port)
    return PeerRecord(provider, int(mode), int(window), bytes.fromhex(name), where, *numbers)
