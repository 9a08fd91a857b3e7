"""Nonblocking reductions on a board: from slots, or from where the members' data are.

Each member shows its data, and combines what it needs, in rank order. Data that have no room in a
slot are lent, and their readers combine them piece by piece. All members have to take the same way:
they wait until all have shown, and if one has not lent its data, the next module combines them. An
allreduce of more than two members is the next module's, too: each would read all.
"""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import U64, ccall, cclass, cfunc, recycled
from ompy.data.convertor import scratch_memory
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.message import Message, message_of
from ompy.data.operation import Operation
from ompy.data.packed import lent_copy, to_lend
from ompy.frameworks.communicator import Communicator
from ompy.net.base import LinkError

from ompy_components.coll.sm.lent_reductions import DIRECT_MOST
from ompy_components.coll.sm.nonblocking_board import NonblockingBoard
from ompy_components.coll.sm.nonblocking_calls import (
    ALLREDUCE,
    EXSCAN,
    REDUCE,
    REDUCE_SCATTER,
    SCAN,
    NonblockingCall,
)
from ompy_components.coll.sm.operands import disagreement, lent_piece, room_of, settle

UNREAD: Final = 2  # in place of the address of a root's data; arbitrary: no address, nor WITHDRAWN
_ALLREDUCE: Final = ALLREDUCE  # numbers in C
_EXSCAN: Final = EXSCAN
_REDUCE: Final = REDUCE
_REDUCE_SCATTER: Final = REDUCE_SCATTER
_SCAN: Final = SCAN


