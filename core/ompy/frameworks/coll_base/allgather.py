"""Allgather: Bruck's algorithm and recursive doubling for little data, a ring for much; straight.

Every member knows the size of every block, so all serve regular blocks and vectors alike.
"""

from __future__ import annotations

from itertools import accumulate

from ompy.data.convertor import allocate_memory
from ompy.data.message import Blocks, Message
from ompy.data.packed import Room, copy_message, pack_into, to_send
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule


def bruck(exchange: Exchange, send: Message | None, receive: Blocks) -> Schedule:
    """Double what one has in each step, in memory that begins with the own block."""
    rank, size = exchange.rank, exchange.size
    ranks = [(rank + index) % size for index in range(size)]
    ends = [0, *accumulate(receive[other].size for other in ranks)]
    memory = allocate_memory(ends[size])
    if send is None or send.size < ends[1]:  # beyond what it sends its room stays as it is
        pack_into(memory[: ends[1]], receive[rank])
    if send is not None:
        pack_into(memory[: ends[1]], send)
    have = 1
    while have < size:
        more = min(have, size - have)
        exchange.swap(
            memory[: ends[more]],
            (rank - have) % size,
            memory[ends[have] : ends[have + more]],
            (rank + have) % size,
        )
        yield
        have += more
    for index, other in enumerate(ranks):
        if index or send is not None:
            receive[other].store(memory[ends[index] : ends[index + 1]])


def ring(exchange: Exchange, send: Message | None, receive: Blocks) -> Schedule:
    """Hand on in each step the block that came in the step before."""
    rank, size = exchange.rank, exchange.size
    right, left = (rank + 1) % size, (rank - 1) % size
    mine = receive[rank]
    if send is not None:
        copy_message(send, mine, rank)
    room = Room(mine, mine)
    for step in range(1, size):
        coming = Room(receive[(rank - step) % size])
        exchange.swap(room.view, right, coming.view, left)
        yield
        coming.settle()
        room = coming


def linear(exchange: Exchange, send: Message | None, receive: Blocks) -> Schedule:
    """Straight from everybody to everybody, all at once."""
    rank, size = exchange.rank, exchange.size
    own: Message = receive.block(rank)
    for step in range(1, size):
        source = (rank - step) % size
        exchange.receive_message(receive.block(source), source)
    data = to_send(send if send is not None else own)
    for step in range(1, size):
        exchange.send(data, (rank + step) % size)
    if send is not None:
        copy_message(send, own, rank)
    yield


def recursive_doubling(exchange: Exchange, send: Message | None, receive: Blocks) -> Schedule:
    """Exchange all one has with a partner at twice the distance; for powers of two."""
    rank, size = exchange.rank, exchange.size
    assert size & (size - 1) == 0, "every place has a partner"
    ends = [0, *accumulate(receive[other].size for other in range(size))]
    memory = allocate_memory(ends[size])
    mine = memory[ends[rank] : ends[rank + 1]]
    pack_into(mine, send if send is not None else receive[rank])
    have = 1
    while have < size:
        partner = rank ^ have
        here, there = rank & -have, partner & -have
        exchange.swap(
            memory[ends[here] : ends[here + have]],
            partner,
            memory[ends[there] : ends[there + have]],
            partner,
        )
        yield
        have *= 2
    for other in range(size):
        if other != rank or send is not None:
            receive[other].store(memory[ends[other] : ends[other + 1]])
