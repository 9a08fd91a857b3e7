"""Blocking calls along the edges of a topology on a board: tables of edges in the slots.

A member shows a table (`slots.py`) with its blocks, or lends these if they are large
(`lending.py`), and takes from its sources what their edges lead to. It waits for its sources, and
for the targets of what it has lent. Where nothing can be lent, blocks that have no room go as
messages under the call's tag, as their readers see by the way.
"""

from __future__ import annotations

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.data.message import Blocks, Message
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.blocks import finish_exchange
from ompy_components.coll.sm.board import Board
from ompy_components.coll.sm.lending import Lending
from ompy_components.coll.sm.slots import (
    EQUAL,
    LENT,
    SENT,
    WORD,
    bytes_along,
    edges_are_large,
    pieces_along,
)


@cclass
class EdgeOperations:
    """What one member does in `neighbor_allgather` and `neighbor_alltoall`."""

    _board: Board
    _communicator: Communicator
    _least: int
    _lending: Lending
    _most: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, board: Board, lending: Lending, most: int, least: int
    ) -> None:
        """Begin with a board where nothing was shown; the arguments are `BlockOperations`'."""
        self._communicator = communicator
        self._board = board
        self._lending = lending
        self._most = most
        self._least = least

    @ccall
    def pass_along(
        self,
        send: Message | None,
        blocks: Blocks | None,
        receive: Blocks,
        edges: Neighbours,
        tag: int,
    ) -> None:
        """A block along each edge: `send` along all, or one of `blocks` each; and one from each."""
        board: Board = self._board
        number: int = board.next_fragment()
        exchange: Exchange | None = None
        lent: list[int] = []
        total: int = bytes_along(send, blocks, edges)
        kept = self._show_along(number, send, blocks, edges, total, lent)
        if kept is None and total > self._most:
            exchange = self._send_along(send, blocks, edges, tag)
        try:
            if board.join(number):
                board.wake()
            problem = self._take_edges(number, receive, edges, exchange, tag)
            for target in self._targets(edges) if lent else ():
                board.wait_until_member_done(target, number)
        except BaseException:
            if lent:
                self._lending.withdraw_lent(number)
            raise
        finally:
            for address in lent:
                self._lending.take_back(address)
        if problem is not None:
            raise problem

    @cfunc
    def _show_along(
        self,
        number: int,
        send: Message | None,
        blocks: Blocks | None,
        edges: Neighbours,
        total: int,
        lent: list[int],
    ) -> list[memoryview] | None:
        """Show the blocks, or lend them; the arguments are as of `_lend_edges`.

        Returns:
            What is lent, to be kept until its readers are done; None if nothing is.
        """
        board: Board = self._board
        kept: list[memoryview] | None = None
        said: int = 0
        if (
            edges_are_large(total, len(edges.sending), self._most, self._least)
            and self._lending.possible()
        ):
            kept = self._lend_edges(number, send, blocks, edges, lent)
        elif total > self._most:
            board.set_word(board.table(board.rank, number), SENT)
        else:
            own: int = board.slot(board.rank, number)
            said = board.lay_equal_edges(own, send, blocks, edges, self._most)
            if not said:
                board.lay_edges(board.table(board.rank, number), send, blocks, edges, total)
        board.show(number, said or total)
        return kept

    @cfunc
    def _targets(self, edges: Neighbours) -> list[int]:
        """The members that edges lead to from here."""
        return [edges.targets[each] for each in edges.sending]

    @cfunc
    def _take_edges(
        self, number: int, receive: Blocks, edges: Neighbours, exchange: Exchange | None, tag: int
    ) -> MPIError | None:
        """A block from each edge that leads here. Returns what is wrong."""
        board: Board = self._board
        problem: MPIError | None = None
        for turn, each in zip(edges.turns, edges.receiving):  # noqa: B905 - alike as they are made
            rank: int = edges.sources[each]
            board.wait_for_members(rank, rank + 1, number)
            said: int = board.total_of(rank, number)
            if said >= EQUAL:
                at: int = board.slot(rank, number)
                found = board.take_equal_edge(at, said - EQUAL, rank, turn, receive, each)
                problem = problem or found
                continue
            slot: int = board.table(rank, number)
            way: U64 = board.word(slot)
            if way == SENT:
                self._lending.possible()  # it is said by who asks
                if exchange is None:
                    exchange = Exchange(self._communicator, tag)
                exchange.whole = receive.must_fill
                exchange.receive_message(receive.block(each), rank)
            elif way == LENT:
                found = self._read_edge(number, rank, turn, receive, each)
                problem = problem or found
            else:
                found = board.take_edge(slot, rank, board.rank, turn, receive, each)
                problem = problem or found
        board.finish(number)
        if exchange is not None:
            finish_exchange(exchange)
        return problem

    @cfunc
    def _read_edge(
        self, number: int, rank: int, turn: int, receive: Blocks, each: int
    ) -> MPIError | None:
        """The block that a member has lent for an edge. Returns what is wrong with it."""
        board: Board = self._board
        slot: int = board.table(rank, number)
        self._lending.possible()  # it is said by who asks
        row: int = board.find_edge(slot, board.rank, turn)
        problem = board.wrong_edge(row, rank, board.rank, receive, each)
        if problem is not None:
            return problem
        size: int = board.word(row + 2 * WORD)
        if not size:
            return None
        address: U64 = board.word(row + WORD)
        return self._lending.read_message(rank, number, address, receive.block(each), size)

    @cfunc
    def _lend_edges(
        self,
        number: int,
        send: Message | None,
        blocks: Blocks | None,
        edges: Neighbours,
        lent: list[int],
    ) -> list[memoryview]:
        """Lend the blocks, and write a table of them with their targets.

        Args:
            number: of the fragment.
            send: as of `pass_along`.
            blocks: likewise.
            edges: likewise.
            lent: addresses that have to be taken back are appended.

        Returns:
            The blocks in one piece each, to be kept until they were read.
        """
        board: Board = self._board
        pieces = pieces_along(send, blocks, edges)
        for piece in pieces:
            lent.append(self._lending.address_of(piece))
        board.lend_edges(board.table(board.rank, number), send, blocks, edges, lent)
        board.say_lent(number, 0)  # nothing is withdrawn
        return pieces

    @cfunc
    def _send_along(
        self, send: Message | None, blocks: Blocks | None, edges: Neighbours, tag: int
    ) -> Exchange:
        """Begin to send what has no room."""
        exchange = Exchange(self._communicator, tag)
        if blocks is not None:
            exchange.send_blocks(blocks, edges.targets, edges.sending)
        elif send is not None:
            for each in edges.sending:
                exchange.send_message(send, edges.targets[each])
        return exchange
