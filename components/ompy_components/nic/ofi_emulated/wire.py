"""The links of emulated providers, for dissectors: requests one way, answers the other."""

from __future__ import annotations

from typing import Final

from ompy.frameworks.nic.fabric import Datatype, Op
from ompy.frameworks.wire_formats import (
    Connections,
    Payload,
    Show,
    Steps,
    Switch,
    Through,
    Unit,
    WireFormat,
)

from ompy_components.nic.ofi_emulated import headers
from ompy_components.nic.ofi_emulated.headers import ANSWER_LAYOUT, REQUEST_LAYOUT

KINDS: Final = {
    headers.SEND: "SEND",
    headers.WRITE: "WRITE",
    headers.READ: "READ",
    headers.ATOMIC: "ATOMIC",
    headers.FETCH: "FETCH",
    headers.COMPARE: "COMPARE",
    headers.BYE: "BYE",
}
_DATATYPES: Final = {int(each): each.name for each in Datatype}
_OPS: Final = {int(each): each.name for each in Op}
_REQUEST: Final[Steps] = (
    Show(
        REQUEST_LAYOUT,
        {"kind": KINDS, "datatype": _DATATYPES, "op": _OPS},
        {"flags": {"wants_answer": headers.WANTS_ANSWER}},
    ),
    Switch("fabric.request.kind", {headers.SEND: (Through("btl.ofi"),)}, (Payload(),)),
)
_ANSWER: Final[Steps] = (
    Show(ANSWER_LAYOUT, {"status": {0: "done", headers.LEAVES: "LEAVES"}}),
    Payload(),
)
_ASKED: Final = Unit(
    REQUEST_LAYOUT,
    size="fabric.request.size",
    kind="fabric.request.kind",
    bare=(headers.READ,),
    doubled=(headers.COMPARE,),
    heads={headers.WRITE: 0},
)
_ANSWERED: Final = Unit(
    ANSWER_LAYOUT, size="fabric.answer.size", kind="fabric.answer.status", heads={0: 0}
)
WIRE: Final[tuple[WireFormat, ...]] = (
    Connections("nic.ofi_emulated", (_ASKED, _REQUEST), (_ANSWERED, _ANSWER)),
)
