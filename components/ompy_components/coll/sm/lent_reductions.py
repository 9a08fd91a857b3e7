"""Large reductions out of the members' own memory, which they lend each other.

Of two members each reads the other's data, where it needs the result. Of a few more each combines a
part for all, and lends that with a second fragment. If one of them cannot lend, nothing is done
here, and all of them see that. Between cores that are far from each other the kernel's copy takes a
third of what windows in shared memory take (`README.md`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.convertor import scratch_memory
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.data.operation import Operation
from ompy.net.base import LinkError

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.operands import insist_on_size, lent_piece, share_of

if TYPE_CHECKING:
    from ompy.data.layout import Layout

MOST: Final = 4  # members. measured: eight on two cores take windows in half the time
# members that read each other's data as they are. measured: two on two cores
DIRECT_MOST: Final = 2
NOBODY: Final = -1  # in place of a root: all get the result


@cclass
class LentReductions:
    """What one member does; all members call the same in the same order.

    The memory that a caller gives stays as it is, but for the result, until a call returns.
    """

    _board: Board
    _first: int
    _lending: Lending
    _second: int
    __slots__ = tuple(__annotations__)

    def __init__(self, board: Board, lending: Lending) -> None:
        """Begin with a board where nothing was shown.

        Args:
            board: what the members share.
            lending: of data.
        """
        self._board = board
        self._lending = lending
        self._first = 0
        self._second = 0

    @ccall
    def is_worth_it(self, scan: bool) -> bool:
        """Whether so few members read in place, in a prefix reduction or another one."""
        most: int = DIRECT_MOST if scan else MOST
        return self._board.ranks <= most

    # --- one result

    @ccall
    def reduce_lent(
        self,
        data: memoryview,
        start: int,
        size: int,
        room: memoryview | None,
        to: int,
        root: int,
        layout: Layout,
        operation: Operation,
    ) -> bool:
        """All members' data combined, for one of them or for all.

        Args:
            data: memory with this member's.
            start: where in it they begin.
            size: their bytes.
            room: memory for the result, which may be that of the data; None for who gets none.
            to: where in it the result begins.
            root: who gets it; `NOBODY` if all do.
            layout: of an element.
            operation: that combines.

        Returns:
            Whether it was done: not, if a member cannot lend.

        Raises:
            MPIError: ERR_TRUNCATE, members have different amounts; ERR_PROC_FAILED, one has ended.
        """
        direct: bool = self._board.ranks <= DIRECT_MOST
        if direct and root == NOBODY and data is room:
            kept: memoryview = scratch_memory(size)  # the result comes where the other one reads
            raw.copy(kept, 0, data, start, size)
            data, start = kept, 0
        address: U64 = self._offer(data[start : start + size], size)
        try:
            if not self._all_lend(size):
                return False
            if direct:
                self._reduce_direct(data, start, size, room, to, root, layout, operation)
            else:
                self._reduce_shared(data, start, size, room, to, root, layout, operation)
        except BaseException:
            self._withdraw()
            raise
        finally:
            self._lending.take_back(address)
        return True

    @cfunc
    def _reduce_direct(
        self,
        data: memoryview,
        start: int,
        size: int,
        room: memoryview | None,
        to: int,
        root: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """Combine all, where the result is wanted."""
        board: Board = self._board
        if room is None:
            board.finish(self._first)
            board.wait_until_member_done(root, self._first)
            return
        top: int = board.ranks - 1
        self._combine(top, 0, size, data, start, room, to, layout, operation)
        board.finish(self._first)
        if root == NOBODY:
            board.wait_until_done(self._first)

    @cfunc
    def _reduce_shared(
        self,
        data: memoryview,
        start: int,
        size: int,
        room: memoryview | None,
        to: int,
        root: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """Combine a part, lend it, and take the others' parts."""
        board: Board = self._board
        low: int = self._share_begin(board.rank, size, layout)
        high: int = self._share_begin(board.rank + 1, size, layout)
        target: memoryview = room if room is not None else scratch_memory(high - low)
        at: int = to + low if room is not None else 0
        top: int = board.ranks - 1
        self._combine(top, low, high - low, data, start, target, at, layout, operation)
        board.finish(self._first)
        lent: U64 = 0
        if high > low and root != board.rank:
            lent = self._lending.address_of(target[at : at + high - low])
        try:
            self._show_part(lent, size)
            if room is None:
                if board.join(self._second):
                    board.wake()
                board.finish(self._second)
                board.wait_until_member_done(root, self._second)
                return
            self._meet_again(size)
            rank: int
            for rank in range(board.ranks):
                low = self._share_begin(rank, size, layout)
                high = self._share_begin(rank + 1, size, layout)
                if rank != board.rank and high > low:
                    self._fetch(rank, self._second, 0, room[to + low : to + high])
            board.finish(self._second)
            if root == NOBODY:
                board.wait_until_done(self._second)
        finally:
            if lent:
                self._lending.take_back(lent)

    # --- prefix reductions

    @ccall
    def scan_lent(
        self,
        data: memoryview,
        start: int,
        size: int,
        room: memoryview | None,
        to: int,
        inclusive: bool,
        layout: Layout,
        operation: Operation,
    ) -> bool:
        """The data of the members before this one, and its own if `inclusive`, combined.

        The arguments are as of `reduce_lent`; so is what it returns and raises.
        """
        board: Board = self._board
        address: U64 = self._offer(data[start : start + size], size)
        try:
            if not self._all_lend(size):
                return False
            top: int = board.rank if inclusive else board.rank - 1
            if room is not None:
                self._combine(top, 0, size, data, start, room, to, layout, operation)
            board.finish(self._first)
            board.wait_until_done(self._first)
        except BaseException:
            self._withdraw()
            raise
        finally:
            self._lending.take_back(address)
        return True

    # --- a part for each

    @ccall
    def scatter_lent(
        self,
        data: memoryview,
        start: int,
        sizes: list[int],
        room: memoryview,
        to: int,
        layout: Layout,
        operation: Operation,
    ) -> bool:
        """All members' data combined, of which `sizes[i]` bytes are for member i.

        The arguments are as of `reduce_lent`; so is what it returns and raises. The result may
        begin where the data do.
        """
        board: Board = self._board
        size: int = sum(sizes)
        address: U64 = self._offer(data[start : start + size], size)
        try:
            if not self._all_lend(size):
                return False
            low: int = sum(sizes[: board.rank])
            mine: int = sizes[board.rank]
            # others have not read what lies there
            target: memoryview = scratch_memory(mine) if room is data else room
            at: int = 0 if room is data else to
            top: int = board.ranks - 1
            self._combine(top, low, mine, data, start, target, at, layout, operation)
            board.finish(self._first)
            board.wait_until_done(self._first)
            if room is data:
                raw.copy(room, to, target, 0, mine)
        except BaseException:
            self._withdraw()
            raise
        finally:
            self._lending.take_back(address)
        return True

    # --- what they have in common

    @cfunc
    def _offer(self, data: memoryview, size: int) -> U64:
        """Show where this member's data are. Returns their address; 0 if they cannot be lent."""
        board: Board = self._board
        self._second = 0
        self._first = board.next_fragment()
        address: U64 = self._lending.address_of(data) if self._lending.possible() else 0
        board.say_lent(self._first, address)
        board.show(self._first, size)
        return address

    @cfunc
    def _all_lend(self, size: int) -> bool:
        """Whether all members have lent their data, when all have said so."""
        board: Board = self._board
        board.join(self._first)
        board.wait_for_all(self._first)
        insist_on_size(board, self._first, size)
        rank: int
        for rank in range(board.ranks):
            if not board.lent_by(rank, self._first):
                board.finish(self._first)
                return False
        return True

    @cfunc
    def _show_part(self, lent: U64, size: int) -> None:
        """Show where the combined part is."""
        board: Board = self._board
        self._second = board.next_fragment()
        board.say_lent(self._second, lent)
        board.show(self._second, size)

    @cfunc
    def _meet_again(self, size: int) -> None:
        """Wait until all have combined theirs, and see that nobody has gone on to another call."""
        board: Board = self._board
        board.join(self._second)
        board.wait_for_all(self._second)
        insist_on_size(board, self._second, size)

    @cfunc
    def _withdraw(self) -> None:
        """Say that nobody may read what this member has lent: it does not wait."""
        self._lending.withdraw_lent(self._first)
        if self._second:
            self._lending.withdraw_lent(self._second)

    @cfunc
    def _share_begin(self, rank: int, size: int, layout: Layout) -> int:
        """Where a member's part of the data begins."""
        return min(rank * share_of(self._board, size, layout), size)

    @cfunc
    def _combine(
        self,
        top: int,
        low: int,
        length: int,
        data: memoryview,
        start: int,
        target: memoryview,
        at: int,
        layout: Layout,
        operation: Operation,
    ) -> None:
        """Data of members 0 to `top` from byte `low` on, in rank order, into `target`."""
        board: Board = self._board
        piece: int = lent_piece(layout) if top else length
        beside = scratch_memory(min(piece, length))
        own: memoryview = scratch_memory(min(piece, length)) if target is data else data
        done: int = 0
        while done < length:
            part: int = min(piece, length - done)
            before: int = start + low + done
            if target is data:
                raw.copy(own, 0, data, before, part)
                before = 0
            rank: int = top
            if rank == board.rank:
                raw.copy(target, at + done, own, before, part)
            else:
                into = target[at + done : at + done + part]
                self._fetch(rank, self._first, low + done, into)
            while rank:
                rank -= 1
                if rank == board.rank:
                    operation.combine(layout, own, before, target, at + done, part)
                    continue
                self._fetch(rank, self._first, low + done, beside[:part])
                operation.combine(layout, beside, 0, target, at + done, part)
            done += part

    @cfunc
    def _fetch(self, rank: int, number: int, offset: int, into: memoryview) -> None:
        """Copy what a member has lent in a fragment, from a byte of it on.

        Raises:
            MPIError: ERR_PROC_FAILED, the member has ended.
        """
        address: U64 = self._board.lent_by(rank, number)
        try:
            self._lending.read_lent(rank, number, address + offset, into)
        except LinkError as problem:
            raise MPIError(
                ERR_PROC_FAILED, f"the data of rank {rank} cannot be read: {problem}"
            ) from None
