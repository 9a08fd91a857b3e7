"""The algorithms of collectives: which blocks go where. Generators that yield while they wait.

    broadcast            binomial tree, whatever the size
    scatter, gather      binomial tree, with the blocks of a subtree in one piece; or, where such a
                         piece is more than one message takes, between the root and each
    gather_all           concatenation by doubling (Bruck et al., 1997), or each to each
    exchange             log2 rounds of half the blocks (Bruck et al., 1997), or each to each
    IN_ALLSYNC, OUT_...  dissemination (Hensgen, Finkel, Manber, 1988) before, after

Members are ranks of the team; in trees they have places, the root being 0.

Source: reference gasnet.md 14 (Collectives).
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Final

from ompy.frameworks.coll_base.tree import children, parent, subtree_size
from ompy.gasnet.collective.coll_calls import NOWHERE, CollFlag, Kind

if TYPE_CHECKING:
    from ompy.gasnet.collective.coll_operation import Operation

Steps = Generator[None, None, None]

# slots; arbitrary: each round of a barrier has its own, and there are less than 32 of them
ENTER: Final = 0
LEAVE: Final = 32
BLOCK: Final = 64
NOTHING: Final = memoryview(bytearray())  # it may be written to


def run_collective(op: Operation) -> Steps:
    """All of a collective, as its flags say."""
    if op.call.flags & CollFlag.IN_ALLSYNC:
        yield from meet(op, ENTER)
    yield from ALGORITHMS[op.call.kind](op)
    while not op.all_sent():
        yield
    if op.call.flags & CollFlag.OUT_ALLSYNC:
        yield from meet(op, LEAVE)


def meet(op: Operation, slot: int) -> Steps:
    """A barrier by dissemination."""
    step = 1
    while step < op.size:
        op.send((op.rank + step) % op.size, slot, NOTHING)
        yield from op.receive((op.rank - step) % op.size, slot, NOTHING)
        step, slot = 2 * step, slot + 1


def broadcast(op: Operation) -> Steps:
    """Down a binomial tree."""
    place, data = op.place, op.src
    if place:
        yield from op.receive(op.at(parent(place)), BLOCK, op.dst)
        data = op.dst
    else:
        op.dst[:] = data
    for child in reversed(children(place, op.size)):
        op.send(op.at(child), BLOCK, data, op.call.dst)


def scatter(op: Operation) -> Steps:
    """Blocks of the root's in the order of ranks, one to each."""
    if op.call.nbytes * largest(op.size) > op.small:
        yield from _scatter_flat(op)
        return
    place, size = op.place, op.call.nbytes
    data = memoryview(bytearray(size * subtree_size(place, op.size)))
    if place:
        yield from op.receive(op.at(parent(place)), BLOCK, data)
    else:
        for other in range(op.size):
            block(data, other, size)[:] = block(op.src, op.at(other), size)
    for child in reversed(children(place, op.size)):
        begin = size * (child - place)
        op.send(op.at(child), BLOCK, data[begin : begin + size * subtree_size(child, op.size)])
    op.dst[:] = data[:size]


def _scatter_flat(op: Operation) -> Steps:
    size = op.call.nbytes
    if op.place:
        yield from op.receive(op.call.root, BLOCK, op.dst)
        return
    for place in range(1, op.size):
        op.send(op.at(place), BLOCK, block(op.src, op.at(place), size), op.call.dst)
    op.dst[:] = block(op.src, op.rank, size)


def gather(op: Operation) -> Steps:
    """A block of each to the root, in the order of ranks."""
    if op.call.nbytes * largest(op.size) > op.small:
        yield from _gather_flat(op)
        return
    place, size = op.place, op.call.nbytes
    data = memoryview(bytearray(size * subtree_size(place, op.size)))
    data[:size] = op.src
    for child in children(place, op.size):
        begin = size * (child - place)
        room = data[begin : begin + size * subtree_size(child, op.size)]
        yield from op.receive(op.at(child), BLOCK, room)
    if place:
        op.send(op.at(parent(place)), BLOCK, data)
        return
    for other in range(op.size):
        block(op.dst, op.at(other), size)[:] = block(data, other, size)


