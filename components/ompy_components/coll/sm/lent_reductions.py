"""Large reductions out of the members' own memory, which they lend each other.

Of two members each reads the other's data, where it needs the result. Of a few more each combines a
part for all, and lends that with a second fragment. If one of them cannot lend, nothing is done
here, and all of them see that. Between cores that are far from each other the kernel's copy takes a
third of what windows in shared memory take (`README.md`).
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.convertor import scratch_memory
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.net.base import LinkError

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.operands import Operands, insist_on_size, lent_piece, share_of

MOST: Final = 4  # members. measured: eight on two cores take windows in half the time
# members that read each other's data as they are. measured: two on two cores
DIRECT_MOST: Final = 2
NOBODY: Final = -1  # in place of a root: all get the result
# kinds of calls; arbitrary numbers
_REDUCE: Final = 0
_SCAN: Final = 1
_SCATTER: Final = 2
_NO_SIZES: Final[list[int]] = []


@cclass
class LentReductions:
    """What one member does; all members call the same in the same order.

    The memory that a caller gives stays as it is, but for the result, until a call returns. A call
    returns whether it was done: not, if a member cannot lend. It raises MPIError: ERR_TRUNCATE,
    members have different amounts of data; ERR_PROC_FAILED, one has ended.
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
    def reduce_lent(self, given: Operands, root: int) -> bool:
        """All members' data combined for the root; for all members if that is `NOBODY`."""
        return self._combine_lent(given, _REDUCE, root, _NO_SIZES)

    @ccall
    def scan_lent(self, given: Operands, top: int) -> bool:
        """The data of members 0 to `top`, which is this one or the one before it, combined."""
        return self._combine_lent(given, _SCAN, top, _NO_SIZES)

    @ccall
    def scatter_lent(self, given: Operands, sizes: list[int]) -> bool:
        """All members' data combined, of which `sizes[i]` bytes are for member i.

        The result may begin where the data do.
        """
        return self._combine_lent(given, _SCATTER, NOBODY, sizes)

    @cfunc
    def _combine_lent(self, given: Operands, kind: int, detail: int, sizes: list[int]) -> bool:
        """Lend the data until the call is over, if all members do, and do what it is about."""
        ranks: int = self._board.ranks
        if ranks > MOST or (kind == _SCAN and ranks > DIRECT_MOST):
            return False
        address: U64 = self._offer(given)
        try:
            if not self._all_lend(given.size):
                return False
            if kind == _SCAN:
                self._scan(given, detail)
            elif kind == _SCATTER:
                self._scatter(given, sizes)
            elif ranks > DIRECT_MOST:
                self._reduce_shared(given, detail)
            elif detail == NOBODY and given.data is given.room:
                self._reduce_in_place(given)
            else:
                self._reduce_direct(given, detail)
        except BaseException:
            self._withdraw()
            raise
        finally:
            self._lending.take_back(address)
        return True

    # --- what the calls are about

    @cfunc
    def _reduce_direct(self, given: Operands, root: int) -> None:
        """Combine all, where the result is wanted."""
        board: Board = self._board
        room: memoryview | None = given.room
        if room is None:
            board.finish(self._first)
            board.wait_until_member_done(root, self._first)
            return
        self._combine(given, board.ranks - 1, 0, given.size, room, given.to)
        board.finish(self._first)
        if root == NOBODY:
            board.wait_until_done(self._first)

    @cfunc
    def _reduce_in_place(self, given: Operands) -> None:
        """The same of two members, where each result comes to where the other one reads.

        So the other's data are taken first, and combined when both have them.
        """
        board: Board = self._board
        layout = given.layout
        operation = given.operation
        data: memoryview = given.data
        theirs = scratch_memory(given.size)
        self._fetch(1 - board.rank, self._first, 0, theirs)
        board.finish(self._first)
        board.wait_until_done(self._first)
        if board.rank:
            operation.combine(layout, theirs, 0, data, given.start, given.size)
            return
        piece: int = lent_piece(layout)
        done: int = 0
        while done < given.size:  # the result comes beside, and from the cache to its place
            part: int = min(piece, given.size - done)
            operation.combine(layout, data, given.start + done, theirs, done, part)
            raw.copy(data, given.start + done, theirs, done, part)
            done += part

    @cfunc
    def _reduce_shared(self, given: Operands, root: int) -> None:
        """Combine a part, lend it, and take the others' parts."""
        board: Board = self._board
        low: int = self._share_begin(board.rank, given)
        size: int = self._share_begin(board.rank + 1, given) - low
        room: memoryview | None = given.room
        target: memoryview = room if room is not None else scratch_memory(size)
        at: int = given.to + low if room is not None else 0
        self._combine(given, board.ranks - 1, low, size, target, at)
        board.finish(self._first)
        lent: U64 = 0
        if size and root != board.rank:
            lent = self._lending.address_of(target[at : at + size])
        try:
            self._show_part(lent, given.size)
            if room is None:
                if board.join(self._second):
                    board.wake()
                board.finish(self._second)
                board.wait_until_member_done(root, self._second)
                return
            self._take_parts(given, room)
            if root == NOBODY:
                board.wait_until_done(self._second)
        finally:
            if lent:
                self._lending.take_back(lent)

    @cfunc
    def _take_parts(self, given: Operands, room: memoryview) -> None:
        """Read what the others have combined, when all have."""
        board: Board = self._board
        board.join(self._second)
        board.wait_for_all(self._second)
        insist_on_size(board, self._second, given.size)  # nobody has gone on to another call
        rank: int
        for rank in range(board.ranks):
            low: int = self._share_begin(rank, given)
            high: int = self._share_begin(rank + 1, given)
            if rank != board.rank and high > low:
                self._fetch(rank, self._second, 0, room[given.to + low : given.to + high])
        board.finish(self._second)

    @cfunc
    def _scan(self, given: Operands, top: int) -> None:
        """Combine the data of the members up to one; a rank that gets nothing has no room."""
        board: Board = self._board
        room: memoryview | None = given.room
        if room is not None:
            self._combine(given, top, 0, given.size, room, given.to)
        board.finish(self._first)
        board.wait_until_done(self._first)

    @cfunc
    def _scatter(self, given: Operands, sizes: list[int]) -> None:
        """Combine this member's part of all data."""
        board: Board = self._board
        low: int = sum(sizes[: board.rank])
        mine: int = sizes[board.rank]
        room: memoryview | None = given.room
        assert room is not None, "every member gets a part"
        in_place: bool = room is given.data  # others have not read what lies there
        target: memoryview = scratch_memory(mine) if in_place else room
        at: int = 0 if in_place else given.to
        self._combine(given, board.ranks - 1, low, mine, target, at)
        board.finish(self._first)
        board.wait_until_done(self._first)
        if in_place:
            raw.copy(room, given.to, target, 0, mine)

    # --- what they have in common

    @cfunc
    def _offer(self, given: Operands) -> U64:
        """Show where this member's data are. Returns their address; 0 if they cannot be lent."""
        board: Board = self._board
        self._second = 0
        self._first = board.next_fragment()
        address: U64 = 0
        if self._lending.possible():
            lent = given.data[given.start : given.start + given.size]
            address = self._lending.address_of(lent)
        board.say_lent(self._first, address)
        board.show(self._first, given.size)
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
    def _withdraw(self) -> None:
        """Say that nobody may read what this member has lent: it does not wait."""
        self._lending.withdraw_lent(self._first)
        if self._second:
            self._lending.withdraw_lent(self._second)

    @cfunc
    def _share_begin(self, rank: int, given: Operands) -> int:
        """Where a member's part of the data begins."""
        return min(rank * share_of(self._board, given.size, given.layout), given.size)

    @cfunc
    def _combine(
        self, given: Operands, top: int, low: int, length: int, target: memoryview, at: int
    ) -> None:
        """Data of members 0 to `top` from byte `low` on, in rank order, into `target`."""
        board: Board = self._board
        layout = given.layout
        operation = given.operation
        data: memoryview = given.data
        piece: int = lent_piece(layout) if top else length
        beside = scratch_memory(min(piece, length) if top else 0)
        own: memoryview = scratch_memory(min(piece, length)) if target is data else data
        done: int = 0
        while done < length:
            part: int = min(piece, length - done)
            before: int = given.start + low + done
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
