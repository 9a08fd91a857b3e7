"""inter for one communicator: data straight from their process to where they are wanted.

On one host that is through memory, when there were some calls (`_through_memory`): the members of
both groups are together in a communicator that no program knows of, and a call is one along the
edges between the groups there. Else every block is a message.
"""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.convertor import allocate_memory
from ompy.data.layout import Layout
from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.data.packed import to_send
from ompy.data.request import Request
from ompy.frameworks.coll import OPERATIONS, CollModule, PreparedCall
from ompy.frameworks.coll_base import neighbours
from ompy.frameworks.collectives.call_kinds import KINDS, operation_of
from ompy.frameworks.collectives.call_order import name_of
from ompy.frameworks.collectives.coll_selection import SelectedColl
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.schedule import Schedule, Steps
from ompy.frameworks.collectives.shared_memory import why_no_memory
from ompy.frameworks.collectives.unsized import UnsizedMessages
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.inter.edges import EdgesBetween
from ompy_components.coll.inter.objects import MessagesBetween
from ompy_components.coll.inter.reducing import (
    NOTHING,
    Operands,
    PreparedReduction,
    ReducingCall,
    combine_in_order,
    operands_of,
)

# calls that go by messages first; arbitrary: so many take as long as to make memory
WITHOUT_MEMORY: Final = 8
BY_MESSAGES: Final = -9  # number of a persistent request without memory; arbitrary, nobody else's
REDUCTIONS: Final = frozenset({"reduce", "allreduce", "reduce_scatter"})


# calls in which both groups share memory, where they do
THROUGH_MEMORY: Final = frozenset(
    {
        *("Agree", "Dup", "Merge", "Shrink", "Split"),
        *(name for name in KINDS if operation_of(name) in OPERATIONS),
    }
)


