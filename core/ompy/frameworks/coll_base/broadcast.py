"""Broadcasts: a binomial tree, straight, a pipeline, scatter and ring."""

from __future__ import annotations

from ompy.data.message import Message
from ompy.data.packed import Room, to_send
from ompy.frameworks.coll_base.tree import children, parent, subtree_size
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule


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


def linear(exchange: Exchange, message: Message, root: int) -> Schedule:
    """Straight from the root to everybody."""
    if exchange.rank != root:
        exchange.receive_message(message, root)
    else:
        data = to_send(message)
        for step in range(1, exchange.size):
            exchange.send(data, (root + step) % exchange.size)
    yield


def pipeline(exchange: Exchange, message: Message, root: int, segment: int) -> Schedule:
    """From rank to rank in pieces of `segment` bytes; 0 is for one piece."""
    rank, size = exchange.rank, exchange.size
    place = (rank - root) % size
    above, below = (rank - 1) % size, (rank + 1) % size
    room = Room(message) if place else None
    view = room.view if room is not None else to_send(message)
    length = segment or max(1, len(view))
    pieces = [view[at : at + length] for at in range(0, max(1, len(view)), length)]
    if place:
        exchange.receive(pieces[0], above)
        yield
    for index, piece in enumerate(pieces):
        if place and index + 1 < len(pieces):
            exchange.receive(pieces[index + 1], above)
        if place + 1 < size:
            exchange.send(piece, below)
        yield
    if room is not None:
        room.settle()


def scatter_ring(exchange: Exchange, message: Message, root: int) -> Schedule:
    """Scatter pieces along a binomial tree, then gather them everywhere round a ring.

    A member is not sent what it had from the scatter. Source: van de Geijn's broadcast (Barnett
    et al. 1994).
    """
    rank, size = exchange.rank, exchange.size
    place = (rank - root) % size
    room = Room(message) if place else None
    view = room.view if room is not None else to_send(message)
    cuts = [len(view) * index // size for index in range(size + 1)]

    def subtree(top: int) -> memoryview:
        return view[cuts[top] : cuts[top + subtree_size(top, size)]]

    def piece(index: int) -> memoryview:
        return view[cuts[index] : cuts[index + 1]]

    def wants(who: int, index: int) -> bool:
        return who > 0 and not who <= index < who + subtree_size(who, size)

    if place:
        exchange.receive(subtree(place), (parent(place) + root) % size)
        yield
    for child in reversed(children(place, size)):
        exchange.send(subtree(child), (child + root) % size)
    yield
    following = (place + 1) % size
    for step in range(size - 1):
        out, into = (place - step) % size, (place - 1 - step) % size
        if wants(place, into):
            exchange.receive(piece(into), (rank - 1) % size)
        if wants(following, out):
            exchange.send(piece(out), (rank + 1) % size)
        yield
    if room is not None:
        room.settle()
