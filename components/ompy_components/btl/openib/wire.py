"""openib's fragments in what an adapter sends, and its HELLOs, for dissectors."""

from __future__ import annotations

from typing import Final

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.paths.path_life import Stage
from ompy.frameworks.wire_formats import (
    Blob,
    Packets,
    Payload,
    Repeat,
    Show,
    Steps,
    Switch,
    Tagged,
    WireFormat,
    Within,
)
from ompy.net.seals.datagram_seal import SEAL_LAYOUT

from ompy_components.btl.openib import headers
from ompy_components.btl.openib.connections import hello

TYPES: Final = {
    headers.CREDITS: "CREDITS",
    headers.RDMA: "RDMA",
    headers.COALESCED: "COALESCED",
    headers.CTS: "CTS",
    headers.EP_BROKEN: "EP_BROKEN",
    headers.EP_EAGER_RDMA_ERROR: "EP_EAGER_RDMA_ERROR",
    headers.BYE: "BYE",
    headers.RDMA_QUEUE: "RDMA_QUEUE",
}
_NAMED: Final = {"type": TYPES}
_TYPE: Final = Show(HeaderLayout("openib.control", "type u8"), _NAMED)
_COALESCED: Final[Steps] = (
    _TYPE,
    Repeat(
        (
            Show(headers.SUBHEADER_LAYOUT),
            Within(
                "openib.subheader.size",
                (Tagged("openib.subheader.tag"),),
                room="openib.subheader.alloc_size",
            ),
        )
    ),
)
_CONTROL: Final[Steps] = (
    Switch(
        "@0",
        {
            headers.CREDITS: (Show(headers.CREDITS_LAYOUT, _NAMED),),
            headers.RDMA: (Show(headers.RING_LAYOUT, _NAMED),),
            headers.COALESCED: _COALESCED,
            headers.EP_BROKEN: (Show(headers.BROKEN_LAYOUT, _NAMED),),
            headers.EP_EAGER_RDMA_ERROR: (Show(headers.BROKEN_LAYOUT, _NAMED),),
            headers.RDMA_QUEUE: (Show(headers.QUEUE_LAYOUT, _NAMED),),
        },
        (_TYPE, Payload()),
    ),
)
_WORD: Final = {
    "ring": headers.RING,
    "queue": 0x7FFF & ~headers.CREDITS_MASK,
    "given": headers.CREDITS_MASK,
}
FRAGMENT: Final[Steps] = (
    Show(headers.HEADER_LAYOUT, bits={"credits": _WORD}),
    Switch("openib.header.tag", {headers.CONTROL: _CONTROL}, (Tagged("openib.header.tag"),)),
)
_HELLO: Final[Steps] = (
    Show(SEAL_LAYOUT),
    Show(HeaderLayout("openib.sender", "rank u32")),
    Show(hello.HELLO_LAYOUT, {"stage": {stage.value: stage.name for stage in Stage}}),
    Blob("openib.host", "openib.hello.host_length"),
    Repeat((Show(hello.PAIR_LAYOUT),)),
)
WIRE: Final[tuple[WireFormat, ...]] = (
    Packets("btl.openib", FRAGMENT),
    Packets("btl.openib.*", _HELLO),
)
