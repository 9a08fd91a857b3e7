"""Messages of any size on a board (`ompy/frameworks/collectives/unsized.py`).

Each call is one fragment of its own number, as those of `blocks.py`. In place of the size of a
message a member shows one more than its bytes, or what became of it:

    bcast, gather, allgather     the message
    scatter, alltoall            for each member the end of its message among all, and the size as
                                 above; then the messages, if they have room behind the table
    along edges                  how many there are; for each the target, the end and the size, as
                                 above; then the messages. Where the table itself has no room, that
                                 is told in place of its size, and all come as messages

A member that gives up shows that in place of the size, with the error's code.
"""

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_TOPOLOGY, MPIError
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.unsized import UnsizedMessages
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.blocks import ENTRY
from ompy_components.coll.sm.leaving import LeavableBoard
from ompy_components.coll.sm.slots import EDGE, WORD

AS_MESSAGE: Final = 0  # it comes as a message of the PML
BESIDE: Final = 1  # what a size is larger by
GIVEN_UP: Final = 1 << 62  # and the code; arbitrary: no size is as large


@cclass
class UnsizedOperations(UnsizedMessages):
    """What one member does."""

    _board: LeavableBoard
    _communicator: Communicator
    _most: int
    _table: int
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator, board: LeavableBoard, most: int) -> None:
        """Begin with a board that blocking calls use, too.

        Args:
            communicator: of the members.
            board: what they share.
            most: bytes that a slot has room for.
        """
        self._communicator = communicator
        self._board = board
        self._table = board.ranks * ENTRY
        self._most = most
        self.room = most
        self.block_room = max(0, (most - self._table) // board.ranks)

    @ccall
    def begun(self) -> int:
        """The number of the last fragment."""
        return self._board.last

    @ccall
    def give_up(self, code: int) -> None:
        """Show that nothing comes."""
        board: LeavableBoard = self._board
        if board.has_left():
            board.last += 1  # which is all that is looked at any more
            return
        number: int = board.next_fragment()
        board.show(number, GIVEN_UP + code)
        board.wake()
        board.finish(number)

    # --- messages for all

    @ccall
    def bcast(self, said: Any, root: int) -> Any:
        """The root shows its message and goes on."""
        board: LeavableBoard = self._board
        number: int = board.next_fragment()
        if board.rank != root:
            return self._take_from_root(root, number, False)
        board.lead(number)
        self._show(number, said)
        board.wake()
        board.finish(number)
        return None

    @ccall
    def gather(self, said: Any, root: int) -> list[Any] | None:
        """All show theirs; the root alone waits."""
        board: LeavableBoard = self._board
        number: int = board.next_fragment()
        if board.rank != root:
            self._show(number, said)
            if board.join(number):
                board.wake()
            board.finish(number)
            return None
        board.show(number, 0)
        board.join(number)
        board.wait_for_members(0, board.ranks, number)
        return self._take_all(number, False)

    @ccall
    def allgather(self, said: Any) -> list[Any]:
        """All show theirs, and wait for each other."""
        number: int = self._board.next_fragment()
        self._show(number, said)
        self._board.meet(number)
        return self._take_all(number, False)

    @cfunc
    def _show(self, number: int, said: Any) -> None:
        """Show a message, or that it comes in another way."""
        board: LeavableBoard = self._board
        board.show(number, self._put(board.slot(board.rank, number), said))

    @cfunc
    def _put(self, at: int, said: Any) -> int:
        """Write a message, if it has room. Returns what is shown in place of its size."""
        if said is None:
            return AS_MESSAGE
        size: int = len(said)
        raw.copy(self._board.memory, at, said, 0, size)
        return size + BESIDE

    @cfunc
    def _take_from_root(self, root: int, number: int, tabulated: bool) -> Any:
        """The root's message when it is there; then this member is done with the fragment."""
        board: LeavableBoard = self._board
        board.wait_for_members(root, root + 1, number)
        board.show(number, 0)
        try:
            return self._take(root, number, tabulated)
        finally:
            board.finish(number)

    @cfunc
    def _take_all(self, number: int, tabulated: bool) -> list[Any]:
        """The others' messages; then this member is done with the fragment."""
        board: LeavableBoard = self._board
        found: list[Any] = []
        rank: int
        try:
            for rank in range(board.ranks):
                found.append(None if rank == board.rank else self._take(rank, number, tabulated))
        finally:
            board.finish(number)
        return found

    @cfunc
    def _take(self, rank: int, number: int, tabulated: bool) -> Any:
        """A copy of a member's message, or of the one for this member in its table."""
        board: LeavableBoard = self._board
        total: int = board.total_of(rank, number)
        self._check(rank, total)
        if not tabulated:
            return self._read(board.slot(rank, number), total)
        slot: int = board.table(rank, number)
        return self._read_row(slot, slot + board.rank * ENTRY)

    @cfunc
    def _read_row(self, slot: int, row: int) -> Any:
        """A copy of the message that a row of a table is of: its end, and as of a size."""
        board: LeavableBoard = self._board
        end: int = board.word(row)
        total: int = board.word(row + WORD)
        return self._read(slot + end + BESIDE - total, total)

    @cfunc
    def _read(self, at: int, total: int) -> Any:
        """A copy of a message; None where it comes in another way."""
        if total == AS_MESSAGE:
            return None
        found = raw.room(total - BESIDE)
        self._board.copy_out(at, memoryview(found), 0, total - BESIDE)
        return found

    @cfunc
    def _check(self, rank: int, total: int) -> None:
        """See that a member has not given up."""
        if total >= GIVEN_UP:
            name, proc = self._communicator.name, self._communicator.procs[rank]
            said = f"{proc} takes no part in a collective of {name}: its part has failed there"
            raise MPIError(total - GIVEN_UP, said)

    # --- messages for one each

    @ccall
    def scatter(self, said: list[Any] | None, root: int) -> Any:
        """The root shows a table of its messages and goes on."""
        board: LeavableBoard = self._board
        number: int = board.next_fragment()
        if board.rank != root:
            return self._take_from_root(root, number, True)
        assert said is not None, "the root has the messages"
        board.lead(number)
        self._tabulate(number, said)
        board.wake()
        board.finish(number)
        return None

    @ccall
    def alltoall(self, said: list[Any]) -> list[Any]:
        """All show a table of theirs, and wait for each other."""
        number: int = self._board.next_fragment()
        self._tabulate(number, said)
        self._board.meet(number)
        return self._take_all(number, True)

    @cfunc
    def _tabulate(self, number: int, said: list[Any]) -> None:
        """Show messages for the others, those that have room."""
        board: LeavableBoard = self._board
        slot: int = board.table(board.rank, number)
        place: int = self._table
        rank: int
        for rank in range(board.ranks):
            one: Any = None if rank == board.rank else said[rank]
            place = self._enter(slot, slot + rank * ENTRY, place, one)
        board.show(number, place)

    @cfunc
    def _enter(self, slot: int, row: int, place: int, one: Any) -> int:
        """Fill a row of a table, and write its message to `place` of the slot. Returns its end."""
        board: LeavableBoard = self._board
        total: int = self._put(slot + place, one)
        if total != AS_MESSAGE:
            place += total - BESIDE
        board.set_word(row, place)
        board.set_word(row + WORD, total)
        return place

    # --- messages along edges

    @ccall
    def edge_room(self, edges: Neighbours) -> int:
        """What is left behind the table, in equal parts; negative where the table has no room."""
        number: int = len(edges.sending)
        left: int = self._most - WORD - number * EDGE
        return left // number if number and left > 0 else left

    @ccall
    def along(self, said: list[Any], edges: Neighbours) -> list[Any]:
        """A member waits for its sources alone."""
        board: LeavableBoard = self._board
        number: int = board.next_fragment()
        self._lay_edges(number, said, edges)
        if board.join(number):
            board.wake()
        found: list[Any] = [None] * len(edges.sources)
        try:
            for turn, each in zip(edges.turns, edges.receiving):  # noqa: B905 - alike as they are made
                rank: int = edges.sources[each]
                board.wait_for_members(rank, rank + 1, number)
                found[each] = self._take_edge(rank, number, turn)
        finally:
            board.finish(number)
        return found

    @cfunc
    def _lay_edges(self, number: int, said: list[Any], edges: Neighbours) -> None:
        """Show a table of messages with their targets, and those that have room."""
        board: LeavableBoard = self._board
        slot: int = board.table(board.rank, number)
        place: int = WORD + len(edges.sending) * EDGE
        if place > self._most:
            board.show(number, AS_MESSAGE)
            return
        row: int = slot + WORD
        each: int
        for each in edges.sending:
            board.set_word(row, edges.targets[each])
            place = self._enter(slot, row + WORD, place, said[each])
            row += EDGE
        board.set_word(slot, len(edges.sending))
        board.show(number, place + BESIDE)

    @cfunc
    def _take_edge(self, rank: int, number: int, turn: int) -> Any:
        """A copy of what a member has for this one, along its edge of that turn."""
        board: LeavableBoard = self._board
        shown: int = board.total_of(rank, number)
        if shown == AS_MESSAGE:
            return None
        self._check(rank, shown)
        slot: int = board.table(rank, number)
        row: int = slot + WORD
        end: int = row + board.word(slot) * EDGE
        own: U64 = board.rank
        passed: int = 0
        while row < end:
            if board.word(row) == own:
                if passed == turn:
                    return self._read_row(slot, row + WORD)
                passed += 1
            row += EDGE
        raise MPIError(
            ERR_TOPOLOGY,
            f"rank {rank} has {passed} edges to rank {board.rank}, where one more is received from",
        )
