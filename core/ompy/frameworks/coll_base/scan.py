"""Prefix reductions: recursive doubling of the distance (Hillis and Steele 1986), or linear.

What comes from below is always the left operand, so the order of the ranks is kept.
"""

from __future__ import annotations

from ompy.data.convertor import allocate_memory
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import Room, to_send
from ompy.frameworks.coll_base.combine import Combine, combining
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule


def inclusive(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """Combine the data of ranks 0 to the own one."""
    combine = combining(operation, receive.layout)
    room = Room(receive, send if send is not None else receive)
    yield from _prefix(exchange, room.view, 0, combine)
    room.settle()


def exclusive(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """Shift everything up by one rank, then combine from rank 1 on."""
    rank, size = exchange.rank, exchange.size
    combine = combining(operation, receive.layout if send is None else send.layout)
    data = memoryview(receive.packed()) if send is None else to_send(send)
    room = Room(receive) if rank else None
    if room is not None:
        exchange.receive(room.view, rank - 1)
    if rank + 1 < size:
        exchange.send(data, rank + 1)
    yield
    if room is not None:
        yield from _prefix(exchange, room.view, 1, combine)
        room.settle()


def _prefix(exchange: Exchange, total: memoryview, first: int, combine: Combine) -> Schedule:
    """Combine the data of ranks `first` to the own one in `total`."""
    rank, size = exchange.rank, exchange.size
    below = allocate_memory(len(total)) if rank > first else total
    distance = 1
    while distance < size - first:
        if rank - distance >= first:
            exchange.receive(below, rank - distance)
        if rank + distance < size:
            exchange.send(total, rank + distance)
        yield
        if rank - distance >= first:
            combine(below, total)
        distance *= 2


def inclusive_linear(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """From rank to rank."""
    rank = exchange.rank
    combine = combining(operation, receive.layout)
    room = Room(receive, send if send is not None else receive)
    if rank:
        below = allocate_memory(len(room.view))
        exchange.receive(below, rank - 1)
        yield
        combine(below, room.view)
    if rank + 1 < exchange.size:
        exchange.send(room.view, rank + 1)
        yield
    room.settle()


def exclusive_linear(
    exchange: Exchange, send: Message | None, receive: Message, operation: Operation
) -> Schedule:
    """From rank to rank; each adds its own data for the next."""
    rank = exchange.rank
    mine = send if send is not None else receive
    combine = combining(operation, mine.layout)
    total = memoryview(mine.packed())
    room = Room(receive) if rank else None
    if room is not None:
        exchange.receive(room.view, rank - 1)
        yield
        combine(room.view, total)
    if rank + 1 < exchange.size:
        exchange.send(total, rank + 1)
        yield
    if room is not None:
        room.settle()
