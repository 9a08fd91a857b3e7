"""What every BTL may carry besides a PML's fragments, and what connections begin with."""

from __future__ import annotations

from typing import Final

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.btl import TAG_NOTICE, TAG_TRANSFER
from ompy.frameworks.btl_base.emulation import (
    DONE_PIECE,
    GET_PIECE,
    GOT_PIECE,
    PUT_PIECE,
    TRANSFER_LAYOUT,
)
from ompy.frameworks.paths.rail_notices import NOTICE_LAYOUT
from ompy.frameworks.wire_formats import Blob, Fragments, Payload, Show, Steps, WireFormat
from ompy.net.seals.handshake import (
    CHALLENGE_SIZE,
    HELLO_LAYOUT,
    PROOF_SIZE,
    VERDICT_SIZE,
    SealLevel,
)
from ompy.net.seals.records import HEAD_TAG_SIZE, LENGTH_SIZE, TAG_SIZE

PIECES: Final = {PUT_PIECE: "PUT", GET_PIECE: "GET", GOT_PIECE: "GOT", DONE_PIECE: "DONE"}
_TRANSFER: Final[Steps] = (Show(TRANSFER_LAYOUT, {"kind": PIECES}), Payload())
_NOTICE: Final[Steps] = (
    Show(NOTICE_LAYOUT),
    Blob("notice.name", "notice.head.name_length"),
    Payload(),
)
WIRE: Final[tuple[WireFormat, ...]] = (
    Fragments("btl", {TAG_TRANSFER: _TRANSFER, TAG_NOTICE: _NOTICE}),
)

LEVELS: Final = {level.value: level.name.lower() for level in SealLevel}
HELLO: Final = Show(HELLO_LAYOUT, {"seal": LEVELS})
CHALLENGE: Final = Show(HeaderLayout("handshake.challenge", "nonce b16, proof b32"))
PROOF: Final = Show(HeaderLayout("handshake.proof", "proof b32"))
VERDICT: Final = Show(
    HeaderLayout("handshake.verdict", "verdict u8, proof b32"),
    {"verdict": {1: "taken", 2: "refused", 3: "unlike seals"}},
)
RECORD_HEAD: Final = Show(HeaderLayout("record.head", f"length u32, mac b{HEAD_TAG_SIZE}"))
RECORD_TAG: Final = Show(HeaderLayout("record.tag", f"tag b{TAG_SIZE}"))
assert CHALLENGE.layout.size == CHALLENGE_SIZE
assert PROOF.layout.size == PROOF_SIZE
assert VERDICT.layout.size == VERDICT_SIZE
assert RECORD_HEAD.layout.size == LENGTH_SIZE + HEAD_TAG_SIZE
