"""Reduce_scatter: recursive doubling of everything, recursive halving, pairwise.

The first and the last keep the order of the ranks where the operation does not commute.
"""

from __future__ import annotations

from itertools import accumulate

from ompy.data.convertor import allocate_memory
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.data.packed import Room
from ompy.frameworks.coll_base.combine import Combine, combining
from ompy.frameworks.coll_base.places import Places
from ompy.frameworks.coll_base.reduction import doubling
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule, Steps


def recursive_doubling(
    exchange: Exchange,
    send: Message | None,
    receive: Message,
    counts: list[int],
    operation: Operation,
) -> Schedule:
    """Combine everything everywhere; each rank keeps its block."""
    rank = exchange.rank
    data = send if send is not None else receive
    combine = combining(operation, data.layout)
    total = yield from doubling(exchange, memoryview(data.packed()), combine)
    size = data.layout.size
    begin = sum(counts[:rank]) * size
    receive.part(0, counts[rank]).store(total[begin : begin + counts[rank] * size])


def pairwise(
    exchange: Exchange,
    send: Message | None,
    receive: Message,
    counts: list[int],
    operation: Operation,
) -> Schedule:
    """In step k send its block to the rank k ahead, combine what the rank k behind sends."""
    rank, size = exchange.rank, exchange.size
    data = send if send is not None else receive
    combine = combining(operation, data.layout)
    firsts = [0, *accumulate(counts)]
    blocks = [data.part(firsts[other], counts[other]) for other in range(size)]
    room = Room(receive.part(0, counts[rank]))
    # in place, the memory for the result holds data that are still to be sent
    total = room.view if send is not None else allocate_memory(blocks[rank].size)
    blocks[rank].convertor().pack(0, total)
    total = yield from _combine_all(exchange, blocks, total, combine, operation)
    if total is not room.view:
        room.view[:] = total
    room.settle()


def _combine_all(
    exchange: Exchange,
    blocks: list[Message],
    total: memoryview,
    combine: Combine,
    operation: Operation,
) -> Steps:
    """The ranks below come first, from the own one down, then those above, from the last down.

    These are combined apart from the others when the order matters.
    """
    rank, size = exchange.rank, exchange.size
    coming = allocate_memory(len(total))
    above: memoryview | None = None
    for step in range(1, size):
        target, source = (rank + step) % size, (rank - step) % size
        exchange.receive(coming, source)
        exchange.send_message(blocks[target], target)
        yield
        if source < rank or operation.commutative:
            combine(coming, total)
        elif above is None:
            above, coming = coming, allocate_memory(len(total))
        else:
            combine(coming, above)
    if above is None:
        return total
    combine(total, above)
    return above


def recursive_halving(
    exchange: Exchange,
    send: Message | None,
    receive: Message,
    counts: list[int],
    operation: Operation,
) -> Schedule:
    """Give away the half of the blocks that is on the partner's side, ever nearer partners.

    For operations that commute: the partner of the first step is the farthest.
    """
    rank, size = exchange.rank, exchange.size
    data = send if send is not None else receive
    combine = combining(operation, data.layout)
    places = Places(rank, size)
    ends = [0, *(data.layout.size * end for end in accumulate(counts))]
    result = receive.part(0, counts[rank])
    total = memoryview(data.packed())
    if places.idle:
        exchange.send(total, rank + 1)
        yield
        exchange.receive_message(result, rank + 1)
        yield
        return
    spare = allocate_memory(len(total))
    if places.paired:
        exchange.receive(spare, rank - 1)
        yield
        combine(spare, total)
    first, last = 0, places.power
    while last - first > 1:
        middle = (first + last) // 2
        cut = [ends[places.first(place)] for place in (first, middle, last)]
        low, high = slice(cut[0], cut[1]), slice(cut[1], cut[2])
        upper = places.place >= middle
        keep, give = (high, low) if upper else (low, high)
        half = middle - first
        partner = places.rank(places.place - half if upper else places.place + half)
        exchange.swap(total[give], partner, spare[keep], partner)
        yield
        combine(spare[keep], total[keep])
        first, last = (middle, last) if upper else (first, middle)
    if places.paired:
        exchange.send(total[ends[rank - 1] : ends[rank]], rank - 1)
        yield
    result.store(total[ends[rank] : ends[rank + 1]])
