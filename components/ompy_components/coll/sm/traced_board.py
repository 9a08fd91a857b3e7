"""A board that tells the trace what its member does; a traced rank has it instead of the other.

What is combined straight out of the memory is not told of by itself, but by its result.
"""

from __future__ import annotations

from typing import Final

from ompy.frameworks.collectives.call_order import number_of
from ompy.frameworks.communicator import Communicator
from ompy.net.memory.process_copy import ProcessCopy

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lending import Lending

LAYER: Final = "coll.sm"


class TracedBoard(Board):
    """The same memory, and an event for what a member does with it."""

    def __init__(
        self, communicator: Communicator, memory: memoryview, depth: int, fragment: int
    ) -> None:
        super().__init__(communicator, memory, depth, fragment)
        self._told = communicator

    def tell(self, name: str, number: int, size: int, **more: object) -> None:
        """Write an event."""
        trace = self._told.context.trace
        if trace.active:
            call = number_of(self._told.order.word)
            fields = {"context": self._told.context_id, "collective": call}
            trace.record(LAYER, name, **fields, number=number, bytes=size, **more)

    def show(self, number: int, total: int) -> None:
        """As without a trace; told before others can see it."""
        self.tell("SHOW", number, total)
        super().show(number, total)

    def fill(self, number: int, total: int) -> None:
        """As without a trace; told before others can see it."""
        self.tell("RESULT", number, total)
        super().fill(number, total)

    def finish(self, number: int) -> None:
        """As without a trace."""
        self.tell("DONE", number, 0)
        super().finish(number)

    def copy_out(self, at: int, view: memoryview, start: int, size: int) -> None:
        """As without a trace."""
        owner = (at - self.all_results()) // self.area - 1
        self.tell("READ", self.last, size, owner=owner)
        super().copy_out(at, view, start, size)


class TracedLending(Lending):
    """Tells of the blocks that it reads in the memory of others."""

    def __init__(self, board: Board, copy: ProcessCopy | None) -> None:
        self._telling = board
        self._open = False
        super().__init__(board, copy)

    def possible(self) -> bool:
        """As without a trace."""
        self._open = super().possible()
        return self._open

    def read_lent(self, rank: int, address: int, view: memoryview) -> None:
        """As without a trace; what is read to try whether it can be is not told of."""
        board = self._telling
        if isinstance(board, TracedBoard) and self._open:
            board.tell("READ", board.last, view.nbytes, owner=rank)
        super().read_lent(rank, address, view)
