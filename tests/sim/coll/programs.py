"""Every collective against what MPI says it does: one program per operation.

A program makes many calls one after the other without waiting for the other ranks, so a
message of one call that could be taken for one of the next will be.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from random import Random

import numpy as np
from ompy.data.kernels import PREDEFINED
from ompy.data.layout import Layout
from ompy.frameworks.communicator import Communicator
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.operations import OPERATIONS, fold
from tests.sim.coll.shapes import GAPPED, LAYOUTS, PLAIN, Board, noise, single

BARRIERS = 5
COUNTS = (0, 1, 2, 7)
DOUBLE = Layout(((0, 8),), 0, 8, "d")
# elements of eight bytes: more than any message's first fragment, than most limits, and than
# the limits that concern one block
BIG, HUGE, BIG_WITH_GAPS = 2501, 9001, 601


def world(process: RankProcess) -> Communicator:
    return process.communicator(0, process.context.procs, "WORLD")


def shapes() -> Iterator[tuple[int, Layout, Layout]]:
    """Count, the sender's layout, the receiver's layout."""
    for count, index in product(COUNTS, range(len(LAYOUTS))):
        yield count, LAYOUTS[index], LAYOUTS[(index + count) % len(LAYOUTS)]
    yield BIG, PLAIN, PLAIN
    yield BIG_WITH_GAPS, GAPPED, PLAIN
    yield BIG_WITH_GAPS, PLAIN, GAPPED


def dealt(choices: int, cases: Iterable[tuple]) -> Iterator[tuple[int, tuple]]:
    """Each case with one of some choices (roots, mostly), the same in every rank."""
    chance = Random(choices)
    for case in cases:
        yield chance.randrange(choices), case


def barrier(done: list[int], comm: Communicator) -> None:
    for turn in range(BARRIERS):
        comm.context.engine.spend(comm.context.engine.random.randrange(100_000))
        done[comm.rank] = turn
        comm.coll.barrier()
        assert min(done) >= turn, f"rank {comm.rank} left barrier {turn} before {done}"
        comm.coll.barrier()


def bcast(comm: Communicator) -> None:
    for (count, out, into), root in product(shapes(), range(comm.size)):
        board = single(count, out if comm.rank == root else into)
        data = noise(board.size(), count, root)
        board.put(0, data if comm.rank == root else noise(board.size(), 99))
        comm.coll.bcast(board.message(), root)
        board.expect(0, data)
        board.verify("bcast", count, root)


def _counts(kind: int, count: int, size: int) -> list[int] | None:
    """Counts of a vector call: None for regular blocks."""
    if kind == 0:
        return None
    return [(count * (rank + 3 * kind)) % (count + kind) for rank in range(size)]


def _board(counts: list[int] | None, count: int, layout: Layout, size: int) -> Board:
    return Board.even(count, layout, size) if counts is None else Board(counts, [layout] * size)


def scatter(comm: Communicator) -> None:
    cases = product(shapes(), range(3), (False, True))
    for root, ((count, out, into), kind, in_place) in dealt(comm.size, cases):
        counts = _counts(kind, count, comm.size)
        each = counts or [count] * comm.size
        parts = [noise(each[rank] * 8, count, root, rank) for rank in range(comm.size)]
        mine = single(each[comm.rank], into)
        mine.put(0, noise(mine.size(), 99))
        if comm.rank != root:
            comm.coll.scatter(None, mine.message(), root)
            mine.expect(0, parts[comm.rank])
        else:
            board = _board(counts, count, out, comm.size)
            for rank, part in enumerate(parts):
                board.put(rank, part)
            comm.coll.scatter(board.blocks(), None if in_place else mine.message(), root)
            board.verify("scatter's source", count, kind, root)
            if not in_place:
                mine.expect(0, parts[root])
        mine.verify("scatter", count, kind, root, in_place)


def gather(comm: Communicator) -> None:
    cases = product(shapes(), range(3), (False, True))
    for root, ((count, out, into), kind, in_place) in dealt(comm.size, cases):
        counts = _counts(kind, count, comm.size)
        each = counts or [count] * comm.size
        parts = [noise(each[rank] * 8, count, root, rank) for rank in range(comm.size)]
        mine = single(each[comm.rank], out)
        mine.put(0, parts[comm.rank])
        if comm.rank != root:
            comm.coll.gather(mine.message(), None, root)
        else:
            board = _board(counts, count, into, comm.size)
            if in_place:
                board.put(root, parts[root])
            comm.coll.gather(None if in_place else mine.message(), board.blocks(), root)
            for rank, part in enumerate(parts):
                board.expect(rank, part)
            board.verify("gather", count, kind, root, in_place)
        mine.verify("gather's source", count, kind, root)


def allgather(comm: Communicator) -> None:
    for (count, out, into), kind, in_place in product(shapes(), range(3), (False, True)):
        counts = _counts(kind, count, comm.size)
        each = counts or [count] * comm.size
        parts = [noise(each[rank] * 8, count, rank) for rank in range(comm.size)]
        board = _board(counts, count, into if comm.rank % 2 else out, comm.size)
        mine = single(each[comm.rank], out)
        mine.put(0, parts[comm.rank])
        if in_place:
            board.put(comm.rank, parts[comm.rank])
        comm.coll.allgather(None if in_place else mine.message(), board.blocks())
        for rank, part in enumerate(parts):
            board.expect(rank, part)
        board.verify("allgather", count, kind, in_place)
        mine.verify("allgather's source", count, kind)


def alltoall(comm: Communicator) -> None:
    size, rank = comm.size, comm.rank
    for (count, out, into), kind, in_place in product(shapes(), range(3), (False, True)):

        def between(source: int, target: int, count: int = count, kind: int = kind) -> int:
            low, high = sorted((source, target))
            return count if kind == 0 else (count * (low + 2 * high + kind)) % (count + kind)

        def part(source: int, target: int, count: int = count) -> np.ndarray:
            return noise(between(source, target) * 8, count, source, target)

        each = None if kind == 0 else [between(rank, other) for other in range(size)]
        board = _board(each, count, into, size)
        source = _board(each, count, out, size)
        for other in range(size):
            (board if in_place else source).put(other, part(rank, other))
        comm.coll.alltoall(None if in_place else source.blocks(), board.blocks())
        for other in range(size):
            board.expect(other, part(other, rank))
        board.verify("alltoall", count, kind, in_place)
        source.verify("alltoall's source", count, kind)


def _reductions() -> Iterator[tuple[int, Layout, tuple, bool]]:
    for count, layout, operation in product(COUNTS, LAYOUTS, OPERATIONS):
        for in_place in (False, True):
            yield count, layout, operation, in_place
    for operation, in_place in product(OPERATIONS, (False, True)):
        yield HUGE, PLAIN, operation, in_place
        yield BIG_WITH_GAPS, GAPPED, operation, in_place


def _parts(comm: Communicator, count: int) -> list[np.ndarray]:
    return [noise(count * 8, count, rank) for rank in range(comm.size)]


def reduce(comm: Communicator) -> None:
    for root, (count, layout, (operation, reference), in_place) in dealt(comm.size, _reductions()):
        parts = _parts(comm, count)
        source, board = single(count, layout), single(count, layout)
        here = in_place and comm.rank == root
        (board if here else source).put(0, parts[comm.rank])
        comm.coll.reduce(
            None if here else source.message(),
            board.message() if comm.rank == root else None,
            operation,
            root,
        )
        if comm.rank == root:
            board.expect(0, fold(reference, parts))
        board.verify("reduce", count, operation.name, root, in_place)
        source.verify("reduce's source", count, operation.name, root)


def _everywhere(
    comm: Communicator,
    name: str,
    result: Callable[[list[np.ndarray], Callable], np.ndarray | None],
) -> None:
    """allreduce, scan, exscan: a message in, a message out."""
    call = getattr(comm.coll, name)
    for count, layout, (operation, reference), in_place in _reductions():
        parts = _parts(comm, count)
        source, board = single(count, layout), single(count, layout)
        (board if in_place else source).put(0, parts[comm.rank])
        call(None if in_place else source.message(), board.message(), operation)
        expected = result(parts, reference)
        if expected is not None:
            board.expect(0, expected)
        board.verify(name, count, operation.name, in_place)
        source.verify(name, "source", count, operation.name)


def allreduce(comm: Communicator) -> None:
    _everywhere(comm, "allreduce", lambda parts, reference: fold(reference, parts))


def scan(comm: Communicator) -> None:
    _everywhere(comm, "scan", lambda parts, reference: fold(reference, parts[: comm.rank + 1]))


def exscan(comm: Communicator) -> None:
    _everywhere(
        comm,
        "exscan",
        lambda parts, reference: fold(reference, parts[: comm.rank]) if comm.rank else None,
    )


def reduce_scatter(comm: Communicator) -> None:
    size, rank = comm.size, comm.rank
    for kind, (most, layout, (operation, reference), in_place) in dealt(3, _reductions()):
        count = min(most, BIG)
        counts = _counts(kind, count, size) or [count] * size
        total = sum(counts)
        parts = _parts(comm, total)
        source = single(total, layout)
        board = single(total if in_place else counts[rank], layout)
        (board if in_place else source).put(0, parts[rank])
        comm.coll.reduce_scatter(
            None if in_place else source.message(), board.message(), counts, operation
        )
        first = sum(counts[:rank]) * 8
        board.expect(0, fold(reference, parts)[first : first + counts[rank] * 8])
        board.verify("reduce_scatter", counts, operation.name, in_place)
        source.verify("reduce_scatter's source", counts, operation.name)


def float_sums(comm: Communicator) -> list[str]:
    """The bits of sums and maxima of doubles, some of them NaN, zero or infinite."""
    results = []
    for count, name, in_place in product(
        (1, 7, 100, 10_000), ("MPI_SUM", "MPI_MAX"), (False, True)
    ):
        chance = np.random.default_rng([comm.rank, count])
        values = chance.normal(size=count) * 10.0 ** chance.integers(-9, 9, count)
        values[:: 7 + comm.rank] = [np.nan, -0.0, np.inf][comm.rank % 3]
        source, board = single(count, DOUBLE), single(count, DOUBLE)
        (board if in_place else source).put(0, values.view(np.uint8))
        comm.coll.allreduce(
            None if in_place else source.message(), board.message(), PREDEFINED[name]
        )
        results.append(hashlib.sha256(board.memory).hexdigest())
    return results


PROGRAMS = {
    program.__name__: program
    for program in (
        bcast,
        scatter,
        gather,
        allgather,
        alltoall,
        reduce,
        allreduce,
        scan,
        exscan,
        reduce_scatter,
    )
}