@cclass
class Inter(CollModule):
    """All operations between two groups: for each member, those of the other are its neighbours."""

    _apart: bool
    _edges: EdgesBetween
    _objects: MessagesBetween | None
    _others: Neighbours
    _together: SelectedColl | None
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator) -> None:
        super().__init__(communicator)
        everybody = range(communicator.size)
        self._others = Neighbours(everybody, everybody)
        members = [*communicator.procs, *communicator.own]
        # where all orders are tried, those are of calls by messages
        explored = communicator.context.direct is not None
        self._apart = explored or why_no_memory(communicator.context, members) != ""
        self._edges = EdgesBetween(communicator)
        self._objects = None
        self._together = None

    @cfunc
    def _through_memory(self) -> SelectedColl | None:
        """The collectives of both groups together; None where calls go by messages.

        They are made in a blocking call, which all members are in.
        """
        if self._together is None and not self._apart:
            self._unite()
        return self._together

    @cfunc
    def _unite(self) -> None:
        communicator: Communicator = self.communicator
        uniting = communicator.uniting
        calls: U64 = communicator.order.number
        if uniting is not None and calls > WITHOUT_MEMORY:
            self._together = uniting(communicator).collectives()

    # --- blocking calls

    def barrier(self) -> None:
        """Of both groups together, or a word to each of the other group."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.barrier(self)
        else:
            both.barrier()

    def bcast(self, message: Message, root: int) -> None:
        """From the root to each of the other group."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.bcast(self, message, root)
        else:
            both.neighbor_allgather(*self._edges.broadcast(message, root))

    def scatter(self, send: Blocks | None, receive: Message | None, root: int) -> None:
        """From the root to each of the other group."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.scatter(self, send, receive, root)
        else:
            both.neighbor_alltoall(*self._edges.scatter(send, receive, root))

    def gather(self, send: Message | None, receive: Blocks | None, root: int) -> None:
        """From each of the other group to the root."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.gather(self, send, receive, root)
        else:
            both.neighbor_allgather(*self._edges.gather(send, receive, root))

    def allgather(self, send: Message | None, receive: Blocks) -> None:
        """To each of the other group, and from each."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.allgather(self, send, receive)
        else:
            assert send is not None, "between two groups nothing is in place"
            both.neighbor_allgather(send, receive, self._edges.across)

    def alltoall(self, send: Blocks | None, receive: Blocks) -> None:
        """To each of the other group, and from each."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.alltoall(self, send, receive)
        else:
            assert send is not None, "between two groups nothing is in place"
            both.neighbor_alltoall(send, receive, self._edges.across)

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """To the root, which combines what comes in the order of ranks."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.reduce(self, send, receive, operation, root)
        else:
            self._reduce(both, "reduce", (send, receive, operation, root))

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Each group's data to each of the other, who combine them in the order of ranks."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.allreduce(self, send, receive, operation)
        else:
            self._reduce(both, "allreduce", (send, receive, operation))

    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """As an allreduce; each keeps its part."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            CollModule.reduce_scatter(self, send, receive, counts, operation)
        else:
            self._reduce(both, "reduce_scatter", (send, receive, counts, operation))

    @cfunc
    def _reduce(self, both: SelectedColl, operation: str, arguments: tuple[Any, ...]) -> None:
        """Take the operands along the edges, and combine them."""
        operands: Operands | None = self._operands(operation, arguments)
        _, given = self._edges.along_with(operation, arguments, operands)
        both.neighbor_allgather(*given)
        if operands is not None:
            operands.combine_all()

    @cfunc
    def _operands(self, operation: str, arguments: tuple[Any, ...]) -> Operands | None:
        """What this member combines; None if nothing.

        Args:
            operation: one of `OPERATIONS`.
            arguments: of its call.
        """
        if operation not in REDUCTIONS or arguments[1] is None:
            return None
        receive: Message = arguments[1]
        others: int = self.communicator.size
        if operation != "reduce_scatter":
            return operands_of(receive, arguments[2], others, receive.size, 0)
        counts: list[int] = arguments[2]
        element: int = receive.layout.size
        start: int = sum(counts[: self.communicator.rank]) * element
        return operands_of(receive, arguments[3], others, sum(counts) * element, start)

    # --- nonblocking calls

    @classmethod
    def offers_begin(cls, operation: str) -> bool:
        """Those that are begun through memory, once there is some."""
        return cls.offers_schedule(operation)

    @ccall
    def begin(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> Request | None:
        """Begin a call of both groups together; None where there is none."""
        both: SelectedColl | None = self._together
        if both is None or kept == BY_MESSAGES:
            return None
        operands: Operands | None = self._operands(operation, arguments)
        along, given = self._edges.along_with(operation, arguments, operands)
        begun = both.begin_operation(along, tag, given, word, kept)
        return begun if operands is None else ReducingCall(operands, begun)

    def keep_call(self, operation: str) -> int:
        """The number of a persistent request among those of both groups together."""
        if self._together is None:
            return BY_MESSAGES
        return self._together.keep_call("neighbor_allgather")

    def prepare_call(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> PreparedCall | None:
        """What starts a persistent request of both groups together."""
        if self._together is None or kept == BY_MESSAGES:
            return None
        operands: Operands | None = self._operands(operation, arguments)
        along, given = self._edges.along_with(operation, arguments, operands)
        made = self._together.prepare_call(along, given, tag, word, kept)
        return made if operands is None or made is None else PreparedReduction(operands, made)

    @ccall
    def unsized_messages(self) -> UnsizedMessages | None:
        """Those of both groups together, where there are some."""
        both: SelectedColl | None = self._through_memory()
        carrier: UnsizedMessages | None = None if both is None else both.unsized_messages()
        if carrier is None:
            return None
        if self._objects is None or self._objects.carrier is not carrier:
            self._objects = MessagesBetween(carrier, self._edges)
        return self._objects

    def take_no_part(self) -> Request | None:
        """Say so where both groups are together, of a call that is there."""
        name = name_of(self.communicator.order.word)
        if self._together is None or name not in THROUGH_MEMORY:
            return None
        return self._together.take_no_part()

    # --- the same by messages

    def name_algorithm(self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]) -> str:
        """All operations have one way."""
        return "straight to the other group"

    def name_way(self, operation: str, arguments: tuple[Any, ...]) -> str:
        """Through memory, where there is some; all members ask for it together."""
        return "" if self._through_memory() is None else "through the memory of both groups"

    def schedule_barrier(self, exchange: Exchange) -> Schedule:
        """A word to each of the other group, and one from each."""
        for member in range(exchange.size):
            exchange.swap(NOTHING, member, NOTHING, member)
        yield

    def schedule_bcast(self, exchange: Exchange, message: Message, root: int) -> Schedule:
        """From the root to each of the other group."""
        if root == ROOT:
            for member in range(exchange.size):
                exchange.send_message(message, member)
        elif root != PROC_NULL:
            exchange.receive_message(message, root)
        yield

    def schedule_scatter(
        self, exchange: Exchange, send: Blocks | None, receive: Message | None, root: int
    ) -> Schedule:
        """From the root to each of the other group."""
        if send is not None:
            for member in range(exchange.size):
                exchange.send_message(send[member], member)
        elif receive is not None:
            exchange.receive_message(receive, root)
        yield

    def schedule_gather(
        self, exchange: Exchange, send: Message | None, receive: Blocks | None, root: int
    ) -> Schedule:
        """From each of the other group to the root."""
        if receive is not None:
            for member in range(exchange.size):
                exchange.receive_message(receive[member], member)
        elif send is not None:
            exchange.send_message(send, root)
        yield

    def schedule_allgather(
        self, exchange: Exchange, send: Message | None, receive: Blocks
    ) -> Schedule:
        """To each of the other group, and from each."""
        assert send is not None, "between two groups nothing is in place"
        return neighbours.allgather(exchange, send, receive, self._others)

    def schedule_alltoall(
        self, exchange: Exchange, send: Blocks | None, receive: Blocks
    ) -> Schedule:
        """To each of the other group, and from each."""
        assert send is not None, "between two groups nothing is in place"
        return neighbours.alltoall(exchange, send, receive, self._others)

    def schedule_reduce(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message | None,
        operation: Operation,
        root: int,
    ) -> Schedule:
        """To the root, which combines what comes in the order of ranks."""
        if receive is not None:
            size = receive.size
            heard = yield from _heard(exchange, receive.layout, operation, size)
            combine_in_order(heard, size, 0, receive, operation)
        elif send is not None:
            exchange.send(to_send(send), root)
            yield

    def schedule_allreduce(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """Each group's data to each of the other, who combine them in the order of ranks."""
        assert send is not None, "between two groups nothing is in place"
        size = receive.size
        _send_to_all(exchange, to_send(send))
        heard = yield from _heard(exchange, receive.layout, operation, size)
        combine_in_order(heard, size, 0, receive, operation)

    def schedule_reduce_scatter(
        self,
        exchange: Exchange,
        send: Message | None,
        receive: Message,
        counts: list[int],
        operation: Operation,
    ) -> Schedule:
        """As an allreduce; each keeps its part, as the other group does not know the counts."""
        assert send is not None, "between two groups nothing is in place"
        element = receive.layout.size
        size, start = sum(counts) * element, sum(counts[: exchange.rank]) * element
        _send_to_all(exchange, to_send(send))
        heard = yield from _heard(exchange, receive.layout, operation, size)
        combine_in_order(heard, size, start, receive, operation)


def _send_to_all(exchange: Exchange, data: memoryview) -> None:
    for member in range(exchange.size):
        exchange.send(data, member)


def _heard(exchange: Exchange, layout: Layout, operation: Operation, size: int) -> Steps:
    """So many bytes of each of the other group to combine, one member's behind the other's."""
    operation.check_layout(layout)
    heard = allocate_memory(size * exchange.size)
    for member in range(exchange.size):
        exchange.receive(heard[member * size : (member + 1) * size], member)
    yield
    return heard
