"""Nonblocking calls along the edges of a topology on a board: tables of edges in the slots.

A member shows a table as in a blocking call (`slots.py`). It waits for its sources alone, and takes
from each what its edges lead to. What has no room in a slot goes as messages under the call's tag:
all blocks of that member, as its targets see by the way.
"""

from __future__ import annotations

from typing import Any

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import MPIError
from ompy.data.message import Blocks, Message
from ompy.data.packed import to_send
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.schedule import CollectiveRequest
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.nonblocking_board import NonblockingBoard
from ompy_components.coll.sm.nonblocking_calls import NonblockingCall
from ompy_components.coll.sm.slots import SENT, bytes_along


@cclass
class EdgeCall(NonblockingCall):
    """One call of one member: `neighbor_allgather` or `neighbor_alltoall`."""

    _edges: Neighbours
    _failure: MPIError | None
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
        self._failure = None
        self.sources = self._edges.members

    @ccall
    def set_up_again(self) -> bool:
        """As that of any call; nothing has failed."""
        self._failure = None
        return NonblockingCall.set_up_again(self)

    @ccall
    def show_own(self) -> None:
        """Show this member's blocks with their targets, or begin with none of them."""
        board: NonblockingBoard = self._board
        edges = self._edges
        given: Any = self._arguments[0]
        same: Message | None = given if isinstance(given, Message) else None
        blocks: Blocks | None = None if same is not None else given
        total: int = bytes_along(same, blocks, edges)
        slot: int = board.table(self._rank, self.slot)
        if total > board.room:
            board.set_word(slot, SENT)
            self._keep_to_send(same, blocks)
        else:
            board.lay_edges(slot, same, blocks, edges, total)
        board.show(self, total)

    @cfunc
    def _keep_to_send(self, same: Message | None, blocks: Blocks | None) -> None:
        """What goes as messages, in the order in which its receivers take it."""
        edges = self._edges
        if same is not None:
            data = to_send(same)
            self._sends = [(data, edges.targets[each]) for each in edges.sending]
        elif blocks is not None:
            for each in edges.sending:
                self._send_later(to_send(blocks.block(each)), edges.targets[each])

    @ccall
    def take_others(self) -> None:
        """Take a block for each edge that leads here."""
        board: NonblockingBoard = self._board
        edges = self._edges
        receive: Blocks = self._arguments[1]
        problem: MPIError | None = None
        for turn, each in zip(edges.turns, edges.receiving):  # noqa: B905 - alike as they are made
            rank: int = edges.sources[each]
            slot: int = board.table(rank, self.slot)
            if board.word(slot) == SENT:
                self._receive_later(receive.block(each), rank)
            else:
                found = board.take_edge(slot, rank, self._rank, turn, receive, each)
                problem = problem or found
        if problem is not None and not self._sends and not self._receives:
            raise problem
        self._failure = problem  # when the messages have ended, as others wait for these
        self._end_step()

    def _end_messages(self, request: CollectiveRequest) -> None:
        """As the messages have ended, so has the call, if nothing was wrong with the rest."""
        if self._failure is not None and not request.error:
            self.fail(self._failure.code, self._failure.detail)
        else:
            super()._end_messages(request)
