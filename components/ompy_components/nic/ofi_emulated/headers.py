"""What goes over a link: requests one way, answers the other, each followed by its bytes.

    request   kind u8, flags u8, datatype u8, op u8, endpoint u32, context u16, reserved 6,
              number u64, address u64, key u64, size u64
    answer    status u16, reserved 6, number u64, size u64

Little-endian. `endpoint` is the target's, `context` the index of the sender's; `size` counts the
bytes that follow, of a READ those that are asked for. An atomic is followed by its operand, a
compare by the operand and the comparand; words lie as they do in memory. The status of an answer is
0, an error number, or LEAVES: who is asked closes the connection, which is no error.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.nic.fabric import Datatype, Op

REQUEST_LAYOUT: Final = HeaderLayout(
    "fabric.request",
    "kind u8, flags u8, datatype u8, op u8, endpoint u32, context u16, pad 6, number u64, "
    "address u64, key u64, size u64",
)
ANSWER_LAYOUT: Final = HeaderLayout("fabric.answer", "status u16, pad 6, number u64, size u64")
REQUEST: Final = REQUEST_LAYOUT.struct
ANSWER: Final = ANSWER_LAYOUT.struct
assert REQUEST.size == 48
assert ANSWER.size == 24

# kinds of requests; arbitrary
SEND: Final = 1
WRITE: Final = 2
READ: Final = 3
ATOMIC: Final = 4
FETCH: Final = 5
COMPARE: Final = 6
BYE: Final = 7  # the asker closes the connection: no error
ATOMICS: Final = frozenset({ATOMIC, FETCH, COMPARE})
ANSWERED: Final = frozenset({READ, FETCH, COMPARE})  # their answer brings bytes

LEAVES: Final = 0xFFFF  # a status; arbitrary: no error number

WANTS_ANSWER: Final = 1  # flag: say when it is done, not only when it is refused

# `FabricInfo.max_message`; arbitrary: beyond what anybody sends at once
SIZE_MAX: Final = 1 << 40
WIDTHS: Final = {  # bytes
    Datatype.INT32: 4,
    Datatype.UINT32: 4,
    Datatype.INT64: 8,
    Datatype.UINT64: 8,
}


class BadFrame(Exception):
    """Bytes that no peer of ours writes."""


class Request(NamedTuple):
    """One request; the fields are described above."""

    kind: int
    flags: int
    datatype: int
    op: int
    endpoint: int
    context: int
    number: int
    address: int
    key: int
    size: int

    @property
    def follows(self) -> int:
        """Bytes behind the header."""
        if self.kind == READ:
            return 0
        return 2 * self.size if self.kind == COMPARE else self.size


class Answer(NamedTuple):
    """One answer; the fields are described above."""

    status: int
    number: int
    size: int


def parse_request(data: memoryview) -> Request:
    """A request.

    Raises:
        BadFrame: it is none.
    """
    found = Request(*REQUEST.unpack(data))
    if not SEND <= found.kind <= BYE or found.flags > WANTS_ANSWER or found.size > SIZE_MAX:
        raise BadFrame(f"a request of kind {found.kind} with {found.size} bytes")
    if found.kind in ATOMICS:
        try:
            width, op = WIDTHS[Datatype(found.datatype)], Op(found.op)
        except (ValueError, KeyError):
            raise BadFrame(f"no atomic {found.op} of datatype {found.datatype}") from None
        if found.size != width or (op is Op.CSWAP) is not (found.kind == COMPARE):
            raise BadFrame(f"an atomic {op.name} of {found.size} bytes")
    return found


def parse_answer(data: memoryview) -> Answer:
    """An answer.

    Raises:
        BadFrame: it is none.
    """
    found = Answer(*ANSWER.unpack(data))
    if found.size > SIZE_MAX or (found.status and found.size):
        raise BadFrame(f"an answer with status {found.status} and {found.size} bytes")
    return found