def _gather_flat(op: Operation) -> Steps:
    size = op.call.nbytes
    if op.place:
        op.send(op.call.root, BLOCK, op.src, shifted(op.call.dst, size * op.rank))
        return
    block(op.dst, op.rank, size)[:] = op.src
    others = [op.at(place) for place in range(1, op.size)]
    yield from op.receive_all([(rank, BLOCK, block(op.dst, rank, size)) for rank in others])


def gather_all(op: Operation) -> Steps:
    """A block of each to all, in the order of ranks."""
    size = op.call.nbytes
    if size * (op.size // 2) > op.small:
        block(op.dst, op.rank, size)[:] = op.src
        yield from _each_to_each(op, lambda _: op.src)
        return
    data = memoryview(bytearray(size * op.size))
    data[:size] = op.src
    step, slot = 1, BLOCK
    while step < op.size:
        count = size * min(step, op.size - step)
        op.send((op.rank - step) % op.size, slot, data[:count])
        room = data[size * step : size * step + count]
        yield from op.receive((op.rank + step) % op.size, slot, room)
        step, slot = 2 * step, slot + 1
    for place in range(op.size):
        block(op.dst, (op.rank + place) % op.size, size)[:] = block(data, place, size)


def exchange(op: Operation) -> Steps:
    """Of each a block to each, in the order of ranks."""
    size, count = op.call.nbytes, op.size
    if size * ((count + 1) // 2) > op.small:
        block(op.dst, op.rank, size)[:] = block(op.src, op.rank, size)
        yield from _each_to_each(op, lambda rank: block(op.src, rank, size))
        return
    # place p: what is for the rank p behind this one; in round k those move whose p has bit k
    data = [bytes(block(op.src, (op.rank + place) % count, size)) for place in range(count)]
    step, slot = 1, BLOCK
    while step < count:
        moving = [place for place in range(count) if place & step]
        op.send((op.rank + step) % count, slot, memoryview(b"".join(data[p] for p in moving)))
        room = memoryview(bytearray(size * len(moving)))
        yield from op.receive((op.rank - step) % count, slot, room)
        for number, place in enumerate(moving):
            data[place] = bytes(block(room, number, size))
        step, slot = 2 * step, slot + 1
    for place in range(count):
        block(op.dst, (op.rank - place) % count, size)[:] = data[place]


def _each_to_each(op: Operation, source: Callable[[int], memoryview]) -> Steps:
    """A block of every other member's, and one to every one; nearest first."""
    size, me = op.call.nbytes, op.rank
    for step in range(1, op.size):
        peer = (me + step) % op.size
        op.send(peer, BLOCK, source(peer), shifted(op.call.dst, size * me))
    others = [(me - step) % op.size for step in range(1, op.size)]
    yield from op.receive_all([(rank, BLOCK, block(op.dst, rank, size)) for rank in others])


def nothing(_op: Operation) -> Steps:
    """No block goes anywhere."""
    yield from ()


def largest(size: int) -> int:
    """Blocks of the largest piece in a tree."""
    return max((subtree_size(child, size) for child in children(0, size)), default=0)


def block(view: memoryview, number: int, size: int) -> memoryview:
    """One block of several in one piece."""
    return view[number * size : (number + 1) * size]


def shifted(place: int, distance: int) -> int:
    """A place behind another, if that is one."""
    return place if place == NOWHERE else place + distance


ALGORITHMS: Final[dict[Kind, Callable[[Operation], Steps]]] = {
    Kind.BROADCAST: broadcast,
    Kind.SCATTER: scatter,
    Kind.GATHER: gather,
    Kind.GATHER_ALL: gather_all,
    Kind.EXCHANGE: exchange,
    Kind.SPLIT: gather_all,
    Kind.FREE: nothing,
}
