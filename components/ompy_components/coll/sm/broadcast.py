"""Broadcasts on a board: by fragments, or read in place.

Much is lent: the root shows where its data are and waits, and all others copy them at the same
time. Through slots each cache line has to go to the root and back once a lap, which between cores
that are far from each other takes several times as long (`README.md` has figures).
"""

from __future__ import annotations

from ompy.compiled import ccall, cclass, cfunc
from ompy.data.convertor import scratch_memory
from ompy.data.errors import ERR_PROC_FAILED, ERR_TRUNCATE, MPIError
from ompy.data.message import Message
from ompy.data.packed import to_lend
from ompy.net.base import LinkError

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.slots import PACKED


@cclass
class Broadcast:
    """What one member does in a broadcast; all members call it in the same order."""

    _board: Board
    _fragment: int
    _lending: Lending
    _least: int
    __slots__ = tuple(__annotations__)

    def __init__(self, board: Board, lending: Lending, fragment: int, least: int) -> None:
        """Begin with a board where nothing was shown.

        Args:
            board: what the members share.
            lending: of data that are more than a fragment.
            fragment: bytes that are shown at a time.
            least: bytes from which on they are lent.
        """
        self._board = board
        self._least = least
        self._lending = lending
        self._fragment = fragment

    @ccall
    def bcast(self, message: Message, root: int) -> None:
        """The root shows its data; how much there is, it says with the first fragment.

        It writes into its own slots: of two that take themselves for the root, none disturbs who
        reads the other's.
        """
        if self._board.rank != root:
            self._receive(message, root)
            return
        # what is in pieces is packed while others unpack the fragment before
        large = message.count * message.layout.size >= self._least and message.place() >= 0
        if large and self._lending.possible():
            self._lend(message)
        else:
            self._send(message)

    @cfunc
    def _begin(self) -> int:
        """The number of the root's next fragment, when there is room for it."""
        board: Board = self._board
        number: int = board.next_fragment()
        board.lead(number)
        return number

    @cfunc
    def _send(self, message: Message) -> None:
        board: Board = self._board
        total: int = message.count * message.layout.size
        start: int = message.place()
        done: int = 0
        while True:
            number: int = self._begin()
            part: int = min(self._fragment, total - done)
            slot: int = board.slot(board.rank, number)
            if part and start >= 0:
                board.copy_in(slot, message.memory, start + done, part)
            elif 0 < part == total <= PACKED and message.pack_at(board.memory, slot):
                pass
            elif part:
                board.streaming.pack_part(message.convertor(), done, board.memory, slot, part)
            board.say_lent(number, 0)
            board.show(number, total)
            board.finish(number)
            board.wake()
            done += part
            if done >= total:
                return

    @cfunc
    def _lend(self, message: Message) -> None:
        """Show where the data are, and wait until all have them."""
        board: Board = self._board
        block = to_lend(message)
        number: int = self._begin()
        address: int = self._lending.address_of(block)
        try:
            board.say_lent(number, address)
            board.show(number, len(block))
            board.finish(number)
            board.wake()
            board.wait_until_done(number)
        except BaseException:
            self._lending.withdraw_lent(number)
            raise
        finally:
            self._lending.take_back(address)

    @cfunc
    def _receive(self, message: Message, root: int) -> None:
        board: Board = self._board
        room: int = message.count * message.layout.size
        done: int = 0
        while True:
            board.last += 1
            number: int = board.last
            board.wait_for_members(root, root + 1, number)
            total: int = board.total_of(root, number)
            part: int = min(self._fragment, total - done)
            problem: MPIError | None = None
            if total >= self._least and self._lending.possible() and board.lent_by(root, number):
                part = total
                problem = self._read(number, root, message, min(total, room))
            else:
                self._take(board.slot(root, number), message, done, min(part, room - done))
            board.show(number, total)
            board.finish(number)
            if problem is not None:
                raise problem
            done += part
            if done >= total:
                break
        if total > room:
            raise MPIError(ERR_TRUNCATE, f"a broadcast of {total} bytes came for room for {room}")

    @cfunc
    def _take(self, slot: int, message: Message, done: int, size: int) -> None:
        """A fragment's bytes, as many as there is room for."""
        start: int = message.place()
        if size > 0 and start >= 0:
            self._board.copy_out(slot, message.memory, start + done, size)
        elif size > 0 and (done or not message.unpack_from(self._board.memory, slot, size)):
            message.convertor().unpack(done, self._board.bytes_of(slot, size))

    @cfunc
    def _read(self, number: int, root: int, message: Message, size: int) -> MPIError | None:
        """The first bytes of what the root has lent. Returns what is wrong."""
        start: int = message.place()
        address: int = self._board.lent_by(root, number)
        room = message.memory[start : start + size] if start >= 0 else scratch_memory(size)
        try:
            if size:
                self._lending.read_lent(root, number, address, room)
        except LinkError as problem:
            return MPIError(ERR_PROC_FAILED, f"the data of rank {root} cannot be read: {problem}")
        if start < 0:
            message.convertor().unpack(0, room)
        return None
