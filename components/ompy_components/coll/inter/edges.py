"""A call between two groups as one along edges, in a communicator of both."""

from __future__ import annotations

from typing import Any

from ompy.compiled import ccall, cclass, cfunc
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.layout import BYTES
from ompy.data.message import Blocks, Message, equal_blocks, message_of
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.inter.reducing import NOTHING, Operands, one_block


@cclass
class EdgesBetween:
    """The neighbours of a member in each kind of call, by their ranks in both groups together.

    Attributes:
        across: to each of the other group, and from each.
        from_others: from each of the other group.
        nobody: none: of the members of a root's group.
        nothing: what a member gives that has nothing to give.
        to_others: to each of the other group.
    """

    _first: int
    _empty: Blocks
    _from_one: dict[int, Neighbours]
    _to_one: dict[int, Neighbours]
    across: Neighbours
    from_others: Neighbours
    nobody: Neighbours
    nothing: Message
    to_others: Neighbours
    __slots__ = tuple(__annotations__)

    def __init__(self, between: Communicator) -> None:
        """Those of a communicator between two groups."""
        first = 0 if between.first() is between.procs[0] else len(between.own)
        others = range(first, first + between.size)
        self._first = first
        self._empty = equal_blocks(NOTHING, 0, 0, BYTES, 0)
        self._from_one = {}
        self._to_one = {}
        self.across = Neighbours(others, others)
        self.from_others = Neighbours(others, ())
        self.nothing = message_of(NOTHING, 0, 0, BYTES)
        self.nobody = Neighbours((), ())
        self.to_others = Neighbours((), others)

    @cfunc
    def _from_member(self, root: int) -> Neighbours:
        """From one member of the other group."""
        found: Neighbours | None = self._from_one.get(root)
        if found is None:
            found = self._from_one[root] = Neighbours((self._first + root,), ())
        return found

    @cfunc
    def _to_member(self, root: int) -> Neighbours:
        """To one member of the other group."""
        found: Neighbours | None = self._to_one.get(root)
        if found is None:
            found = self._to_one[root] = Neighbours((), (self._first + root,))
        return found

    @ccall
    def broadcast(self, message: Message, root: int) -> tuple[Message, Blocks, Neighbours]:
        """What a member gives to all, where it gets what, and along which edges.

        The arguments are those of `CollModule.bcast`; those of the others likewise.
        """
        if root == ROOT:
            return message, self._empty, self.to_others
        if root == PROC_NULL:
            return self.nothing, self._empty, self.nobody
        return self.nothing, one_block(message), self._from_member(root)

    @ccall
    def scatter(
        self, send: Blocks | None, receive: Message | None, root: int
    ) -> tuple[Blocks, Blocks, Neighbours]:
        """The same of a scatter; what a member gives is a block for each."""
        if send is not None:
            return send, self._empty, self.to_others
        if receive is None:
            return self._empty, self._empty, self.nobody
        return self._empty, one_block(receive), self._from_member(root)

    @ccall
    def gather(
        self, send: Message | None, receive: Blocks | None, root: int
    ) -> tuple[Message, Blocks, Neighbours]:
        """The same of a gather."""
        if receive is not None:
            return self.nothing, receive, self.from_others
        if send is None:
            return self.nothing, self._empty, self.nobody
        return send, self._empty, self._to_member(root)

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
