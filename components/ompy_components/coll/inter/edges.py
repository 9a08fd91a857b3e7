"""A call between two groups as one along edges, in a communicator of both."""

from __future__ import annotations

from typing import Any

from ompy.compiled import ccall, cclass, cfunc
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.layout import BYTES
from ompy.data.message import Blocks, Message, equal_blocks, message_of
from ompy.frameworks.collectives.group_edges import GroupEdges
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.inter.reducing import NOTHING, Operands, one_block


@cclass
class EdgesBetween(GroupEdges):
    """The edges of a member in both groups together, and calls along them.

    Attributes:
        nothing: what a member gives that has nothing to give.
    """

    _empty: Blocks
    nothing: Message
    __slots__ = tuple(__annotations__)

    def __init__(self, between: Communicator) -> None:
        """Those of a communicator between two groups."""
        first = len(between.own) if between.leads() else 0
        GroupEdges.__init__(self, between.size, first)
        self._empty = equal_blocks(NOTHING, 0, 0, BYTES, 0)
        self.nothing = message_of(NOTHING, 0, 0, BYTES)

    @ccall
    def broadcast(self, message: Message, root: int) -> tuple[Message, Blocks, Neighbours]:
        """What a member gives to all, where it gets what, and along which edges.

        The arguments are those of `CollModule.bcast`; those of the others likewise.
        """
        edges = self.of_broadcast(root)
        if root == ROOT:
            return message, self._empty, edges
        return self.nothing, self._empty if root == PROC_NULL else one_block(message), edges

    @ccall
    def scatter(
        self, send: Blocks | None, receive: Message | None, root: int
    ) -> tuple[Blocks, Blocks, Neighbours]:
        """The same of a scatter; what a member gives is a block for each."""
        given = self._empty if send is None else send
        room = self._empty if receive is None else one_block(receive)
        return given, room, self.of_broadcast(root)

    @ccall
    def gather(
        self, send: Message | None, receive: Blocks | None, root: int
    ) -> tuple[Message, Blocks, Neighbours]:
        """The same of a gather."""
        given = self.nothing if send is None else send
        room = self._empty if receive is None else receive
        return given, room, self.of_gather(root)

    @ccall
    def along_with(
        self, operation: str, arguments: tuple[Any, ...], operands: Operands | None
    ) -> tuple[str, tuple[Any, ...]]:
        """A call as one of both groups together: its name, and its arguments.

        Args:
            operation: one of `OPERATIONS`.
            arguments: of its call.
            operands: of a reduction; None where this member combines nothing.
        """
        if operands is not None:
            if operation == "reduce":
                return "neighbor_allgather", (self.nothing, operands.blocks, self.from_others)
            return "neighbor_allgather", (arguments[0], operands.blocks, self.across)
        if operation == "reduce":
            return "neighbor_allgather", self.gather(arguments[0], None, arguments[3])
        return self._without_operands(operation, arguments)

    @cfunc
    def _without_operands(
        self, operation: str, arguments: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        """The same of what is no reduction."""
        if operation == "barrier":
            return operation, arguments
        first, second = arguments[0], arguments[1]
        if operation == "bcast":
            return "neighbor_allgather", self.broadcast(first, second)
        if operation == "gather":
            return "neighbor_allgather", self.gather(first, second, arguments[2])
        if operation == "scatter":
            return "neighbor_alltoall", self.scatter(first, second, arguments[2])
        return f"neighbor_{operation}", (first, second, self.across)
