"""tcp's connections, for dissectors: frames, and what is in each kind."""

from __future__ import annotations

from typing import Final

from ompy.frameworks.wire_formats import (
    Connections,
    Payload,
    Show,
    Steps,
    Switch,
    Tagged,
    Unit,
    WireFormat,
)

from ompy_components.btl.tcp import framing
from ompy_components.btl.tcp.framing import FRAME_LAYOUT, REMOTE_LAYOUT, REMOTE_SIZE

_REMOTE: Final = (framing.PUT, framing.GET, framing.GOT, framing.DONE)
KINDS: Final = {
    framing.DATA: "DATA",
    framing.BYE: "BYE",
    framing.PUT: "PUT",
    framing.GET: "GET",
    framing.GOT: "GOT",
    framing.DONE: "DONE",
    framing.ACK: "ACK",
}
_STEPS: Final[Steps] = (
    Show(
        FRAME_LAYOUT,
        {"kind": KINDS},
        {"reserved": {"asks": framing.ASKS, "taken": framing.COUNT_MAX}},
    ),
    Switch(
        "tcp.frame.kind",
        {
            framing.DATA: (Tagged("tcp.frame.tag"),),
            **dict.fromkeys(_REMOTE, (Show(REMOTE_LAYOUT), Payload())),
        },
        (Payload(),),
    ),
)
_UNIT: Final = Unit(
    FRAME_LAYOUT,
    size="tcp.frame.size",
    kind="tcp.frame.kind",
    bare=(framing.ACK,),
    heads=dict.fromkeys(_REMOTE, REMOTE_SIZE),
)
WIRE: Final[tuple[WireFormat, ...]] = (Connections("btl.tcp", (_UNIT, _STEPS), (_UNIT, _STEPS)),)
