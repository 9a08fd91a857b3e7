"""The operations on a board, fragment by fragment.

Little data is combined by who shows it last: the others have only to read the result, and nobody
has to be given a core once more. Much is shared out: every member combines a part of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.convertor import scratch_memory
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import packed_copy

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lent_reductions import DIRECT_MOST, NOBODY, LentReductions
from ompy_components.coll.sm.operands import (
    block_of,
    disagreement,
    insist_on_size,
    operands,
    packed,
    room_of,
    settle,
    share_of,
)

if TYPE_CHECKING:
    from ompy.data.layout import Layout

# bytes of a message, said when members disagree; arbitrary: more than any message has
WRONG: Final = (1 << 62) - 1
# numbers in C. Of more members the last one makes a small result for all: it is behind one more
# transfer of a cache line
_DIRECT_MOST: Final = DIRECT_MOST
_NOBODY: Final = NOBODY


@cclass
class Operations:
    """What one member does in each operation; all members call the same in the same order.

    Attributes:
        board: what they share.
    """

    _fragment: int
    _lent: LentReductions | None
    _window: int
    board: Board
    __slots__ = tuple(__annotations__)

    def __init__(
        self, board: Board, fragment: int, window: int, lent: LentReductions | None
    ) -> None:
        """Begin with a board where nothing was shown.

        Args:
            board: what the members share.
            fragment: bytes that are shown at a time.
            window: bytes of a large reduction that are worked on at a time.
            lent: for large reductions in place; None to have them in windows only.
        """
        self.board = board
        self._lent = lent
        self._fragment = fragment
        self._window = min(window, board.area)

    @ccall
    def barrier(self) -> None:
        """All show an empty fragment."""
        board: Board = self.board
        number: int = board.next_fragment()
        board.show(number, 0)
        if board.ranks <= _DIRECT_MOST:
            board.meet(number)
            board.finish(number)
            return
        if not board.join(number):
            board.wait_for_result(number)
        if not board.has_result(number):
            board.join(number)
            board.fill(number, 0)
            board.wake()
        else:
            board.check_result(number)
        board.finish(number)

    @ccall
    def compare(self, word: U64) -> bool:
        """Whether all members say the same: an empty fragment's size is what they say."""
        board: Board = self.board
        number: int = board.next_fragment()
        board.say(number, word)
        if not board.join(number):
            board.wait_for_result(number)
        if not board.has_result(number):
            board.join(number)
            board.fill(number, board.agree(number, word))
            board.wake()
        else:
            board.check_result(number)
        alike: bool = board.total(number) != 0
        board.finish(number)
        return alike

    @ccall
    def hear(self, word: U64) -> list[int]:
        """The word that each member says, by rank."""
        board: Board = self.board
        number: int = board.next_fragment()
        board.say(number, word)
        board.meet(number)
        found: list[int] = []
        rank: int
        for rank in range(board.ranks):
            found.append(board.total_of(rank, number))
        board.finish(number)
        return found

    # --- reductions

    @ccall
    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """All show their data; the root combines a little, all combine much."""
        given: Message | None = send if send is not None else receive
        assert given is not None, "every member has data"
        operation.check_layout(given.layout)
        start: int
        data, start = packed(given)
        size: int = given.count * given.layout.size
        if self.board.rank != root:
            self._give(data, start, size, root, given.layout, operation)
            return
        assert receive is not None, "the root has room"
        to: int
        room, to = room_of(receive)
        if size > self._fragment:
            self._reduce_much(data, start, room, to, size, root, given.layout, operation)
        else:
            self._collect(data, start, room, to, size, given.layout, operation)
        settle(receive, room)

    @ccall
    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """All show their data; the last one combines a little, all combine much."""
        given: Message = send if send is not None else receive
        layout = given.layout
        operation.check_layout(layout)
        size: int = given.count * layout.size
        start: int = given.place()
        to: int = receive.place()
        data, room = given.memory, receive.memory
        if start < 0:
            data, start = packed_copy(given), 0
        if to < 0:
            room = scratch_memory(receive.size)
        if size > self._fragment:
            self._reduce_much(data, start, room, max(to, 0), size, _NOBODY, layout, operation)
        elif self.board.ranks <= _DIRECT_MOST:
            self._collect(data, start, room, max(to, 0), size, layout, operation)
        else:
            self.board.show_whole(data, start, size)
            if self.board.join(self.board.last):
                self._make(room, max(to, 0), size, layout, operation)
            self._take(room, max(to, 0), size, layout, operation)
        if to < 0:
            receive.store(room)

    @cfunc
    def _give(
        self,
        data: memoryview,
        start: int,
        size: int,
        root: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """Take part in a reduction whose result is another's."""
        board: Board = self.board
        if size > self._fragment:
            self._reduce_much(data, start, None, 0, size, root, layout, operation)
            return
        board.show_whole(data, start, size)
        if board.join(board.last):
            board.wake()
        board.finish(board.last)

    @cfunc
    def _collect(
        self,
        data: memoryview,
        start: int,
        room: memoryview,
        to: int,
        size: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """Show a small message, wait for the others', and combine them."""
        self.board.show_whole(data, start, size)
        self.board.wait_for_all(self.board.last)
        fits: bool = self._combine(room, to, size, layout, operation)
        self.board.finish(self.board.last)
        if not fits:
            raise disagreement()

    @cfunc
    def _make(
        self, room: memoryview, to: int, size: int, layout: Layout, operation: Operation
    ) -> None:
        """Make the result of a small message for all."""
        board: Board = self.board
        number: int = board.last
        if board.has_result(number):
            return
        fits: bool = self._combine(room, to, size, layout, operation)
        if fits and size:
            board.copy_in(board.result(number), room, to, size)
        board.fill(number, size if fits else WRONG)
        board.wake()

    @cfunc
    def _take(
        self, room: memoryview, to: int, size: int, layout: Layout, operation: Operation
    ) -> None:
        """Wait for the result of a small message, and read it."""
        board: Board = self.board
        number: int = board.last
        if not board.has_result(number):
            board.wait_for_result(number)
            if not board.has_result(number):
                self._make(room, to, size, layout, operation)
        board.check_result(number)
        fits: bool = board.total(number) == size
        if fits and size:
            board.copy_out(board.result(number), room, to, size)
        board.finish(number)
        if not fits:
            raise disagreement()

    @cfunc
    def _combine(
        self, room: memoryview, to: int, size: int, layout: Layout, operation: Operation
    ) -> bool:
        """All members' data, in rank order, into `room`; false if they are of other sizes."""
        board: Board = self.board
        number: int = board.last
        if not board.agree(number, size):
            return False
        if size:
            rank: int = board.ranks - 1
            board.copy_out(board.slot(rank, number), room, to, size)
            while rank:
                rank -= 1
                slot: int = board.slot(rank, number)
                operation.combine(layout, board.memory, slot, room, to, size)
        return True

    @cfunc
    def _reduce_much(
        self,
        data: memoryview,
        start: int,
        room: memoryview | None,
        to: int,
        size: int,
        root: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """Out of the members' memory if they can lend it, else in windows."""
        lent: LentReductions | None = self._lent
        if lent is None or not lent.reduce_lent(
            operands(data, start, size, room, to, layout, operation), root
        ):
            self._share_out(data, start, room, to, size, layout, operation)

    @cfunc
    def _share_out(
        self,
        data: memoryview,
        start: int,
        room: memoryview | None,
        to: int,
        size: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """All show a window of their data, each combines a part of it, all read the result.

        A window takes all slots, and two numbers: for what was shown, and for what was combined.
        Nobody writes into his slots before all have combined, nor a part of the next result
        before all have shown the next window, and so have read this one.
        """
        board: Board = self.board
        before: int = board.last
        window: int = max(self._window // layout.size, 1) * layout.size
        number: int = before
        done: int = 0
        board.wait_until_done(before)
        while done < size:
            part: int = min(window, size - done)
            board.copy_in(board.all_slots(board.rank), data, start + done, part)
            number += 1
            board.last = number
            board.show(number, size)
            board.wait_for_all(number)
            insist_on_size(board, number, size)
            self._combine_part(part, layout, operation)
            number += 1
            board.last = number
            board.show(number, size)
            board.wait_for_all(number)
            if room is not None:
                board.copy_out(board.all_results(), room, to + done, part)
            done += part
        board.leave_windows(number, before)

    @cfunc
    def _combine_part(self, size: int, layout: Layout, operation: Operation) -> None:
        """This member's part of a window: whole elements, and cache lines of its own."""
        board: Board = self.board
        share: int = share_of(board, size, layout)
        at: int = board.rank * share
        end: int = min(at + share, size)
        block: int = block_of(layout, operation)
        while at < end:
            part: int = min(block, end - at)
            rank: int = board.ranks - 1
            result: int = board.all_results() + at
            board.move(result, board.all_slots(rank) + at, part)
            while rank:
                rank -= 1
                slot: int = board.all_slots(rank) + at
                operation.combine(layout, board.memory, slot, board.memory, result, part)
            at += part
