"""inter for one communicator: data straight from their process to where they are wanted.

On one host that is through memory, when there were some calls (`_through_memory`): the members of
both groups are together in a communicator that no program knows of, and a call is one along the
edges between the groups there. Else every block is a message.
"""

from __future__ import annotations

from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.convertor import allocate_memory, scratch_memory
from ompy.data.layout import BYTES, Layout
from ompy.data.message import Blocks, Message, equal_blocks
from ompy.data.operation import Operation
from ompy.data.packed import to_send
from ompy.data.request import Request
from ompy.frameworks.coll import (
    TAG_ALLGATHER,
    TAG_ALLREDUCE,
    TAG_ALLTOALL,
    TAG_BARRIER,
    TAG_BCAST,
    TAG_GATHER,
    TAG_REDUCE,
    TAG_REDUCE_SCATTER,
    TAG_SCATTER,
    CollModule,
    PreparedCall,
)
from ompy.frameworks.coll_base import neighbours
from ompy.frameworks.collectives.coll_selection import SelectedColl
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.schedule import Schedule, Steps
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.inter.edges import NOTHING, EdgesBetween, one_block

# calls that go by messages first; arbitrary: so many take as long as to make memory
WITHOUT_MEMORY: Final = 8
BY_MESSAGES: Final = -9  # number of a persistent request without memory; arbitrary, nobody else's
# what is begun through memory; the others' results are combined where they come as messages
BEGUN: Final = frozenset({"barrier", "bcast", "scatter", "gather", "allgather", "alltoall"})


