"""inter for one communicator: every message straight from its process to where it is wanted."""

from __future__ import annotations

from typing import Any

from ompy.compiled import cclass
from ompy.data.constants import PROC_NULL, ROOT
from ompy.data.convertor import allocate_memory
from ompy.data.message import Blocks, Message
from ompy.data.operation import Operation
from ompy.data.packed import Room, to_send
from ompy.frameworks.coll import CollModule
from ompy.frameworks.coll_base import neighbours
from ompy.frameworks.coll_base.combine import combining
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.schedule import Schedule, Steps
from ompy.frameworks.communicator import Communicator

NOTHING = memoryview(bytearray())


@cclass
class Inter(CollModule):
    """All operations between two groups: for each member, those of the other are its neighbours."""

    _others: Neighbours
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator) -> None:
        super().__init__(communicator)
        everybody = range(communicator.size)
        self._others = Neighbours(everybody, everybody)

    def name_algorithm(self, operation: str, exchange: Exchange, arguments: tuple[Any, ...]) -> str:
        """All operations have one way."""
        return "straight to the other group"

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
            room = Room(receive)
            yield from _combined(exchange, room, operation, len(room.view), 0)
            room.settle()
        elif send is not None:
            exchange.send(to_send(send), root)
            yield

    def schedule_allreduce(
        self, exchange: Exchange, send: Message | None, receive: Message, operation: Operation
    ) -> Schedule:
        """Each group's data to each of the other, who combine them in the order of ranks."""
        assert send is not None, "between two groups nothing is in place"
        room = Room(receive)
        _send_to_all(exchange, to_send(send))
        yield from _combined(exchange, room, operation, len(room.view), 0)
        room.settle()

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
        room = Room(receive)
        element = receive.layout.size
        _send_to_all(exchange, to_send(send))
        start = sum(counts[: exchange.rank]) * element
        yield from _combined(exchange, room, operation, sum(counts) * element, start)
        room.settle()


def _send_to_all(exchange: Exchange, data: memoryview) -> None:
    for member in range(exchange.size):
        exchange.send(data, member)


def _combined(exchange: Exchange, room: Room, operation: Operation, size: int, start: int) -> Steps:
    """Receive `size` bytes of each of the other group; combine as many as there is room for."""
    result = room.view
    combine = combining(operation, room.message.layout)
    heard = [allocate_memory(size) for _ in range(exchange.size)]
    for member, data in enumerate(heard):
        exchange.receive(data, member)
    yield
    parts = [data[start : start + len(result)] for data in heard]
    total = parts.pop()
    while parts:  # `left op right` is stored in the right one
        left = parts.pop()
        combine(left, total)
    result[:] = total
    return result
