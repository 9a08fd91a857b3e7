"""Boards that tell the trace what their member does; a traced rank has them instead of the others.

What a blocking call combines straight out of the memory is not told of by itself, but by its
result. A nonblocking call has no result in the memory: its member combines for itself.
"""

from __future__ import annotations

from typing import Final

from ompy.data.errors import MPIError
from ompy.data.layout import Layout
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.frameworks.collectives.call_order import number_of
from ompy.frameworks.communicator import Communicator
from ompy.net.memory.process_copy import ProcessCopy

from ompy_components.coll.sm.leaving import LeavableBoard
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.nonblocking_board import NonblockingBoard
from ompy_components.coll.sm.pending_call import PendingCall
from ompy_components.coll.sm.slots import EQUAL, NUMBER, SlotMemory, bytes_of_equal_edges

LAYER: Final = "coll.sm"
UNDIVIDED: Final = 0  # number of the fragment, where a call's data are in none


def bytes_shown(total: int, ranks: int) -> int:
    """Bytes behind what a slot says: of equal blocks those of the other members, or along edges."""
    said = total - EQUAL
    if said < 0:
        return total
    return bytes_of_equal_edges(said) if said >> NUMBER else said * (ranks - 1)


class TracedBoard(LeavableBoard):
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
        self.tell("SHOW", number, bytes_shown(total, self.ranks))
        super().show(number, total)

    def say(self, number: int, word: int) -> None:
        """As without a trace; there are no bytes."""
        self.tell("SHOW", number, 0)
        super().show(number, word)

    def fill(self, number: int, total: int) -> None:
        """As without a trace; told before others can see it."""
        self.tell("RESULT", number, total)
        super().fill(number, total)

    def finish(self, number: int) -> None:
        """As without a trace."""
        self.tell("DONE", number, 0)
        super().finish(number)

    def copy_out(self, at: int, view: memoryview, start: int, size: int) -> None:
        """As without a trace.

        Slots and windows are in the same order: of the result, of member 0, and so on.
        """
        place = (at - self.header(0)) // self.area % (1 + self.ranks)
        owner = place - 1  # -1 for the result
        self.tell("READ", self.last, size, owner=owner)
        super().copy_out(at, view, start, size)


class TracedLending(Lending):
    """Tells of the blocks that it reads in the memory of others."""

    def __init__(self, board: SlotMemory, copy: ProcessCopy | None) -> None:
        self._telling = board
        self._open = False
        super().__init__(board, copy)

    def possible(self) -> bool:
        """As without a trace."""
        self._open = super().possible()
        return self._open

    def read_lent(self, rank: int, number: int, address: int, view: memoryview) -> None:
        """As without a trace; what is read to try whether it can be is not told of."""
        board = self._telling
        if isinstance(board, TracedBoard) and self._open:
            board.tell("READ", board.last, view.nbytes, owner=rank)
        super().read_lent(rank, number, address, view)


class TracedNonblockingBoard(NonblockingBoard):
    """The memory of nonblocking calls, and an event for what a member does with it."""

    def __init__(
        self, communicator: Communicator, memory: memoryview, slots: int, room: int
    ) -> None:
        super().__init__(communicator, memory, slots, room)
        self._told = communicator
        self._first = self.slot(0, 0)
        self._all_slots = self.slot(1, 0) - self._first  # bytes of those of a member
        self._one_slot = self.slot(0, 1) - self._first
        self._numbers: dict[int, int] = {}  # by slot, of the call that the member shows there

    def tell(self, name: str, slot: int, size: int, **more: object) -> None:
        """Write an event of the call in a slot."""
        trace = self._told.context.trace
        if trace.active:
            fields = {"context": self._told.context_id, "collective": self._numbers.get(slot, 0)}
            trace.record(LAYER, name, **fields, number=UNDIVIDED, bytes=size, **more)

    def tell_read(self, at: int, size: int) -> None:
        """Write down whose slot is read."""
        owner, within = divmod(at - self._first, self._all_slots)
        self.tell("READ", within // self._one_slot, size, owner=owner)

    def show(self, call: PendingCall, total: int) -> None:
        """As without a trace; told before others can see it."""
        self._numbers[call.slot] = number_of(call.word)
        size = bytes_shown(total, self.ranks)
        shown = size <= self.room or call.has_lent() or self.offered(self.rank, call.slot, size)
        self.tell("SHOW" if shown else "NO_ROOM", call.slot, size)
        super().show(call, total)

    def finish(self, call: PendingCall) -> None:
        """As without a trace."""
        self.tell("DONE", call.slot, 0)
        super().finish(call)

    def read_lent(
        self, call: PendingCall, rank: int, address: int, target: Message, size: int
    ) -> MPIError | None:
        """As without a trace."""
        self.tell("READ", call.slot, size, owner=rank)
        return super().read_lent(call, rank, address, target, size)

    def read_bytes(self, call: PendingCall, rank: int, address: int, view: memoryview) -> None:
        """As without a trace."""
        self.tell("READ", call.slot, len(view), owner=rank)
        super().read_bytes(call, rank, address, view)

    def copy_out(self, at: int, view: memoryview, start: int, size: int) -> None:
        """As without a trace."""
        self.tell_read(at, size)
        super().copy_out(at, view, start, size)

    def combine_with(
        self, at: int, operation: Operation, layout: Layout, view: memoryview, start: int, size: int
    ) -> None:
        """As without a trace."""
        self.tell_read(at, size)
        super().combine_with(at, operation, layout, view, start, size)

    def bytes_of(self, at: int, size: int) -> memoryview:
        """As without a trace; a member writes its own data so, and reads those of others."""
        if (at - self._first) // self._all_slots != self.rank:
            self.tell_read(at, size)
        return super().bytes_of(at, size)