@cclass
class Inter(CollModule):
    """All operations between two groups: for each member, those of the other are its neighbours."""

    _apart: bool
    _edges: EdgesBetween
    _others: Neighbours
    _together: SelectedColl | None
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator) -> None:
        super().__init__(communicator)
        everybody = range(communicator.size)
        self._others = Neighbours(everybody, everybody)
        self._apart = not _share_a_host(communicator)
        self._edges = EdgesBetween(communicator)
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
            self._complete(TAG_BARRIER, self.schedule_barrier)
        else:
            both.barrier()

    def bcast(self, message: Message, root: int) -> None:
        """From the root to each of the other group."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            self._complete(TAG_BCAST, self.schedule_bcast, message, root)
        else:
            both.neighbor_allgather(*self._edges.broadcast(message, root))

    def scatter(self, send: Blocks | None, receive: Message | None, root: int) -> None:
        """From the root to each of the other group."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            self._complete(TAG_SCATTER, self.schedule_scatter, send, receive, root)
        else:
            both.neighbor_alltoall(*self._edges.scatter(send, receive, root))

    def gather(self, send: Message | None, receive: Blocks | None, root: int) -> None:
        """From each of the other group to the root."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            self._complete(TAG_GATHER, self.schedule_gather, send, receive, root)
        else:
            both.neighbor_allgather(*self._edges.gather(send, receive, root))

    def allgather(self, send: Message | None, receive: Blocks) -> None:
        """To each of the other group, and from each."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            self._complete(TAG_ALLGATHER, self.schedule_allgather, send, receive)
        else:
            assert send is not None, "between two groups nothing is in place"
            both.neighbor_allgather(send, receive, self._edges.across)

    def alltoall(self, send: Blocks | None, receive: Blocks) -> None:
        """To each of the other group, and from each."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            self._complete(TAG_ALLTOALL, self.schedule_alltoall, send, receive)
        else:
            assert send is not None, "between two groups nothing is in place"
            both.neighbor_alltoall(send, receive, self._edges.across)

    def reduce(
        self, send: Message | None, receive: Message | None, operation: Operation, root: int
    ) -> None:
        """To the root, which combines what comes in the order of ranks."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            self._complete(TAG_REDUCE, self.schedule_reduce, send, receive, operation, root)
        elif receive is not None:
            size: int = receive.size
            self._reduce(both, None, receive, operation, size, 0)
        else:
            both.neighbor_allgather(*self._edges.gather(send, None, root))

    def allreduce(self, send: Message | None, receive: Message, operation: Operation) -> None:
        """Each group's data to each of the other, who combine them in the order of ranks."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            self._complete(TAG_ALLREDUCE, self.schedule_allreduce, send, receive, operation)
        else:
            self._reduce(both, send, receive, operation, receive.size, 0)

    def reduce_scatter(
        self, send: Message | None, receive: Message, counts: list[int], operation: Operation
    ) -> None:
        """As an allreduce; each keeps its part."""
        both: SelectedColl | None = self._through_memory()
        if both is None:
            plan = self.schedule_reduce_scatter
            self._complete(TAG_REDUCE_SCATTER, plan, send, receive, counts, operation)
        else:
            element: int = receive.layout.size
            start: int = sum(counts[: self.communicator.rank]) * element
            self._reduce(both, send, receive, operation, sum(counts) * element, start)

    @cfunc
    def _reduce(
        self,
        both: SelectedColl,
        send: Message | None,
        receive: Message,
        operation: Operation,
        size: int,
        start: int,
    ) -> None:
        """Combine a part of what each of the other group gives.

        Args:
            both: the collectives of both groups.
            send: what this member gives; None for nothing.
            receive: room for the part.
            operation: what combines them.
            size: bytes of what each gives.
            start: where the part begins in it.
        """
        operation.check_layout(receive.layout)
        others: int = self.communicator.size
        alone: bool = others == 1 and size == receive.size  # nothing is combined
        heard = NOTHING if alone else scratch_memory(size * others)
        blocks = one_block(receive) if alone else equal_blocks(heard, 0, size, BYTES, others)
        blocks.must_fill = True
        if send is None:
            both.neighbor_allgather(self._edges.nothing, blocks, self._edges.from_others)
        else:
            both.neighbor_allgather(send, blocks, self._edges.across)
        if not alone:
            _combine_in_order(heard, size, start, receive, operation)

    # --- nonblocking calls

    @classmethod
    def offers_begin(cls, operation: str) -> bool:
        """Those that are begun through memory, once there is some."""
        return operation in BEGUN

    @ccall
    def begin(
        self, operation: str, arguments: tuple[Any, ...], tag: int, word: U64, kept: int
    ) -> Request | None:
        """Begin a call of both groups together; None where there is none."""
        both: SelectedColl | None = self._together
        if both is None or kept == BY_MESSAGES:
            return None
        along, given = self._edges.along(operation, arguments)
        return both.begin_operation(along, tag, given, word, kept)

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
        along, given = self._edges.along(operation, arguments)
        return self._together.prepare_call(along, given, tag, word, kept)

    def take_no_part(self) -> Request | None:
        """Say so where both groups are together."""
        return None if self._together is None else self._together.take_no_part()

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
            _combine_in_order(heard, size, 0, receive, operation)
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
        _combine_in_order(heard, size, 0, receive, operation)

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
        _combine_in_order(heard, size, start, receive, operation)


def _share_a_host(between: Communicator) -> bool:
    """Whether the members of both groups may share memory, and messages go through it."""
    context = between.context
    if context.recovery is not None or context.direct is not None:
        return False  # members may die; or what is tried are calls by messages
    hosts = {proc.node for proc in (*between.procs, *between.own)}
    return len(hosts) == 1 and any(module.name == "sm" for module in context.btls)


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


@cfunc
def _combine_in_order(
    heard: memoryview, size: int, start: int, receive: Message, operation: Operation
) -> None:
    """Combine a part of what members have given, in the order of their ranks.

    Args:
        heard: what they gave, side by side; it is changed.
        size: bytes of each.
        start: where the part begins.
        receive: room for it.
        operation: what combines them.
    """
    layout: Layout = receive.layout
    part: int = receive.count * layout.size
    if not part:
        return
    last: int = raw.size(heard) - size + start
    left: int = last - size
    while left >= 0:  # `left op right` is stored in the right one
        operation.combine(layout, heard, left, heard, last, part)
        left -= size
    to: int = receive.place()
    if to >= 0:
        raw.copy(receive.memory, to, heard, last, part)
    else:
        receive.store(heard[last : last + part])
