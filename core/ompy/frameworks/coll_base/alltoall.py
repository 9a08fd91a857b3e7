"""Alltoall: Bruck's algorithm for small regular blocks, pairwise exchange for all others."""

from __future__ import annotations

from ompy.data.convertor import GatherConvertor, allocate_memory
from ompy.data.message import Blocks
from ompy.data.packed import copy_message, store_received, to_send
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule


def bruck(exchange: Exchange, send: Blocks | None, receive: Blocks) -> Schedule:
    """In step k pass on, 2**k ranks ahead, all blocks whose way there has bit k set."""
    rank, size = exchange.rank, exchange.size
    source = send if send is not None else receive
    # by the distance they have to go; each but the first is replaced by one that came
    travelling = [to_send(source[(rank + distance) % size]) for distance in range(size)]
    length = receive[rank].size
    step = 1
    while step < size:
        moving = [distance for distance in range(size) if distance & step]
        arrived = allocate_memory(length * len(moving))
        exchange.receive(arrived, (rank - step) % size)
        out = GatherConvertor([travelling[distance] for distance in moving])
        exchange.send_from(out, (rank + step) % size)
        yield
        for index, distance in enumerate(moving):
            travelling[distance] = arrived[index * length : (index + 1) * length]
        step *= 2
    for distance, block in enumerate(travelling):
        if distance or send is not None:
            other = (rank - distance) % size
            store_received(block, receive[other], other)


def pairwise(exchange: Exchange, send: Blocks, receive: Blocks, window: int) -> Schedule:
    """In step k send to the rank k ahead, receive from the rank k behind.

    `window` steps are taken at once.
    """
    rank, size = exchange.rank, exchange.size
    for first in range(1, size, window):
        steps = range(first, min(first + window, size))
        for step in steps:
            source = (rank - step) % size
            exchange.receive_message(receive.block(source), source)
        for step in steps:
            target = (rank + step) % size
            exchange.send_message(send.block(target), target)
        if first == 1:
            copy_message(send.block(rank), receive.block(rank), rank)
        yield
    if size == 1:
        copy_message(send.block(rank), receive.block(rank), rank)


def pairwise_in_place(exchange: Exchange, blocks: Blocks) -> Schedule:
    """In each step swap blocks with one partner, who does the same: one block is copied."""
    rank, size = exchange.rank, exchange.size
    for step in range(size):
        partner = (step - rank) % size
        if partner == rank:
            continue
        out = memoryview(blocks[partner].packed())
        exchange.receive_message(blocks[partner], partner)
        exchange.send(out, partner)
        yield
