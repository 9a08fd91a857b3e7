"""Gather: small blocks along a binomial tree, large ones straight into the root's memory.

The same for regular blocks and for vectors, because only the root knows which they are.
"""

from __future__ import annotations

from ompy.data.convertor import GrowingConvertor
from ompy.data.message import Blocks, Message
from ompy.data.packed import copy_message, store_received, to_send
from ompy.frameworks.coll_base.blocks import Subtree, parse_blocks
from ompy.frameworks.coll_base.tree import children, parent, subtree_size
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule


def to_root(exchange: Exchange, send: Message | None, receive: Blocks, limit: int) -> Schedule:
    """The root's part. `send` is None when its own block is in place."""
    root, size = exchange.rank, exchange.size
    arriving = _post(exchange, children(0, size), root, size)
    if send is not None:
        copy_message(send, receive[root], root)
    yield
    for child, message in arriving:
        for index, block in enumerate(_parse(message, child, size, limit)[1]):
            rank = (child + index + root) % size
            if block is None:
                exchange.receive_message(receive[rank], rank)
            else:
                store_received(block, receive[rank], rank)
    yield


def from_member(exchange: Exchange, send: Message, root: int, limit: int) -> Schedule:
    """The part of everybody else."""
    size = exchange.size
    place = (exchange.rank - root) % size
    subtree = Subtree([send.size], [to_send(send)] if send.size <= limit else [])
    arriving = _post(exchange, children(place, size), root, size)
    yield
    for child, message in arriving:
        sizes, blocks = _parse(message, child, size, limit)
        subtree.sizes += sizes
        subtree.pieces += [block for block in blocks if block is not None]
    exchange.send_from(subtree.convertor(), (parent(place) + root) % size)
    if send.size > limit:
        exchange.send_message(send, root)
    yield


def _post(
    exchange: Exchange, below: list[int], root: int, size: int
) -> list[tuple[int, GrowingConvertor]]:
    arriving = []
    for child in below:
        message = GrowingConvertor()
        exchange.receive_into(message, (child + root) % size)
        arriving.append((child, message))
    return arriving


def _parse(
    message: GrowingConvertor, child: int, size: int, limit: int
) -> tuple[list[int], list[memoryview | None]]:
    assert message.view is not None, "it has arrived"
    return parse_blocks(message.view, subtree_size(child, size), limit)


def linear_to_root(exchange: Exchange, send: Message | None, receive: Blocks) -> Schedule:
    """The root's part when everybody sends straight to it."""
    root = exchange.rank
    for rank in range(exchange.size):
        if rank != root:
            exchange.receive_message(receive[rank], rank)
    if send is not None:
        copy_message(send, receive[root], root)
    yield


def linear_from_member(exchange: Exchange, send: Message, root: int) -> Schedule:
    """The part of everybody else then."""
    exchange.send_message(send, root)
    yield
