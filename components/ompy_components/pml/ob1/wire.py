"""ob1's fragments, for dissectors: which header is under which tag."""

from __future__ import annotations

from typing import Final

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.wire_formats import (
    Fragments,
    Payload,
    Repeat,
    Show,
    Steps,
    Switch,
    WireFormat,
)

from ompy_components.pml.ob1 import headers
from ompy_components.pml.ob1.departures import abandoning, leaving
from ompy_components.pml.ob1.headers import NAMES

FLAGS: Final = {
    "ack": headers.FLAG_ACK,
    "bare": headers.FLAG_BARE,
    "pin": headers.FLAG_PIN,
    "contig": headers.FLAG_CONTIG,
    "nordma": headers.FLAG_NORDMA,
    "signal": headers.FLAG_SIGNAL,
    "waits": headers.FLAG_WAITS,
}


def shown(layout: HeaderLayout, flags: dict[str, int] | None = None) -> Show:
    """One of ob1's headers, with its type and flags by name."""
    return Show(layout, {"type": NAMES}, {"flags": flags or FLAGS})


_WHAT: Final = {0: "LEAVE", abandoning.ABANDON: "ABANDON"}
_LEAVE: Final[Steps] = (
    Show(leaving.LEAVE_LAYOUT, {"type": NAMES, "what": _WHAT}),
    Repeat((Show(leaving.LEAVE_RECORD_LAYOUT),)),
)
_ABANDON: Final[Steps] = (Show(abandoning.ABANDON_LAYOUT, {"type": NAMES, "what": _WHAT}),)

FIN: Final[Steps] = (shown(headers.FIN_LAYOUT),)
WIRE: Final[tuple[WireFormat, ...]] = (
    Fragments(
        "pml.ob1",
        {
            headers.MATCH: (shown(headers.MATCH_LAYOUT), Payload()),
            headers.RNDV: (shown(headers.RNDV_LAYOUT), Payload()),
            headers.RGET: (shown(headers.RGET_LAYOUT), Payload()),
            headers.ACK: (shown(headers.ACK_LAYOUT), Payload()),
            headers.FRAG: (shown(headers.FRAG_LAYOUT), Payload()),
            headers.PUT: (shown(headers.PUT_LAYOUT), Payload()),
            headers.FIN: FIN,
            headers.CREDIT: (shown(headers.CREDIT_LAYOUT, {"ask": headers.FLAG_ASK}),),
            headers.LEAVE: (Switch("@1", {abandoning.ABANDON: _ABANDON}, _LEAVE),),
        },
    ),
)
