"""Operands of reductions: where their bytes are, and how many of them are combined at a time."""

from __future__ import annotations

from typing import Final

from ompy.compiled import ccall, cclass
from ompy.data.convertor import scratch_memory
from ompy.data.errors import ERR_TRUNCATE, MPIError
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import lent_copy

from ompy_components.coll.sm.board import Board

# bytes combined at a time; arbitrary: result and operand stay in the nearest cache of any processor
BLOCK: Final = 8192
# the same where each block costs a call of Python. measured: 1 MiB, 2 ranks, a user's function
CALLED_BLOCK: Final = 1 << 18
# bytes that are read in place at a time: they stay in the second cache until they are combined.
# measured: of 1 MiB between 2 ranks, pieces of a quarter of it take a fifth longer
PIECE: Final = 1 << 18
# elements; arbitrary: a multiple of them is whole cache lines of 64 bytes, whatever an element is
UNIT: Final = 64


@cclass
class Operands:
    """What a member gives to a large reduction, and where its result goes.

    Attributes:
        data: memory with this member's packed data.
        start: where in it they begin.
        size: their bytes.
        room: memory for the result, which may be that of the data; None for who gets none.
        to: where in it the result begins.
        layout: of an element.
        operation: that combines.
    """

    data: memoryview
    layout: Layout
    operation: Operation
    room: memoryview | None
    size: int
    start: int
    to: int
    __slots__ = tuple(__annotations__)


@ccall
def operands(
    data: memoryview,
    start: int,
    size: int,
    room: memoryview | None,
    to: int,
    layout: Layout,
    operation: Operation,
) -> Operands:
    """All of them."""
    made: Operands = Operands.__new__(Operands)
    made.data, made.start, made.size = data, start, size
    made.room, made.to = room, to
    made.layout, made.operation = layout, operation
    return made


@ccall
def share_of(board: Board, size: int, layout: Layout) -> int:
    """Bytes of a window that each member combines: whole elements, and cache lines of its own."""
    unit: int = layout.size * UNIT
    return -(-size // (board.ranks * unit)) * unit


@ccall
def block_of(layout: Layout, operation: Operation) -> int:
    """Bytes of a share that are combined at a time: whole elements."""
    unit: int = layout.size * UNIT
    most: int = BLOCK if layout.format in operation.loops else CALLED_BLOCK
    return max(most // unit, 1) * unit


@ccall
def lent_piece(layout: Layout) -> int:
    """Bytes that are read in place before they are combined: whole elements."""
    return max(PIECE // layout.size, 1) * layout.size


@ccall
def insist_on_size(board: Board, number: int, size: int) -> None:
    """See that the fragment that all have shown is of messages of so many bytes.

    Raises:
        MPIError: ERR_TRUNCATE, the members have different amounts of data.
    """
    if not board.agree(number, size):
        board.last = number
        board.finish(number)
        raise disagreement()


@ccall
def packed(message: Message) -> tuple[memoryview, int]:
    """Memory with the message's packed bytes, to be read only, and where they begin."""
    start = message.place()
    if start >= 0:
        return message.memory, start
    return lent_copy(message), 0


@ccall
def room_of(message: Message) -> tuple[memoryview, int]:
    """Memory for the packed bytes of a message, and where they begin."""
    start = message.place()
    if start >= 0:
        return message.memory, start
    return scratch_memory(message.size), 0


@ccall
def settle(message: Message, room: memoryview) -> None:
    """Bring the bytes to where they are wanted."""
    if message.place() < 0:
        message.store(room)


@ccall
def disagreement() -> MPIError:
    """The error of members whose data are of other sizes."""
    return MPIError(ERR_TRUNCATE, "the members give different amounts of data to one reduction")
