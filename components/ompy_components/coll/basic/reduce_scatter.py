"""Reduce_scatter: recursive doubling of everything for little data, pairwise for much.

Both keep the order of the ranks where the operation does not commute.
"""

from __future__ import annotations

from itertools import accumulate

from ompy.data.convertor import allocate
from ompy.data.message import Message
from ompy.data.operation import Operation
from ompy.frameworks.coll import TAG_REDUCE_SCATTER
from ompy.frameworks.communicator import Communicator

from ompy_components.coll.basic.combine import Combine, combining
from ompy_components.coll.basic.exchange import Exchange
from ompy_components.coll.basic.packed import Room
from ompy_components.coll.basic.reduction import doubling


def recursive_doubling(
    communicator: Communicator,
    send: Message | None,
    receive: Message,
    counts: list[int],
    operation: Operation,
) -> None:
    """Combine everything everywhere; each rank keeps its block."""
    rank = communicator.rank
    data = send if send is not None else receive
    combine = combining(operation, data.layout)
    with Exchange(communicator, TAG_REDUCE_SCATTER) as exchange:
        total = doubling(communicator, exchange, memoryview(data.packed()), combine)
    size = data.layout.size
    begin = sum(counts[:rank]) * size
    receive.part(0, counts[rank]).store(total[begin : begin + counts[rank] * size])


def pairwise(
    communicator: Communicator,
    send: Message | None,
    receive: Message,
    counts: list[int],
    operation: Operation,
) -> None:
    """In step k send its block to the rank k ahead, combine what the rank k behind sends."""
    rank, size = communicator.rank, communicator.size
    data = send if send is not None else receive
    combine = combining(operation, data.layout)
    firsts = [0, *accumulate(counts)]
    blocks = [data.part(firsts[other], counts[other]) for other in range(size)]
    room = Room(receive.part(0, counts[rank]))
    # in place, the memory for the result holds data that are still to be sent
    total = room.view if send is not None else allocate(blocks[rank].size)
    blocks[rank].convertor().pack(0, total)
    with Exchange(communicator, TAG_REDUCE_SCATTER) as exchange:
        total = _combine_all(communicator, exchange, blocks, total, combine, operation)
    if total is not room.view:
        room.view[:] = total
    room.settle()


def _combine_all(
    communicator: Communicator,
    exchange: Exchange,
    blocks: list[Message],
    total: memoryview,
    combine: Combine,
    operation: Operation,
) -> memoryview:
    """The ranks below come first, from the own one down, then those above, from the last down.

    These are combined apart from the others when the order matters.
    """
    rank, size = communicator.rank, communicator.size
    coming = allocate(len(total))
    above: memoryview | None = None
    for step in range(1, size):
        target, source = (rank + step) % size, (rank - step) % size
        exchange.receive(coming, source)
        exchange.send_message(blocks[target], target)
        exchange.finish()
        if source < rank or operation.commutative:
            combine(coming, total)
        elif above is None:
            above, coming = coming, allocate(len(total))
        else:
            combine(coming, above)
    if above is None:
        return total
    combine(total, above)
    return above
