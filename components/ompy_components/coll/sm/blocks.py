"""Gather, scatter, allgather and alltoall on a board: each call is one fragment of its own number.

A member's slot has its block, or a table of its blocks for the others:

    gather, allgather     the block, unless the slot's head says where it is lent
    scatter, alltoall     equal blocks for all members, if they have room (`EQUAL`); else way, then
                          for each member the place and the bytes of its block, then the blocks
                          themselves, if they have room behind the table

Large blocks are lent (`lending.py`), and those that have no room: their place is an address, and
their owner returns when the readers are done. Where nothing can be lent, those that have no room go
as messages under the call's tag, which the readers see by the way, or by a place of 0. Members
decide so each for itself: the readers do as the table says.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.data.message import Blocks, Message
from ompy.data.packed import lent_copy, to_lend, too_large
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.slots import (
    EQUAL,
    LENT,
    SENT,
    SHOWN,
    WORD,
    copy_block,
    copy_message,
    copy_to_block,
)

ENTRY: Final = 16  # bytes of a block's place and size; arbitrary: a word each


@ccall
def table_size(ranks: int) -> int:
    """Bytes before the blocks of a table."""
    return WORD + ranks * ENTRY


@cclass
class BlockOperations:
    """What one member does in operations whose result is blocks of the members' data."""

    _board: Board
    _communicator: Communicator
    _lending: Lending
    _least: int
    _most: int
    _table: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, board: Board, lending: Lending, most: int, least: int
    ) -> None:
        """Begin with a board where nothing was shown.

        Args:
            communicator: of the members.
            board: what they share.
            lending: of large blocks.
            most: bytes that a slot has room for.
            least: bytes from which on blocks are lent.
        """
        self._communicator = communicator
        self._board = board
        self._lending = lending
        self._most = most
        self._least = least
        self._table = table_size(board.ranks)

    # --- gather

    @ccall
    def gather(self, send: Message | None, receive: Blocks | None, root: int, tag: int) -> None:
        """Everybody's block to the root, who alone waits.

        Args:
            send: this member's block; None for the root's that is in place.
            receive: the root's room.
            root: who gets the blocks.
            tag: of messages.
        """
        board: Board = self._board
        number: int = board.next_fragment()
        if board.rank != root:
            assert send is not None, "its block is in place at the root alone"
            self._give(number, send, root, tag)
            return
        assert receive is not None, "the root has room"
        board.show(number, 0)
        board.join(number)
        problem: MPIError | None = None
        if send is not None:
            problem = copy_to_block(send, receive, root)
        rank: int
        for rank in range(board.ranks):
            if rank == root:
                continue
            board.wait_for_members(rank, rank + 1, number)
            found = self._accept(number, rank, receive, tag)
            problem = problem or found
        board.finish(number)
        if problem is not None:
            raise problem

    @cfunc
    def _give(self, number: int, send: Message, root: int, tag: int) -> None:
        """Show a block, or lend it until the root is done."""
        board: Board = self._board
        size: int = send.count * send.layout.size
        if not self._is_large(size):
            board.say_lent(number, 0)
            board.put(board.slot(board.rank, number), send, size)
            board.show(number, size)
            if board.join(number):
                board.wake()
            board.finish(number)
            return
        block = to_lend(send)
        address: int = self._offer(number, block, size)
        try:
            if board.join(number):
                board.wake()
            if address:
                board.wait_until_member_done(root, number)
            else:
                exchange = Exchange(self._communicator, tag)
                exchange.send(block, root)
                exchange.finish()
        except BaseException:
            self._lending.withdraw_lent(number)
            raise
        finally:
            self._lending.take_back(address)
        board.finish(number)

    @cfunc
    def _is_large(self, size: int) -> bool:
        """Whether a block does not go through a slot."""
        return size > self._most or (size >= self._least and self._lending.possible())

    @cfunc
    def _offer(self, number: int, block: memoryview, size: int) -> int:
        """Show where a large block is. Returns its address; 0 if it is to be sent."""
        board: Board = self._board
        address: int = self._lending.address_of(block) if self._lending.possible() else 0
        board.say_lent(number, address)
        board.show(number, size)
        return address

    # --- allgather

    @ccall
    def allgather(self, send: Message | None, receive: Blocks, tag: int) -> None:
        """Everybody's block to everybody. `send` is None for one that is in place."""
        board: Board = self._board
        given: Message = send if send is not None else receive.block(board.rank)
        size: int = given.count * given.layout.size
        number: int = board.next_fragment()
        block: memoryview | None = None
        address: int = 0
        if not self._is_large(size):
            board.say_lent(number, 0)
            board.put(board.slot(board.rank, number), given, size)
            board.show(number, size)
        else:
            block = to_lend(given)
            address = self._offer(number, block, size)
        try:
            problem: MPIError | None = None
            if send is not None:
                problem = copy_to_block(send, receive, board.rank)
            found = self._accept_all(number, receive, tag, block, address)
            problem = problem or found
        except BaseException:
            if address:
                self._lending.withdraw_lent(number)
            raise
        finally:
            if address:
                self._lending.take_back(address)
        if problem is not None:
            raise problem

    @ccall
    def exchange(self, said: bytes) -> list[bytes]:
        """What all members say, by rank: all say equally much, which has room in a slot."""
        board: Board = self._board
        size: int = len(said)
        number: int = board.next_fragment()
        raw.copy(board.memory, board.slot(board.rank, number), said, 0, size)
        board.show(number, size)
        board.meet(number)
        rank: int
        found: list[bytes] = []
        for rank in range(board.ranks):
            found.append(raw.part(board.memory, board.slot(rank, number), size))
        board.finish(number)
        return found

    @cfunc
    def _accept_all(
        self, number: int, receive: Blocks, tag: int, block: memoryview | None, address: int
    ) -> MPIError | None:
        """Take the others' blocks; return when they have this member's large one."""
        board: Board = self._board
        board.meet(number)
        exchange: Exchange | None = None
        rank: int
        if block is not None and not address:
            exchange = Exchange(self._communicator, tag)
            for rank in range(board.ranks):
                if rank != board.rank:
                    exchange.send(block, rank)
        problem: MPIError | None = None
        for rank in range(board.ranks):
            if rank != board.rank:
                found = self._accept(number, rank, receive, tag)
                problem = problem or found
        board.finish(number)
        if exchange is not None:
            exchange.finish()
        elif block is not None:
            board.wait_until_done(number)
        return problem

    # --- scatter and alltoall

    @ccall
    def scatter(self, send: Blocks | None, receive: Message | None, root: int, tag: int) -> None:
        """The root's blocks to everybody. `receive` is None for the root's that is in place."""
        board: Board = self._board
        number: int = board.next_fragment()
        if board.rank != root:
            assert receive is not None, "its block is in place at the root alone"
            board.wait_for_members(root, root + 1, number)
            problem: MPIError | None = self._take(number, root, receive, tag)
            board.show(number, 0)
            board.finish(number)
            if problem is not None:
                raise problem
            return
        assert send is not None, "the root has the blocks"
        board.lead(number)
        lent: list[int] = []
        kept = self._tabulate(number, send, lent, False)
        board.wake()
        board.finish(number)
        try:
            problem = None
            if receive is not None:
                problem = copy_message(send.block(root), receive, root)
            if lent:
                board.wait_until_done(number)
            elif kept is not None:
                self._begin(kept, tag).finish()
        except BaseException:
            self._lending.withdraw_lent(number)
            raise
        finally:
            self._take_back(lent)
        if problem is not None:
            raise problem

    @ccall
    def alltoall(self, send: Blocks | None, receive: Blocks, tag: int) -> None:
        """Everybody's blocks to everybody. `send` is None for those that are in place."""
        board: Board = self._board
        rank: int
        number: int = board.next_fragment()
        lent: list[int] = []
        kept = self._tabulate(number, send or receive, lent, send is None)
        try:
            board.meet(number)
            exchange = None
            if kept is not None and not lent:
                exchange = self._begin(kept, tag)
            problem: MPIError | None = None
            for rank in range(board.ranks):
                if rank != board.rank:
                    found = self._take_block(number, rank, receive, tag)
                    problem = problem or found
                elif send is not None:
                    found = copy_block(send, receive, rank)
                    problem = problem or found
            board.finish(number)
            if exchange is not None:
                exchange.finish()
            elif lent:
                board.wait_until_done(number)
        except BaseException:
            self._lending.withdraw_lent(number)
            raise
        finally:
            self._take_back(lent)
        if problem is not None:
            raise problem

    @cfunc
    def _tabulate(
        self, number: int, blocks: Blocks, lent: list[int], changing: bool
    ) -> list[memoryview] | None:
        """Show a table of the blocks for the others.

        Args:
            number: of the fragment.
            blocks: one for each member.
            lent: addresses that have to be taken back are appended.
            changing: the memory is about to be received into.

        Returns:
            The blocks in one piece each, if they have no room; to be kept until they were read.
        """
        board: Board = self._board
        rank: int
        total: int = 0
        size: int = blocks.each()
        if board.has_equal_room(size, self._most) and not self._is_large(size):
            board.put_equal(board.slot(board.rank, number), blocks, size)
            board.show(number, EQUAL + size)
            return None
        for rank in range(board.ranks):
            if rank != board.rank:
                total += blocks.room(rank)
        slot: int = board.table(board.rank, number)
        each: int = total // (board.ranks - 1) if board.ranks > 1 else 0
        if self._table + total > self._most or self._is_large(each):
            return self._tabulate_large(number, blocks, total, lent, changing)
        place: int = self._table
        for rank in range(board.ranks):
            size = 0 if rank == board.rank else blocks.room(rank)
            self._enter(slot, rank, place, size)
            if size:
                board.put_block(slot + place, blocks, rank, size)
            place += size
        board.set_word(slot, SHOWN)
        board.show(number, total)
        return None

    @cfunc
    def _tabulate_large(
        self, number: int, blocks: Blocks, total: int, lent: list[int], changing: bool
    ) -> list[memoryview]:
        """The same, of blocks that have no room."""
        board: Board = self._board
        slot: int = board.table(board.rank, number)
        possible: bool = self._lending.possible()
        kept: list[memoryview] = []
        rank: int
        for rank in range(board.ranks):
            size: int = 0 if rank == board.rank else blocks.room(rank)
            piece = _NOTHING
            address: int = 0
            if size:
                message: Message = blocks.block(rank)
                piece = lent_copy(message) if changing else to_lend(message)
                if possible:
                    address = self._lending.address_of(piece)
                    lent.append(address)
            kept.append(piece)
            self._enter(slot, rank, address, size)
        board.say_lent(number, 0)  # nothing is withdrawn
        board.set_word(slot, LENT if possible else SENT)
        board.show(number, total)
        return kept

    @cfunc
    def _enter(self, slot: int, rank: int, place: int, size: int) -> None:
        """Fill a row of the table."""
        at: int = slot + WORD + rank * ENTRY
        self._board.set_word(at, place)
        self._board.set_word(at + WORD, size)

    @cfunc
    def _take_back(self, lent: list[int]) -> None:
        for address in lent:
            self._lending.take_back(address)

    @cfunc
    def _begin(self, kept: list[memoryview], tag: int) -> Exchange:
        """Begin to send blocks as messages."""
        exchange = Exchange(self._communicator, tag)
        for rank, piece in enumerate(kept):
            if len(piece):
                exchange.send(piece, rank)
        return exchange

    @cfunc
    def _take(self, number: int, rank: int, target: Message, tag: int) -> MPIError | None:
        """This member's block of another's. Returns what is wrong with it."""
        board: Board = self._board
        total: int = board.total_of(rank, number)
        if total >= EQUAL:
            return board.take_equal(board.slot(rank, number), rank, total - EQUAL, target)
        slot: int = board.table(rank, number)
        at: int = slot + WORD + board.rank * ENTRY
        place: U64 = board.word(at)
        size: int = board.word(at + WORD)
        way: U64 = board.word(slot)
        if size >= self._least:
            self._lending.possible()  # it is said by who asks
        if way == SENT and size:
            return self._receive(rank, target, tag)
        if size > target.count * target.layout.size:
            return too_large(size, target, rank)
        if not size:
            return None
        if way == SHOWN:
            board.get(slot + place, target, size)
            return None
        return self._lending.read_message(rank, number, place, target, size)

    @cfunc
    def _take_block(self, number: int, rank: int, receive: Blocks, tag: int) -> MPIError | None:
        """The same into one of the blocks."""
        board: Board = self._board
        total: int = board.total_of(rank, number)
        if total >= EQUAL:
            return board.take_equal_block(board.slot(rank, number), rank, total - EQUAL, receive)
        slot: int = board.table(rank, number)
        at: int = slot + WORD + board.rank * ENTRY
        size: int = board.word(at + WORD)
        if board.word(slot) != SHOWN or size > receive.room(rank):
            return self._take(number, rank, receive.block(rank), tag)
        if size:
            board.get_block(slot + board.word(at), receive, rank, size)
        return None

    # --- blocks of others

    @cfunc
    def _accept(self, number: int, rank: int, receive: Blocks, tag: int) -> MPIError | None:
        """A member's only block. Returns what is wrong with it."""
        board: Board = self._board
        size: int = board.total_of(rank, number)
        address: U64 = 0
        if size >= self._least and self._lending.possible():  # it is said by who asks
            address = board.lent_by(rank, number)
        if size > self._most and not address:
            return self._receive(rank, receive.block(rank), tag)
        if size > receive.room(rank):
            return too_large(size, receive.block(rank), rank)
        if address:
            return self._lending.read_message(rank, number, address, receive.block(rank), size)
        if size:
            board.get_block(board.slot(rank, number), receive, rank, size)
        return None

    @cfunc
    def _receive(self, rank: int, target: Message, tag: int) -> MPIError | None:
        """A block that comes as a message."""
        exchange = Exchange(self._communicator, tag)
        exchange.receive_message(target, rank)
        try:
            finish_exchange(exchange)
        except MPIError as problem:
            return problem
        return None


_NOTHING: Final = memoryview(b"")


@ccall
def finish_exchange(exchange: Exchange) -> None:
    """Wait for messages; if that fails nothing is stored in a user's memory afterwards."""
    try:
        exchange.finish()
    except MPIError:
        exchange.withdraw(patient=True)
        raise
