"""Nonblocking calls along the edges of a topology on a board: tables of edges in the slots.

A member shows a table as in a blocking call (`blocks.py`): way, number of edges, then for each the
target, and place and bytes of its block, then the blocks. It waits for its sources alone, and takes
from each what its edges lead to. What has no room in a slot goes as messages under the call's tag:
all blocks of that member, as its targets see by the way.
"""

from __future__ import annotations

from typing import Any

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_TOPOLOGY, MPIError
from ompy.data.message import Blocks, Message
from ompy.data.packed import to_send, too_large
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.schedule import CollectiveRequest
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.sm.blocks import EDGE, EDGES, SENT, SHOWN, WORD
from ompy_components.coll.sm.nonblocking_board import NonblockingBoard
from ompy_components.coll.sm.nonblocking_calls import NonblockingCall


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
        count: int = len(edges.sending)
        place: int = EDGES + count * EDGE
        total: int = place + self._bytes_of(same, blocks)
        slot: int = board.slot(self._rank, self.slot)
        if total > board.room:
            board.set_word(slot, SENT)
            self._keep_to_send(same, blocks)
            board.show(self, total)
            return
        row: int = slot + EDGES
        block: Message | None = same
        for each in edges.sending:
            if blocks is not None:
                block = blocks.block(each)
            assert block is not None, "there is one for each edge"
            size: int = block.count * block.layout.size
            board.set_word(row, edges.targets[each])
            board.set_word(row + WORD, place)
            board.set_word(row + 2 * WORD, size)
            row += EDGE
            if blocks is not None:
                self._put(slot + place, block, size)
                place += size
        if same is not None:
            self._put(slot + place, same, total - place)
        board.set_word(slot, SHOWN)
        board.set_word(slot + WORD, count)
        board.show(self, total)

    @cfunc
    def _bytes_of(self, same: Message | None, blocks: Blocks | None) -> int:
        """Bytes of the blocks that lie behind the table."""
        if same is not None:
            return same.count * same.layout.size
        total: int = 0
        if blocks is not None:
            for each in self._edges.sending:
                total += blocks.room(each)
        return total

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
            target: Message = receive.block(each)
            if board.word(board.slot(rank, self.slot)) == SENT:
                self._receive_later(target, rank)
            else:
                found = self._take_edge(rank, turn, target)
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

    @cfunc
    def _take_edge(self, rank: int, turn: int, target: Message) -> MPIError | None:
        """What a member has shown for this one, for its edge of that number."""
        board: NonblockingBoard = self._board
        slot: int = board.slot(rank, self.slot)
        row: int = slot + EDGES
        end: int = row + board.word(slot + WORD) * EDGE
        own: U64 = self._rank
        passed: int = 0
        while row < end:
            if board.word(row) == own:
                if passed == turn:
                    size: int = board.word(row + 2 * WORD)
                    if size > target.count * target.layout.size:
                        return too_large(size, target, rank)
                    self._get(slot + board.word(row + WORD), target, size)
                    return None
                passed += 1
            row += EDGE
        return MPIError(
            ERR_TOPOLOGY,
            f"rank {rank} has {passed} edges to rank {self._rank}, where one more is received from",
        )
