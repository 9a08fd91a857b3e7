"""Broadcast along a binomial tree."""

from __future__ import annotations

from ompy.data.message import Message
from ompy.data.packed import Room, to_send
from ompy.frameworks.coll_base.tree import children, parent
from ompy.frameworks.exchange import Exchange
from ompy.frameworks.schedule import Schedule


def binomial(exchange: Exchange, message: Message, root: int) -> Schedule:
    """Receive from above, send to all below at the same time, the largest subtree first."""
    size = exchange.size
    place = (exchange.rank - root) % size
    below = children(place, size)
    if not place:
        data = to_send(message)
    else:
        above = (parent(place) + root) % size
        if not below:
            exchange.receive_message(message, above)
            yield
            return
        room = Room(message)
        request = exchange.receive(room.view, above)
        yield
        data = room.view[: request.received]
    for child in reversed(below):
        exchange.send(data, (child + root) % size)
    if place:
        room.settle()
    yield
