"""ofi's messages, for dissectors: what a provider carries for it."""

from __future__ import annotations

from typing import Final

from ompy.frameworks.wire_formats import Packets, Payload, Show, Switch, Tagged, WireFormat
from ompy.net.seals.datagram_seal import SEAL_LAYOUT

from ompy_components.btl.ofi.headers import HEADER_LAYOUT, HEADER_SIZE, Kind

_KIND: Final = HEADER_SIZE - 2  # the byte where the kind is; the tag is behind it

WIRE: Final[tuple[WireFormat, ...]] = (
    Packets(
        "btl.ofi",
        (
            Show(SEAL_LAYOUT),
            Show(HEADER_LAYOUT, {"kind": {int(kind): kind.name for kind in Kind}}),
            Switch(
                "ofi.header.kind", {int(Kind.FRAGMENT): (Tagged("ofi.header.tag"),)}, (Payload(),)
            ),
        ),
        sign=(_KIND, tuple(int(kind) for kind in Kind)),
    ),
)
