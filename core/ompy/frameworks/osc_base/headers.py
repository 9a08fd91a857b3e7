"""The commands that members of a window send each other.

    0    kind, operation       a byte each
    2    nothing               2 bytes
    4    tag                   4 bytes: of data that follow, and of the answer
    8    displacement          8 bytes, signed
    16   number                8 bytes: of elements at the target
    24   size                  8 bytes: of the data, packed
    32   length                4 bytes: of the layout that follows
    36   nothing               4 bytes
    40   layout, then data, if they are sent along

Little-endian. All of it travels in messages of the PML, which are whole or not there.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple

from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.kernels import PREDEFINED

_FORM: Final = Struct("<BBxxIqQQI4x")
HEADER_SIZE: Final = 40  # bytes; arbitrary: what the fields above take
assert _FORM.size == HEADER_SIZE

_ANSWER: Final = Struct("<i")

COMMAND_TAG: Final = 0  # of all commands; arbitrary: the communicator is the window's own
FIRST_TAG: Final = 2  # arbitrary: above that; even ones are of data, the next odd ones of answers
TAGS: Final = 1 << 24  # arbitrary: far more than a rank has under way

# by number on the wire; the order is that of the table of predefined ones
OPERATIONS: Final = tuple(PREDEFINED)


class Kind(IntEnum):
    """What is commanded."""

    PUT = 1
    GET = 2
    ACCUMULATE = 3
    FETCH = 4
    SWAP = 5
    FLUSH = 6
    LOCK = 7
    LOCK_SHARED = 8
    UNLOCK = 9
    POST = 10
    COMPLETE = 11
    REFUSED = 12


class Command(NamedTuple):
    """One command.

    Attributes:
        kind: what is to be done.
        tag: of data that follow; the answer has the next one. 0 if there is neither.
        displacement, number: of the place at the target.
        size: bytes of data. In REFUSED: the error class.
        operation: number of one of `OPERATIONS`.
        layout: of the place, as bytes; in REFUSED the error's text.
        data: what came along: all `size` bytes, or none.
    """

    kind: Kind
    tag: int = 0
    displacement: int = 0
    number: int = 0
    size: int = 0
    operation: int = 0
    layout: bytes | memoryview = b""
    data: bytes | memoryview = b""

    def packed(self) -> bytes:
        """As bytes."""
        head = _FORM.pack(
            self.kind,
            self.operation,
            self.tag,
            self.displacement,
            self.number,
            self.size,
            len(self.layout),
        )
        return b"".join((head, self.layout, self.data))


def follows(command: Command) -> bool:
    """Whether the data come in a message of their own."""
    return bool(command.size) and not command.data and command.kind is not Kind.GET


def parsed(view: memoryview) -> Command:
    """The command that bytes are.

    Raises:
        MPIError: ERR_INTERN, they are none.
    """
    if len(view) < HEADER_SIZE:
        raise MPIError(ERR_INTERN, f"a command of {len(view)} bytes is cut")
    kind, operation, tag, displacement, number, size, length = _FORM.unpack_from(view)
    end = HEADER_SIZE + length
    if end > len(view) or operation >= len(OPERATIONS) or not 1 <= kind <= Kind.REFUSED:
        raise MPIError(ERR_INTERN, f"kind {kind}, operation {operation}: no command")
    layout, data = view[HEADER_SIZE:end], view[end:]
    if len(data) not in {0, size}:
        raise MPIError(ERR_INTERN, f"a command with {len(data)} of {size} bytes of data")
    return Command(Kind(kind), tag, displacement, number, size, operation, layout, data)


def pack_answer(code: int = 0, detail: str = "") -> bytes:
    """The answer to a command that fetches nothing: an error class, and what is wrong."""
    return _ANSWER.pack(code) + detail.encode()


def parse_answer(view: memoryview) -> tuple[int, str]:
    """Error class and text of an answer."""
    (code,) = _ANSWER.unpack_from(view)
    return code, bytes(view[_ANSWER.size :]).decode(errors="replace")
