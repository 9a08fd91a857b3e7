"""Nonblocking calls along the edges of a topology on a board: tables of edges in the slots.

A member shows a table as in a blocking call (`slots.py`). It waits for its sources alone, and takes
from each what its edges lead to. Large blocks are lent until the targets have read them. What is
not lent and has no room in a slot goes as messages under the call's tag: all blocks of that member,
as its targets see by the way.
"""

from __future__ import annotations

from typing import Any

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.data.message import Blocks, Message
from ompy.data.packed import to_lend
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.nonblocking_board import NonblockingBoard
from ompy_components.coll.sm.nonblocking_calls import NonblockingCall
from ompy_components.coll.sm.slots import (
    EQUAL,
    LENT,
    SENT,
    SHOWN,
    WORD,
    bytes_along,
    edges_are_large,
    pieces_along,
)


@cclass
class EdgeCall(NonblockingCall):
    """One call of one member: `neighbor_allgather` or `neighbor_alltoall`."""

    _edges: Neighbours
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
        self._edges = arguments[2]
        self.sources = self._edges.members

    @ccall
    def show_own(self) -> None:
        """Show this member's blocks with their targets, or begin with none of them."""
        board: NonblockingBoard = self._board
        edges = self._edges
        given: Any = self._arguments[0]
        same: Message | None = given if isinstance(given, Message) else None
        blocks: Blocks | None = None if same is not None else given
        said: int = 0
        total: int = bytes_along(same, blocks, edges)
        slot: int = board.table(self._rank, self.slot)
        large: bool = edges_are_large(total, len(edges.sending), board.room, board.least)
        if large and board.lending.possible():
            addresses: list[int] = []
            for piece in pieces_along(same, blocks, edges):
                addresses.append(self._lend(piece))
            board.lend_edges(slot, same, blocks, edges, addresses)
            board.say_lent(self.slot, 0)  # nothing is withdrawn
            self.readers = tuple([edges.targets[each] for each in edges.sending])
        elif total > board.room:
            board.set_word(slot, SENT)
            self._keep_to_send(same, blocks)
        else:
            own: int = board.slot(self._rank, self.slot)
            said = board.lay_equal_edges(own, same, blocks, edges, board.room)
            if not said:
                board.lay_edges(slot, same, blocks, edges, total)
        board.show(self, said or total)

    @cfunc
    def _keep_to_send(self, same: Message | None, blocks: Blocks | None) -> None:
        """What goes as messages, in the order in which its receivers take it."""
        edges = self._edges
        if same is not None:
            data = to_lend(same)
            self._sends = [(data, edges.targets[each]) for each in edges.sending]
        elif blocks is not None:
            for each in edges.sending:
                self._send_later(to_lend(blocks.block(each)), edges.targets[each])

    @ccall
    def take_others(self) -> None:
        """Take a block for each edge that leads here."""
        board: NonblockingBoard = self._board
        edges = self._edges
        receive: Blocks = self._arguments[1]
        problem: MPIError | None = None
        for turn, each in zip(edges.turns, edges.receiving):  # noqa: B905 - alike as they are made
            rank: int = edges.sources[each]
            said: int = board.total(rank, self.slot)
            if said >= EQUAL:
                at: int = board.slot(rank, self.slot)
                found = board.take_equal_edge(at, said - EQUAL, rank, turn, receive, each)
                problem = problem or found
                continue
            slot: int = board.table(rank, self.slot)
            way: U64 = board.word(slot)
            if way != SHOWN:
                board.lending.possible()  # it is said by who asks
            if way == SENT:
                self._receive_later(receive.block(each), rank)
            elif way == LENT:
                found = self._read_edge(slot, rank, turn, each)
                problem = problem or found
            else:
                found = board.take_edge(slot, rank, self._rank, turn, receive, each)
                problem = problem or found
        self._end_step(problem)

    @cfunc
    def _read_edge(self, slot: int, rank: int, turn: int, each: int) -> MPIError | None:
        """The block that a member has lent for an edge. Returns what is wrong with it."""
        board: NonblockingBoard = self._board
        receive: Blocks = self._arguments[1]
        row: int = board.find_edge(slot, self._rank, turn)
        problem = board.wrong_edge(row, rank, self._rank, receive, each)
        if problem is not None:
            return problem
        address: U64 = board.word(row + WORD)
        size: int = board.word(row + 2 * WORD)
        return board.read_lent(self, rank, address, receive.block(each), size) if size else None
