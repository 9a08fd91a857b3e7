"""hca's packets, for dissectors. What a SEND brings is openib's."""

from __future__ import annotations

from typing import Final

from ompy.frameworks.wire_formats import (
    Packets,
    Payload,
    Show,
    Steps,
    Switch,
    Through,
    WireFormat,
)
from ompy.net.seals.datagram_seal import SEAL_LAYOUT

from ompy_components.nic.hca import headers

OPCODES: Final = {
    headers.SEND_FIRST: "SEND_FIRST",
    headers.SEND_MIDDLE: "SEND_MIDDLE",
    headers.SEND_LAST: "SEND_LAST",
    headers.SEND_ONLY: "SEND_ONLY",
    headers.WRITE_FIRST: "WRITE_FIRST",
    headers.WRITE_MIDDLE: "WRITE_MIDDLE",
    headers.WRITE_LAST: "WRITE_LAST",
    headers.WRITE_ONLY: "WRITE_ONLY",
    headers.READ_REQUEST: "READ_REQUEST",
    headers.READ_RESPONSE_FIRST: "READ_RESPONSE_FIRST",
    headers.READ_RESPONSE_MIDDLE: "READ_RESPONSE_MIDDLE",
    headers.READ_RESPONSE_LAST: "READ_RESPONSE_LAST",
    headers.READ_RESPONSE_ONLY: "READ_RESPONSE_ONLY",
    headers.ACKNOWLEDGE: "ACKNOWLEDGE",
    headers.ATOMIC_ACKNOWLEDGE: "ATOMIC_ACKNOWLEDGE",
    headers.COMPARE_SWAP: "COMPARE_SWAP",
    headers.FETCH_ADD: "FETCH_ADD",
    headers.SILENT: "SILENT",
    headers.NOP: "NOP",
}
assert OPCODES.keys() == headers.OPCODES
_ANSWER: Final = {
    "answer": {
        "kind": headers.KIND_MASK << headers.SEQUENCE_BITS,
        "value": headers.VALUE_MASK << headers.SEQUENCE_BITS,
        "message": headers.SPACE - 1,
    }
}
_EXTENSIONS: Final = {
    headers.RETH.size: Show(headers.RETH_LAYOUT),
    headers.ATOMIC_ETH.size: Show(headers.ATOMIC_ETH_LAYOUT),
    headers.AETH.size: Show(headers.AETH_LAYOUT, bits=_ANSWER),
    headers.ATOMIC_ACK.size: Show(headers.ATOMIC_ACK_LAYOUT, bits=_ANSWER),
}


def _behind(opcode: int) -> Steps:
    """What stands behind the base header."""
    extension = _EXTENSIONS.get(headers.header_size(opcode) - headers.BEGIN)
    brings = opcode in (headers.SEND_FIRST, headers.SEND_ONLY)
    rest: Steps = (Through("btl.openib"),) if brings else (Payload(),)
    return (extension, *rest) if extension is not None else rest


PACKET: Final[Steps] = (
    Show(SEAL_LAYOUT),
    Show(headers.BASE_LAYOUT, {"opcode": OPCODES}, {"flags": {"asks": headers.ASKS}}),
    Switch("hca.base.opcode", {opcode: _behind(opcode) for opcode in OPCODES}, (Payload(),)),
)
WIRE: Final[tuple[WireFormat, ...]] = (Packets("nic.hca", PACKET),)