@recycled
@cclass
class ReductionCall(NonblockingCall):
    """One call of one member."""

    _given: Message | None
    _operation: Operation | None
    __slots__ = tuple(__annotations__)

    @ccall
    def prepare(
        self,
        communicator: Communicator,
        operation: str,
        arguments: tuple[Any, ...],
        tag: int,
        word: U64,
    ) -> None:
        """Say what is called; the arguments are as of the blocking call."""
        NonblockingCall.prepare(self, communicator, operation, arguments, tag, word)
        self._find_operand()

    @cfunc
    def _find_operand(self) -> None:
        """This member's data, and what combines them."""
        send: Message | None = self._arguments[0]
        given: Message | None = send if send is not None else self._arguments[1]
        assert given is not None, "every member has data"
        if self._kind == _REDUCE_SCATTER and send is None:
            counts: list[int] = self._arguments[2]
            given = message_of(given.memory, given.origin, sum(counts), given.layout)
        self._given = given
        self._operation = self._arguments[3 if self._kind == _REDUCE_SCATTER else 2]

    @ccall
    def show_own(self) -> None:
        """Show all data of this member."""
        board: NonblockingBoard = self._board
        given, operation = self._given, self._operation
        assert given is not None, "every member has data"
        assert operation is not None, "likewise an operation"
        operation.check_layout(given.layout)
        size: int = given.count * given.layout.size
        if size > board.room:
            self._show_large(size)
            return
        board.put(board.slot(self._rank, self.slot), given, size)
        board.show(self, size)
        if self._kind == _REDUCE and self._rank != self._root:
            self._end_step(None)

    @ccall
    def take_others(self) -> None:
        """Combine what is to be combined for this member, in rank order."""
        board: NonblockingBoard = self._board
        given, operation = self._given, self._operation
        assert given is not None, "every member has data"
        assert operation is not None, "likewise an operation"
        layout = given.layout
        size: int = given.count * layout.size
        rank: int
        for rank in range(self.first, self.end):
            if board.total(rank, self.slot) != size:
                raise disagreement()
        large: bool = size > board.room
        if large and not self._all_lend(size):
            self._give_back()
            self._pass_on()
            return
        kind: int = self._kind
        if kind == _REDUCE and self._rank != self._root:
            self._end_step(None)  # it has waited for all others because there is much
            return
        target: Message = self._arguments[1]
        before: int = 0
        if kind == _REDUCE_SCATTER:
            counts: list[int] = self._arguments[2]
            before = sum(counts[: self._rank]) * layout.size
            size = counts[self._rank] * layout.size
            target = message_of(target.memory, target.origin, counts[self._rank], layout)
        top: int = board.ranks - 1
        if kind == _SCAN:
            top = self._rank
        elif kind == _EXSCAN:
            top = self._rank - 1
        if top >= 0 and size:
            room, to = room_of(target)
            if large:
                self._combine_lent(top, before, room, to, size)
            else:
                self._combine_shown(top, before, room, to, size)
            settle(target, room)
        self._end_step(None)

    @cfunc
    def _combine_shown(self, top: int, before: int, room: memoryview, to: int, size: int) -> None:
        """Bytes from `before` on of the members up to `top`, out of their slots."""
        board: NonblockingBoard = self._board
        given, operation = self._given, self._operation
        assert given is not None, "every member has data"
        assert operation is not None, "likewise an operation"
        board.copy_out(board.slot(top, self.slot) + before, room, to, size)
        while top:
            top -= 1
            slot: int = board.slot(top, self.slot) + before
            board.combine_with(slot, operation, given.layout, room, to, size)

    # --- what has no room in a slot

    @cfunc
    def _show_large(self, size: int) -> None:
        """Lend the data, if that is possible; who shows that they are not, has all pass on."""
        board: NonblockingBoard = self._board
        kind: int = self._kind
        lends: bool = board.lending.possible()
        address: U64 = 0
        if kind == _ALLREDUCE and board.ranks > DIRECT_MOST:
            board.say_lent(self.slot, 0)
            board.show(self, size)
            self._pass_on()
            return
        if kind == _REDUCE and self._rank == self._root:
            address = UNREAD if lends else 0
        elif lends:
            address = self._lend(self._data_to_lend())
        if kind == _REDUCE:
            self.readers = (self._root,)
        elif kind in (_SCAN, _EXSCAN):
            self.readers = tuple(range(self._rank + 1, board.ranks))
        self.first, self.end = 0, board.ranks
        board.say_lent(self.slot, address)
        board.show(self, size)

    @cfunc
    def _data_to_lend(self) -> memoryview:
        """This member's packed data; a copy, if its result goes where they are."""
        given: Message | None = self._given
        assert given is not None, "every member has data"
        if self._arguments[0] is not None or given.place() < 0:
            return to_lend(given)
        return lent_copy(given)

    @cfunc
    def _all_lend(self, size: int) -> bool:
        """Whether all members have lent their data, which all have shown."""
        board: NonblockingBoard = self._board
        rank: int
        for rank in range(board.ranks):  # noqa: SIM110 - a closure would not compile
            if not board.offered(rank, self.slot, size):
                return False
        return True

    @cfunc
    def _combine_lent(self, top: int, before: int, room: memoryview, to: int, size: int) -> None:
        """As `_combine_shown`, out of the members' memory.

        Raises:
            MPIError: ERR_PROC_FAILED, a member has ended.
        """
        given, operation = self._given, self._operation
        assert given is not None, "every member has data"
        assert operation is not None, "likewise an operation"
        layout = given.layout
        piece: int = lent_piece(layout) if top else size
        beside = scratch_memory(min(piece, size))
        own = self._own_data()
        done: int = 0
        while done < size:
            part: int = min(piece, size - done)
            rank: int = top
            self._fetch(rank, before + done, room[to + done : to + done + part], own)
            while rank:
                rank -= 1
                if rank == self._rank:
                    operation.combine(layout, own, before + done, room, to + done, part)
                    continue
                self._fetch(rank, before + done, beside[:part], own)
                operation.combine(layout, beside, 0, room, to + done, part)
            done += part

    @cfunc
    def _own_data(self) -> memoryview:
        """This member's packed data, as they were before there is a result."""
        given: Message | None = self._given
        kept = self._kept
        assert given is not None, "every member has data"
        return kept[0] if kept else self._data_to_lend()

    @cfunc
    def _fetch(self, rank: int, start: int, view: memoryview, own: memoryview) -> None:
        """Bytes of a member's data from `start` on."""
        if rank == self._rank:
            view[:] = own[start : start + len(view)]
            return
        board: NonblockingBoard = self._board
        address: U64 = board.lent_by(rank, self.slot)
        try:
            board.read_bytes(self, rank, address + start, view)
        except LinkError as problem:
            said = f"the data of rank {rank} cannot be read: {problem}"
            raise MPIError(ERR_PROC_FAILED, said) from None
