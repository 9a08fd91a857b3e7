"""Reductions between two groups: what the other group gives, and its combination."""

from __future__ import annotations

from ompy import raw
from ompy.compiled import ccall, cclass
from ompy.data.convertor import scratch_memory
from ompy.data.errors import ERR_OTHER, MPIError
from ompy.data.layout import BYTES, Layout
from ompy.data.message import Blocks, Message, equal_blocks
from ompy.data.operation import Operation
from ompy.data.request import Deferred, Request
from ompy.frameworks.coll import PreparedCall

NOTHING = memoryview(bytearray())


@cclass
class Operands:
    """Room for what each of the other group gives, of which a part is combined.

    Attributes:
        blocks: the room, which all of them have to fill.
    """

    _alone: bool
    _heard: memoryview
    _operation: Operation
    _receive: Message
    _size: int
    _start: int
    blocks: Blocks
    __slots__ = tuple(__annotations__)

    @ccall
    def set_up(
        self, receive: Message, operation: Operation, others: int, size: int, start: int
    ) -> None:
        """Make the room; in place of `__init__`, which is a call in Python.

        Args:
            receive: room for the part.
            operation: what combines them.
            others: how many there are.
            size: bytes of what each gives.
            start: where the part begins in it.

        Raises:
            MPIError: ERR_OP, the operation is not defined for the type.
        """
        operation.check_layout(receive.layout)
        self._operation = operation
        self._receive = receive
        self._size = size
        self._start = start
        self._alone = others == 1 and size == receive.size  # nothing is combined
        if self._alone:
            self._heard = NOTHING
            self.blocks = one_block(receive)
        else:
            self._heard = scratch_memory(size * others)
            self.blocks = equal_blocks(self._heard, 0, size, BYTES, others)
        self.blocks.must_fill = True

    @ccall
    def combine_all(self) -> None:
        """Combine what has come into the room, in the order of ranks."""
        if not self._alone:
            combine_in_order(self._heard, self._size, self._start, self._receive, self._operation)


@ccall
def operands_of(
    receive: Message, operation: Operation, others: int, size: int, start: int
) -> Operands:
    """Operands; the arguments are those of `Operands.set_up`."""
    made: Operands = Operands.__new__(Operands)
    made.set_up(receive, operation, others, size, start)
    return made


@ccall
def combine_in_order(
    heard: memoryview, size: int, start: int, receive: Message, operation: Operation
) -> None:
    """Combine a part of what members have given, in the order of their ranks.

    Args:
        heard: what they gave, side by side; it is changed.
        size: bytes of each.
        start: where the part begins.
        receive: room for it.
        operation: what combines them.
    """
    layout: Layout = receive.layout
    part: int = receive.count * layout.size
    if not part:
        return
    last: int = raw.size(heard) - size + start
    left: int = last - size
    while left >= 0:  # `left op right` is stored in the right one
        operation.combine(layout, heard, left, heard, last, part)
        left -= size
    to: int = receive.place()
    if to >= 0:
        raw.copy(receive.memory, to, heard, last, part)
    else:
        receive.store(heard[last : last + part])


@cclass
class ReducingCall(Deferred):
    """A nonblocking reduction: when the operands are there, they are combined.

    Attributes:
        problem: what a user's function raised, or None.
    """

    _coming: Request
    _operands: Operands
    problem: Exception | None
    __slots__ = tuple(__annotations__)

    def __init__(self, operands: Operands, coming: Request) -> None:
        """Combine some operands when a request for them is complete."""
        Deferred.__init__(self)
        self.problem = None
        self._operands = operands
        self._coming = self.waits_on = coming
        coming.notify(self._combine)

    def _combine(self) -> None:
        coming = self._coming
        self.waits_on = None
        if coming.error:
            self.fail(coming.error, coming.detail)
            return
        try:
            self._operands.combine_all()
        except MPIError as problem:
            self.fail(problem.code, problem.detail)
        except Exception as problem:  # of a user's function; the API ends the job
            self.problem = problem
            self.fail(ERR_OTHER, f"{type(problem).__name__} in a reduction")
        else:
            self.finish()


@cclass
class PreparedReduction(PreparedCall):
    """A persistent reduction: each start is one more of what brings its operands."""

    _coming: PreparedCall
    _operands: Operands
    __slots__ = tuple(__annotations__)

    def __init__(self, operands: Operands, coming: PreparedCall) -> None:
        """Not started yet."""
        self._operands = operands
        self._coming = coming

    @ccall
    def start(self) -> Request | None:
        """Begin once more; None if it has to go as messages, for all members."""
        coming = self._coming.start()
        return None if coming is None else ReducingCall(self._operands, coming)


@ccall
def one_block(message: Message) -> Blocks:
    """A message as the only block."""
    return equal_blocks(message.memory, message.origin, message.count, message.layout, 1)
