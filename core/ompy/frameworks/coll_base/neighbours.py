"""Neighbourhood collectives: every block straight along its edge, all in one step."""

from __future__ import annotations

from ompy.data.message import Blocks, Message
from ompy.frameworks.exchange import Exchange
from ompy.frameworks.neighbours import Neighbours
from ompy.frameworks.schedule import Schedule


def allgather(
    exchange: Exchange, send: Message, receive: Blocks, neighbours: Neighbours
) -> Schedule:
    """The same message to all targets; block i from source i."""
    _post(exchange, receive, neighbours)
    for place in neighbours.sending:
        exchange.send_message(send, neighbours.targets[place])
    yield


def alltoall(exchange: Exchange, send: Blocks, receive: Blocks, neighbours: Neighbours) -> Schedule:
    """Block i to target i; block i from source i."""
    _post(exchange, receive, neighbours)
    for place in neighbours.sending:
        exchange.send_message(send[place], neighbours.targets[place])
    yield


def _post(exchange: Exchange, receive: Blocks, neighbours: Neighbours) -> None:
    for place in neighbours.receiving():
        exchange.receive_message(receive[place], neighbours.sources[place])
