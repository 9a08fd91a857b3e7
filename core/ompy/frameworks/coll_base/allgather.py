"""Allgather: Bruck's algorithm for little data, a ring for much.

Every member knows the size of every block, so both serve regular blocks and vectors alike.
"""

from __future__ import annotations

from itertools import accumulate

from ompy.data.convertor import allocate
from ompy.data.message import Blocks, Message
from ompy.data.packed import Room, copy, fill
from ompy.frameworks.exchange import Exchange
from ompy.frameworks.schedule import Schedule


def bruck(exchange: Exchange, send: Message | None, receive: Blocks) -> Schedule:
    """Double what one has in each step, in memory that begins with the own block."""
    rank, size = exchange.rank, exchange.size
    ranks = [(rank + index) % size for index in range(size)]
    ends = [0, *accumulate(receive[other].size for other in ranks)]
    memory = allocate(ends[size])
    fill(memory[: ends[1]], send if send is not None else receive[rank])
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
        copy(send, mine, rank)
    room = Room(mine, mine)
    for step in range(1, size):
        coming = Room(receive[(rank - step) % size])
        exchange.swap(room.view, right, coming.view, left)
        yield
        coming.settle()
        room = coming
