"""Scan, exscan and reduce_scatter on a board: reductions of which each member gets another result.

Little data is shown whole, and each member combines what it needs. Much is worked on a window at a
time: of a scan every member combines a part of the elements for all members, in place; of a
reduce_scatter a window has a piece of everybody's part, and each combines its own.

Operands are combined in rank order, from the right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy.compiled import ccall, cclass, cfunc
from ompy.data.message import Message
from ompy.data.operation import Operation

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lent_reductions import LentReductions
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


@cclass
class PartOperations:
    """What one member does in reductions whose results differ from member to member."""

    _board: Board
    _lent: LentReductions | None
    _most: int
    _window: int
    __slots__ = tuple(__annotations__)

    def __init__(self, board: Board, most: int, window: int, lent: LentReductions | None) -> None:
        """Begin with a board where nothing was shown.

        Args:
            board: what the members share.
            most: bytes that a slot has room for.
            window: bytes of much data that are worked on at a time.
            lent: for much data in place; None to have them in windows only.
        """
        self._board = board
        self._lent = lent
        self._most = most
        self._window = min(window, board.area)

    # --- prefix reductions

    @ccall
    def scan(
        self, send: Message | None, receive: Message, operation: Operation, inclusive: bool
    ) -> None:
        """The data of the members before this one, and its own if `inclusive`, combined."""
        board: Board = self._board
        given: Message = send if send is not None else receive
        layout = given.layout
        operation.check_layout(layout)
        size: int = given.count * layout.size
        start: int
        to: int
        data, start = packed(given)
        top: int = board.rank if inclusive else board.rank - 1
        room: memoryview | None = None
        to = 0
        if top >= 0:
            room, to = room_of(receive)
        if size > self._most:
            lent: LentReductions | None = self._lent
            if lent is None or not lent.scan_lent(
                operands(data, start, size, room, to, layout, operation), top
            ):
                self._scan_much(data, start, room, to, size, layout, operation, inclusive)
        else:
            self._scan_little(data, start, room, to, size, layout, operation, top)
        if room is not None:
            settle(receive, room)

    @cfunc
    def _scan_little(
        self,
        data: memoryview,
        start: int,
        room: memoryview | None,
        to: int,
        size: int,
        layout: Layout,
        operation: Operation,
        top: int,
    ) -> None:
        """Show all, then combine that of members 0 to `top`."""
        board: Board = self._board
        number: int = board.show_whole(data, start, size)
        if board.join(number):
            board.wake()
        fits: bool = True
        if room is not None:
            board.wait_for_members(0, board.rank, number)
            rank: int
            for rank in range(board.rank):
                if board.total_of(rank, number) != size:
                    fits = False
            if fits:
                self._combine(board.slot(0, number), top, room, to, size, layout, operation)
        board.finish(number)
        if not fits:
            raise disagreement()

    @cfunc
    def _scan_much(
        self,
        data: memoryview,
        start: int,
        room: memoryview | None,
        to: int,
        size: int,
        layout: Layout,
        operation: Operation,
        inclusive: bool,
    ) -> None:
        """Window by window: all show theirs, each combines a part for all, all take their own."""
        board: Board = self._board
        before: int = board.last
        number: int = before
        window: int = max(self._window // layout.size, 1) * layout.size
        own: int = board.all_slots(board.rank)
        done: int = 0
        board.wait_until_done(before)
        while done < size:
            part: int = min(window, size - done)
            board.copy_in(own, data, start + done, part)
            number += 1
            board.last = number
            self._show_window(number, size)
            self._combine_for_all(part, layout, operation, inclusive)
            number += 1
            board.last = number
            board.show(number, size)
            board.wait_for_all(number)
            if room is not None:
                board.copy_out(own, room, to + done, part)
            done += part
        board.leave_windows(number, before)

    @cfunc
    def _combine_for_all(
        self, size: int, layout: Layout, operation: Operation, inclusive: bool
    ) -> None:
        """This member's part of a window, for every member: in place, from the first to the last.

        Nobody else touches these elements before all have combined theirs.
        """
        board: Board = self._board
        share: int = share_of(board, size, layout)
        at: int = board.rank * share
        end: int = min(at + share, size)
        block: int = block_of(layout, operation)
        rank: int
        while at < end:
            part: int = min(block, end - at)
            for rank in range(1, board.ranks):
                left: int = board.all_slots(rank - 1) + at
                right: int = board.all_slots(rank) + at
                operation.combine(layout, board.memory, left, board.memory, right, part)
            if not inclusive:
                for rank in range(board.ranks - 1, 0, -1):
                    left = board.all_slots(rank - 1) + at
                    board.move(board.all_slots(rank) + at, left, part)
            at += part

    # --- reduce_scatter

    @ccall
    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """All members' data combined, of which `counts[i]` elements are for member i."""
        board: Board = self._board
        given: Message = send if send is not None else receive
        layout = given.layout
        operation.check_layout(layout)
        start: int
        to: int
        data, start = packed(given)
        mine: int = counts[board.rank] * layout.size
        target: Message = receive
        if send is None:
            target = receive.part(0, counts[board.rank])
        room, to = room_of(target)
        size: int = sum(counts) * layout.size
        if size > self._most:
            sizes = [count * layout.size for count in counts]
            lent: LentReductions | None = self._lent
            if lent is None or not lent.scatter_lent(
                operands(data, start, size, room, to, layout, operation), sizes
            ):
                self._scatter_much(data, start, room, to, sizes, layout, operation)
        else:
            before: int = sum(counts[: board.rank]) * layout.size
            number: int = board.show_whole(data, start, size)
            self._wait_for_all(number, size)
            slot: int = board.slot(0, number) + before
            self._combine(slot, board.ranks - 1, room, to, mine, layout, operation)
            board.finish(number)
        settle(target, room)

    @cfunc
    def _scatter_much(
        self,
        data: memoryview,
        start: int,
        room: memoryview,
        to: int,
        sizes: list[int],
        layout: Layout,
        operation: Operation,
    ) -> None:
        """Window by window: a piece of each member's part is shown, and combined by that member.

        In place the results begin where the data do: what a window's result covers has been shown
        in it or before, as every part begins behind the data's beginning.
        """
        board: Board = self._board
        before: int = board.last
        number: int = before
        size: int = sum(sizes)
        mine: int = sizes[board.rank]
        window: int = max(self._window, self._most)  # an element for each member has room
        piece: int = window // board.ranks // layout.size * layout.size
        done: int = 0
        longest: int = max(sizes)
        while done < longest:
            board.wait_until_done(number)
            self._show_pieces(data, start, sizes, piece, done)
            number += 1
            board.last = number
            self._show_window(number, size)
            part: int = min(piece, mine - done)
            if part > 0:
                slot: int = board.all_slots(0) + board.rank * piece
                self._combine(slot, board.ranks - 1, room, to + done, part, layout, operation)
            board.finish(number)
            done += piece
        board.leave_windows(number, before)

    @cfunc
    def _show_pieces(
        self, data: memoryview, start: int, sizes: list[int], piece: int, done: int
    ) -> None:
        """Bring a piece of each member's part into the slots, behind those of the others."""
        board: Board = self._board
        own: int = board.all_slots(board.rank)
        size: int
        for size in sizes:
            part: int = min(piece, size - done)
            if part > 0:
                board.copy_in(own, data, start + done, part)
            own += piece
            start += size

    # --- what they have in common

    @cfunc
    def _show_window(self, number: int, size: int) -> None:
        """Show a window of messages of so many bytes, and wait for the others'.

        Raises:
            MPIError: ERR_TRUNCATE, the members have different amounts of data.
        """
        self._board.show(number, size)
        self._wait_for_all(number, size)

    @cfunc
    def _wait_for_all(self, number: int, size: int) -> None:
        """Wait until all have shown a fragment of messages of so many bytes.

        Raises:
            MPIError: ERR_TRUNCATE, the members have different amounts of data.
        """
        board: Board = self._board
        board.join(number)
        board.wait_for_all(number)
        insist_on_size(board, number, size)

    @cfunc
    def _combine(
        self,
        slot: int,
        top: int,
        room: memoryview,
        to: int,
        size: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """What members 0 to `top` have shown, combined in `room`.

        Args:
            slot: where it begins in the slots of member 0; others' are `area` apart.
            top: the last member.
            room: memory for the result.
            to: where in it the result begins.
            size: bytes.
            layout: of an element.
            operation: that combines.
        """
        board: Board = self._board
        block: int = block_of(layout, operation)
        done: int = 0
        while done < size:
            part: int = min(block, size - done)
            at: int = slot + top * board.area + done
            board.copy_out(at, room, to + done, part)
            rank: int = top
            while rank:
                rank -= 1
                at -= board.area
                operation.combine(layout, board.memory, at, room, to + done, part)
            done += part
