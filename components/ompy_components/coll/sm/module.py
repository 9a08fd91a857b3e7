"""sm for one communicator: the operations, fragment by fragment.

The memory is made when the first operation is called: rank 0 has it and tells the others, who map
it. Where one of them cannot, all go on with the module of the next priority.

A result is made by who shows his fragment last: the others have only to read it, and nobody has
to be given a core once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.data.errors import ERR_TRUNCATE, MPIError
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import Room, in_place, to_send
from ompy.frameworks.coll import TAG_ALLREDUCE, TAG_BARRIER, TAG_BCAST, TAG_REDUCE, CollModule
from ompy.frameworks.coll_base.combine import Combine, combining
from ompy.frameworks.communicator import Communicator
from ompy.mca.parameter import Values

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.setup import SharedMemory, share

if TYPE_CHECKING:
    from ompy.data.convertor import Convertor

# fragments shown before the first's result; arbitrary: one is copied meanwhile. No more than the
# least of comm_num_segments
AHEAD: Final = 2
WRONG: Final = (1 << 63) - 1  # bytes of a message, said when members disagree


class SmColl(CollModule):
    """Blocking operations of one communicator; others are the next module's."""

    def __init__(self, communicator: Communicator, values: Values) -> None:
        super().__init__(communicator)
        self._fragment: int = values.fragment_size
        self._depth: int = values.comm_num_segments
        self._number = 0  # of the last fragment of the last operation
        self._shared: SharedMemory | None = None
        self._board: Board | None = None

    def _ready(self) -> Board | None:
        """The memory, made with the first operation; None where there is none."""
        if self._shared is None:
            self._shared = share(self.communicator, self._depth, self._fragment)
            if self._shared.view is not None:
                view = self._shared.view
                self._board = Board(self.communicator, view, self._depth, self._fragment)
        return self._board

    def close(self) -> None:
        """Give the memory back."""
        self._board = None
        if self._shared is not None:
            self._shared.close()

    def barrier(self) -> None:
        """All show an empty fragment."""
        board = self._ready()
        if board is None:
            self._complete(TAG_BARRIER, self._next.schedule_barrier)
            return
        self._number += 1
        number = self._number
        board.wait_for_room(number)
        board.show(number)
        if not board.all_shown(number):
            board.wait_for_result(number)
        if not board.has_result(number):
            board.fill(board.result(number), number, 0)
            board.wake()
        board.finish(number)

    def bcast(self, message: Message, root: int) -> None:
        """The root writes results; how many there are, it says in the first."""
        board = self._ready()
        if board is None:
            self._complete(TAG_BCAST, self._next.schedule_bcast, message, root)
        elif board.rank == root:
            self._send(board, message)
        else:
            self._receive(board, message)

    def _send(self, board: Board, message: Message) -> None:
        convertor = _convertor(message)
        total, size = message.size, self._fragment
        for start in range(0, max(total, 1), size):
            self._number += 1
            number = self._number
            board.wait_for_room(number)
            slot = board.result(number)
            part = min(size, total - start)
            if part:
                convertor.pack(start, board.bytes_of(slot, part))
            board.fill(slot, number, total)
            board.show(number)
            board.finish(number)
            board.wake()

    def _receive(self, board: Board, message: Message) -> None:
        convertor = _convertor(message)
        start, total = 0, 1
        while start < total:
            self._number += 1
            number = self._number
            board.wait_for_result(number)
            slot = board.result(number)
            total = board.total(slot)
            part = min(self._fragment, total - start)
            if part > 0:
                convertor.unpack(start, board.bytes_of(slot, part))
            start += self._fragment
            board.show(number)
            board.finish(number)
        if total > message.size:
            raise MPIError(
                ERR_TRUNCATE, f"a broadcast of {total} bytes came for room for {message.size}"
            )

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """All show their fragments; the root combines them."""
        mine = send if send is not None else receive
        assert mine is not None, "every member has data"
        board = self._ready() if mine.layout.size <= self._fragment else None
        if board is None:
            plan = self._next.schedule_reduce
            self._complete(TAG_REDUCE, plan, send, receive, operation, root)
            return
        combine = combining(operation, mine.layout)
        data = to_send(mine)
        room = Room(receive) if receive is not None and board.rank == root else None
        size = self._whole_elements(mine)
        for start in range(0, max(len(data), 1), size):
            self._number += 1
            number = self._number
            part = min(size, len(data) - start)
            self._show(board, number, data, start, part)
            if room is not None:
                board.wait_for_all(number)
                view = room.view[start : start + part]
                if not self._combine(board, number, view, len(data), combine):
                    raise _disagreement()
            else:
                board.wake()
            board.finish(number)
        if room is not None:
            room.settle()

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """All show their fragments, some ahead; the last of each combines it for all."""
        board = self._ready() if receive.layout.size <= self._fragment else None
        if board is None:
            plan = self._next.schedule_allreduce
            self._complete(TAG_ALLREDUCE, plan, send, receive, operation)
            return
        combine = combining(operation, receive.layout)
        data = to_send(send if send is not None else receive)
        room = Room(receive)
        total, size = len(data), self._whole_elements(receive)
        first = self._number + 1
        count = max(-(-total // size), 1)
        self._number += count
        shown = 0
        for index in range(count):
            while shown < min(count, index + AHEAD):
                start = shown * size
                self._show(board, first + shown, data, start, min(size, total - start))
                shown += 1
                if board.all_shown(first + shown - 1):
                    self._make(board, first + shown - 1, room, start, total, combine)
            self._take(board, first + index, room, index * size, total, combine)
        room.settle()

    # --- fragments

    def _whole_elements(self, message: Message) -> int:
        """Bytes of a fragment: as many elements as fit."""
        size = message.layout.size
        return self._fragment // size * size if size else self._fragment

    def _show(self, board: Board, number: int, data: memoryview, start: int, part: int) -> None:
        board.wait_for_room(number)
        slot = board.slot(board.rank, number)
        if part:
            board.copy_in(slot, data, start, part)
        board.fill(slot, number, len(data))
        board.show(number)

    def _make(
        self, board: Board, number: int, room: Room, start: int, total: int, combine: Combine
    ) -> None:
        """Make the result of a fragment for all."""
        slot = board.result(number)
        if board.has_result(number):
            return
        part = min(self._whole_elements(room.message), total - start)
        view = room.view[start : start + part]
        fits = self._combine(board, number, view, total, combine)
        if fits and part:
            board.copy_in(slot, view, 0, part)
        board.fill(slot, number, total if fits else WRONG)
        board.wake()

    def _take(
        self, board: Board, number: int, room: Room, start: int, total: int, combine: Combine
    ) -> None:
        """Wait for the result of a fragment, and read it."""
        board.wait_for_result(number)
        if not board.has_result(number):
            self._make(board, number, room, start, total, combine)
        slot = board.result(number)
        if board.total(slot) != total:
            raise _disagreement()
        part = min(self._whole_elements(room.message), total - start)
        if part:
            board.copy_out(slot, room.view, start, part)
        board.finish(number)

    def _combine(
        self, board: Board, number: int, view: memoryview, total: int, combine: Combine
    ) -> bool:
        """All members' fragments, in rank order, into `view`; false if they are of other sizes."""
        last = board.ranks - 1
        if any(board.total(board.slot(rank, number)) != total for rank in range(board.ranks)):
            return False
        size = len(view)
        if size:
            board.copy_out(board.slot(last, number), view, 0, size)
            for rank in range(last - 1, -1, -1):
                combine(board.bytes_of(board.slot(rank, number), size), view)
        return True

    @property
    def _next(self) -> CollModule:
        """What serves the operations here when there is no shared memory."""
        assert self.communicator.coll is not None, "it was selected"
        return self.communicator.coll


def _convertor(message: Message) -> Convertor:
    view = in_place(message)
    if view is None:
        return message.convertor()
    from ompy.data.convertor import ContiguousConvertor

    return ContiguousConvertor(view)


def _disagreement() -> MPIError:
    return MPIError(ERR_TRUNCATE, "the members give different amounts of data to one reduction")
