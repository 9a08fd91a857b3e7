"""usnic's packets, for dissectors."""

from __future__ import annotations

from typing import Final

from ompy.frameworks.wire_formats import (
    Packets,
    Payload,
    Show,
    Steps,
    Switch,
    Tagged,
    WireFormat,
    Within,
)
from ompy.net.seals.datagram_seal import SEAL_LAYOUT

from ompy_components.btl.usnic import headers
from ompy_components.btl.usnic.headers import CHUNK_LAYOUT, PACKET_LAYOUT
from ompy_components.btl.usnic.put import DONE_LAYOUT

TYPES: Final = {
    headers.ACK: "ACK",
    headers.FRAG: "FRAG",
    headers.CHUNK: "CHUNK",
    headers.PING: "PING",
    headers.PONG: "PONG",
    headers.OPEN: "OPEN",
}
_FRAGMENT: Final[Steps] = (
    Switch(
        "usnic.packet.tag",
        {headers.BYE: (Payload(),), headers.DONE: (Show(DONE_LAYOUT),)},
        (Tagged("usnic.packet.tag"),),
    ),
)
# a chunk of a put has bytes for memory; of others the first begins with the fragment's header
_CHUNK: Final[Steps] = (
    Switch(
        "usnic.packet.put_address",
        {0: (Switch("usnic.chunk.fragment_offset", {0: _FRAGMENT}, (Payload(),)),)},
        (Payload(),),
    ),
)
_BODY: Final[Steps] = (
    Switch(
        "usnic.packet.type",
        {headers.FRAG: _FRAGMENT, headers.CHUNK: _CHUNK},
        (Payload(),),
    ),
)
PACKET: Final[Steps] = (
    Show(SEAL_LAYOUT),
    Show(PACKET_LAYOUT, {"type": TYPES}),
    Switch("usnic.packet.type", {headers.CHUNK: (Show(CHUNK_LAYOUT),)}),
    Within("usnic.packet.length", _BODY),
)
WIRE: Final[tuple[WireFormat, ...]] = (Packets("nic.vic", PACKET),)
