"""self for one communicator: what its only member gives, it gets."""

from __future__ import annotations

from typing import Any

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_TOPOLOGY, MPIError
from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.data.packed import copy_message
from ompy.data.request import Request
from ompy.frameworks.coll import NEIGHBOURHOODS, OPERATIONS, CollModule
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.schedule import CollectiveRequest
from ompy.frameworks.explanation import Branch, Choice

_ALONE = 0  # the member's rank


@cclass
class SelfColl(CollModule):
    """All operations."""

    __slots__ = ()

    @classmethod
    def offers_begin(cls, operation: str) -> bool:
        """All of them."""
        return operation in OPERATIONS or operation in NEIGHBOURHOODS

    @ccall
    def begin(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> Request | None:
        """Do it at once."""
        getattr(self, operation)(*arguments)
        request = CollectiveRequest()
        request.complete = True
        return request

    def name_way(self, operation: str, arguments: tuple[Any, ...]) -> str:
        """All operations have one way."""
        return "a copy"

    def explain_choice(
        self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]
    ) -> Choice:
        """There is nobody to send anything to."""
        return Choice((Branch("the communicator has one member"),), (), ())

    def barrier(self) -> None:
        """Wait for nobody."""

    def bcast(self, message: Message, root: int) -> None:
        """The member has it."""

    def scatter(self, send: Blocks | None, receive: Message | None, root: int) -> None:
        """Copy the only block."""
        if send is not None and receive is not None:
            copy_message(send.block(_ALONE), receive, _ALONE)

    def gather(self, send: Message | None, receive: Blocks | None, root: int) -> None:
        """Copy the only block."""
        if send is not None and receive is not None:
            copy_message(send, receive.block(_ALONE), _ALONE)

    def allgather(self, send: Message | None, receive: Blocks) -> None:
        """Copy the only block."""
        if send is not None:
            copy_message(send, receive.block(_ALONE), _ALONE)

    def alltoall(self, send: Blocks | None, receive: Blocks) -> None:
        """Copy the only block."""
        if send is not None:
            copy_message(send.block(_ALONE), receive.block(_ALONE), _ALONE)

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """Copy the data: there is nothing to combine them with."""
        if receive is not None:
            self._copy(send, receive, operation)

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Copy the data: there is nothing to combine them with."""
        self._copy(send, receive, operation)

    def scan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Copy the data: there is nothing to combine them with."""
        self._copy(send, receive, operation)

    def exscan(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """The first member gets nothing."""
        operation.check_layout(receive.layout)

    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """Copy the data: the member's part is all of them."""
        self._copy(send, receive, operation)

    # --- along edges, which all lead back to the member

    def neighbor_allgather(self, send: Message, receive: Blocks, neighbours: Neighbours) -> None:
        """Copy the message to the block of each edge."""
        _check_edges(neighbours)
        place: int
        for place in neighbours.receiving:
            copy_message(send, receive.block(place), _ALONE)

    def neighbor_alltoall(self, send: Blocks, receive: Blocks, neighbours: Neighbours) -> None:
        """Copy each block along its edge, in the order of sending and that of receiving."""
        _check_edges(neighbours)
        turn: int
        for turn in range(len(neighbours.receiving)):
            block = send.block(neighbours.sending[turn])
            copy_message(block, receive.block(neighbours.receiving[turn]), _ALONE)

    @cfunc
    def _copy(self, send: Message | None, receive: Message, operation: Operation) -> None:
        operation.check_layout(receive.layout)
        if send is not None:
            copy_message(send, receive, _ALONE)


@cfunc
def _check_edges(neighbours: Neighbours) -> None:
    """See that each edge has two ends.

    Raises:
        MPIError: ERR_TOPOLOGY, one has not: what is to be received there never comes.
    """
    to: int = len(neighbours.receiving)
    away: int = len(neighbours.sending)
    if to != away:
        detail = f"a graph of one member has {to} edges to it and {away} from it"
        raise MPIError(ERR_TOPOLOGY, detail)
