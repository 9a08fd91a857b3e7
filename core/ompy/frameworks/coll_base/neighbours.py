"""Neighbourhood collectives: every block straight along its edge, all in one step."""

from __future__ import annotations

from ompy.data.message import Blocks, Message
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.neighbours import Neighbours
from ompy.frameworks.collectives.schedule import Schedule


def allgather(
    exchange: Exchange, send: Message, receive: Blocks, neighbours: Neighbours
) -> Schedule:
    """The same message to all targets; block i from source i."""
    exchange.whole = receive.must_fill
    exchange.receive_blocks(receive, neighbours.sources, neighbours.receiving)
    for place in neighbours.sending:
        exchange.send_message(send, neighbours.targets[place])
    yield


def alltoall(exchange: Exchange, send: Blocks, receive: Blocks, neighbours: Neighbours) -> Schedule:
    """Block i to target i; block i from source i."""
    exchange.receive_blocks(receive, neighbours.sources, neighbours.receiving)
    exchange.send_blocks(send, neighbours.targets, neighbours.sending)
    yield
