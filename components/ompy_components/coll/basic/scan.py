"""Prefix reductions by recursive doubling of the distance (Hillis and Steele 1986).

What comes from below is always the left operand, so the order of the ranks is kept.
"""

from __future__ import annotations

from ompy.data.convertor import allocate
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.frameworks.coll import TAG_EXSCAN, TAG_SCAN
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.basic.combine import Combine, combining
from ompy_components.coll.basic.exchange import Exchange
from ompy_components.coll.basic.packed import Room, to_send


def inclusive(
    communicator: Communicator, send: Message | None, receive: Message, operation: Operation
) -> None:
    """Combine the data of ranks 0 to the own one."""
    combine = combining(operation, receive.layout)
    room = Room(receive, send if send is not None else receive)
    with Exchange(communicator, TAG_SCAN) as exchange:
        _prefix(communicator, exchange, room.view, 0, combine)
    room.settle()


def exclusive(
    communicator: Communicator, send: Message | None, receive: Message, operation: Operation
) -> None:
    """Shift everything up by one rank, then combine from rank 1 on."""
    rank, size = communicator.rank, communicator.size
    combine = combining(operation, receive.layout if send is None else send.layout)
    data = memoryview(receive.packed()) if send is None else to_send(send)
    with Exchange(communicator, TAG_EXSCAN) as exchange:
        room = Room(receive) if rank else None
        if room is not None:
            exchange.receive(room.view, rank - 1)
        if rank + 1 < size:
            exchange.send(data, rank + 1)
        exchange.finish()
        if room is not None:
            _prefix(communicator, exchange, room.view, 1, combine)
            room.settle()


def _prefix(
    communicator: Communicator, exchange: Exchange, total: memoryview, first: int, combine: Combine
) -> None:
    """Combine the data of ranks `first` to the own one in `total`."""
    rank, size = communicator.rank, communicator.size
    below = allocate(len(total)) if rank > first else total
    distance = 1
    while distance < size - first:
        if rank - distance >= first:
            exchange.receive(below, rank - distance)
        if rank + distance < size:
            exchange.send(total, rank + distance)
        exchange.finish()
        if rank - distance >= first:
            combine(below, total)
        distance *= 2
