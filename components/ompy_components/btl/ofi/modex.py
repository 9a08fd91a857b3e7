"""What a rank tells its peers about its ofi module: a line of text.

    version provider mode window name address

`name` is the endpoint's, in hexadecimal digits; `address` that of the network interface behind it,
or `-` where there is none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

KEY: Final = "btl.ofi"
VERSION: Final = 2  # arbitrary: counts changes of what goes over the wire
_NO_ADDRESS: Final = "-"


class PeerRecord(NamedTuple):
    """A module as its peers see it.

    Attributes:
        provider: both ends must have the same.
        mode: as well.
        window: fragments that it has buffers for.
        name: of the endpoint, for address vectors.
        address: of the interface behind it; empty where there is none.
    """

    provider: str
    mode: int
    window: int
    name: bytes
    address: str


def pack(record: PeerRecord) -> bytes:
    """The record as it is published."""
    words = (
        str(VERSION),
        record.provider,
        str(record.mode),
        str(record.window),
        record.name.hex(),
        record.address or _NO_ADDRESS,
    )
    return " ".join(words).encode()


def unpack(blob: bytes) -> PeerRecord | None:
    """The record of a peer; None if it has none, or one of another version."""
    words = blob.decode().split(" ")
    if words[0] != str(VERSION):
        return None
    _, provider, mode, window, name, address = words
    where = "" if address == _NO_ADDRESS else address
    return PeerRecord(provider, int(mode), int(window), bytes.fromhex(name), where)
