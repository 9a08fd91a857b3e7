"""Scatter: small blocks along a binomial tree, large ones straight from the root.

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


def from_root(exchange: Exchange, send: Blocks, receive: Message | None, limit: int) -> Schedule:
    """The root's part. `receive` is None when its own block stays where it is."""
    root, size = exchange.rank, exchange.size
    ranks = [(place + root) % size for place in range(size)]
    for child in reversed(children(0, size)):
        blocks = [send[rank] for rank in ranks[child : child + subtree_size(child, size)]]
        small = [to_send(block) for block in blocks if block.size <= limit]
        subtree = Subtree([block.size for block in blocks], small)
        exchange.send_from(subtree.convertor(), ranks[child])
    for rank in ranks[1:]:
        if send[rank].size > limit:
            exchange.send_message(send[rank], rank)
    if receive is not None:
        copy_message(send[root], receive, root)
    yield


def to_member(exchange: Exchange, receive: Message, root: int, limit: int) -> Schedule:
    """The part of everybody else."""
    size = exchange.size
    place = (exchange.rank - root) % size
    message = GrowingConvertor()
    exchange.receive_into(message, (parent(place) + root) % size)
    yield
    assert message.view is not None, "it has arrived"
    sizes, blocks = parse_blocks(message.view, subtree_size(place, size), limit)
    for child in reversed(children(place, size)):
        first, last = child - place, child - place + subtree_size(child, size)
        small = [block for block in blocks[first:last] if block is not None]
        subtree = Subtree(sizes[first:last], small)
        exchange.send_from(subtree.convertor(), (child + root) % size)
    mine = blocks[0]
    if mine is None:
        exchange.receive_message(receive, root)
    else:
        store_received(mine, receive, root)
    yield


def linear_from_root(exchange: Exchange, send: Blocks, receive: Message | None) -> Schedule:
    """The root's part when it sends straight to everybody."""
    root = exchange.rank
    for step in range(1, exchange.size):
        rank = (root + step) % exchange.size
        exchange.send_message(send[rank], rank)
    if receive is not None:
        copy_message(send[root], receive, root)
    yield


def linear_to_member(exchange: Exchange, receive: Message, root: int) -> Schedule:
    """The part of everybody else then."""
    exchange.receive_message(receive, root)
    yield
