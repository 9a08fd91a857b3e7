"""Scatter: small blocks along a binomial tree, large ones straight from the root.

The same for regular blocks and for vectors, because only the root knows which they are.
"""

from __future__ import annotations

from ompy.data.convertor import GrowingConvertor
from ompy.data.message import Blocks, Message
from ompy.frameworks.coll import TAG_SCATTER
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.basic.blocks import Subtree, parse
from ompy_components.coll.basic.exchange import Exchange
from ompy_components.coll.basic.packed import copy, store, to_send
from ompy_components.coll.basic.tree import children, members, parent


def from_root(
    communicator: Communicator, send: Blocks, receive: Message | None, limit: int
) -> None:
    """The root's part. `receive` is None when its own block stays where it is."""
    root, size = communicator.rank, communicator.size
    ranks = [(place + root) % size for place in range(size)]
    with Exchange(communicator, TAG_SCATTER) as exchange:
        for child in reversed(children(0, size)):
            blocks = [send[rank] for rank in ranks[child : child + members(child, size)]]
            small = [to_send(block) for block in blocks if block.size <= limit]
            subtree = Subtree([block.size for block in blocks], small)
            exchange.send_from(subtree.convertor(), ranks[child])
        for rank in ranks[1:]:
            if send[rank].size > limit:
                exchange.send_message(send[rank], rank)
        if receive is not None:
            copy(send[root], receive, root)
        exchange.finish()


def to_member(communicator: Communicator, receive: Message, root: int, limit: int) -> None:
    """The part of everybody else."""
    size = communicator.size
    place = (communicator.rank - root) % size
    with Exchange(communicator, TAG_SCATTER) as exchange:
        message = GrowingConvertor()
        exchange.receive_into(message, (parent(place) + root) % size)
        exchange.finish()
        assert message.view is not None, "it has arrived"
        sizes, blocks = parse(message.view, members(place, size), limit)
        for child in reversed(children(place, size)):
            first, last = child - place, child - place + members(child, size)
            small = [block for block in blocks[first:last] if block is not None]
            subtree = Subtree(sizes[first:last], small)
            exchange.send_from(subtree.convertor(), (child + root) % size)
        mine = blocks[0]
        if mine is None:
            exchange.receive_message(receive, root)
        else:
            store(mine, receive, root)
        exchange.finish()
