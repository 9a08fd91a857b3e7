"""Broadcast along a binomial tree."""

from __future__ import annotations

from ompy.data.message import Message
from ompy.frameworks.coll import TAG_BCAST
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.basic.exchange import Exchange
from ompy_components.coll.basic.packed import Room, to_send
from ompy_components.coll.basic.tree import children, parent


def binomial(communicator: Communicator, message: Message, root: int) -> None:
    """Receive from above, send to all below at the same time, the largest subtree first."""
    size = communicator.size
    place = (communicator.rank - root) % size
    below = children(place, size)
    with Exchange(communicator, TAG_BCAST) as exchange:
        if not place:
            data = to_send(message)
        else:
            above = (parent(place) + root) % size
            if not below:
                exchange.receive_message(message, above)
                exchange.finish()
                return
            room = Room(message)
            request = exchange.receive(room.view, above)
            exchange.finish()
            data = room.view[: request.received]
        for child in reversed(below):
            exchange.send(data, (child + root) % size)
        if place:
            room.settle()
        exchange.finish()
