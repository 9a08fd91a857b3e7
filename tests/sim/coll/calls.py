"""Collective calls as data: what to pass, and what must be there in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from ompy.data.layout import Layout

from tests.sim.coll.operations import OPERATIONS, fold
from tests.sim.coll.shapes import Board, noise, single


class Drawn(NamedTuple):
    """A call that all members make.

    Attributes:
        name: of the operation.
        key: tells its data from those of other calls.
        root: of rooted ones.
        counts: elements for each rank; of reductions and bcast the first holds.
        layout: of the elements.
        function: index of the reduction's operation.
        in_place: whether it is.
    """

    name: str
    key: int
    root: int
    counts: Sequence[int]
    layout: Layout
    function: int
    in_place: bool


class Prepared(NamedTuple):
    """A member's part of a call.

    Attributes:
        arguments: of the operation.
        verify: raises when memory is not what it must be after the call.
    """

    arguments: tuple[Any, ...]
    verify: Callable[[], None]


def _verify(drawn: Drawn, rank: int, *boards: Board) -> Callable[[], None]:
    def verify() -> None:
        for board in boards:
            board.verify(drawn, f"rank {rank}")

    return verify


def prepare(drawn: Drawn, rank: int, size: int) -> Prepared:
    """The part of one rank."""
    return globals()[f"_{drawn.name}"](drawn, rank, size)


def _barrier(drawn: Drawn, rank: int, size: int) -> Prepared:
    return Prepared((), lambda: None)


def _bcast(drawn: Drawn, rank: int, size: int) -> Prepared:
    board = single(drawn.counts[0], drawn.layout)
    data = noise(board.size(), drawn.key)
    board.put(0, data if rank == drawn.root else noise(board.size(), 99))
    board.expect(0, data)
    return Prepared((board.message(), drawn.root), _verify(drawn, rank, board))


def _parts(drawn: Drawn, size: int) -> list[np.ndarray]:
    return [noise(drawn.counts[rank] * 8, drawn.key, rank) for rank in range(size)]


def _scatter(drawn: Drawn, rank: int, size: int) -> Prepared:
    parts = _parts(drawn, size)
    mine = single(drawn.counts[rank], drawn.layout)
    if rank != drawn.root:
        mine.expect(0, parts[rank])
        return Prepared((None, mine.message(), drawn.root), _verify(drawn, rank, mine))
    board = Board(drawn.counts, [drawn.layout] * size)
    for other, part in enumerate(parts):
        board.put(other, part)
    if not drawn.in_place:
        mine.expect(0, parts[rank])
    receive = None if drawn.in_place else mine.message()
    return Prepared((board.blocks(), receive, drawn.root), _verify(drawn, rank, mine, board))


def _gather(drawn: Drawn, rank: int, size: int) -> Prepared:
    parts = _parts(drawn, size)
    mine = single(drawn.counts[rank], drawn.layout)
    mine.put(0, parts[rank])
    if rank != drawn.root:
        return Prepared((mine.message(), None, drawn.root), _verify(drawn, rank, mine))
    board = Board(drawn.counts, [drawn.layout] * size)
    if drawn.in_place:
        board.put(rank, parts[rank])
    for other, part in enumerate(parts):
        board.expect(other, part)
    send = None if drawn.in_place else mine.message()
    return Prepared((send, board.blocks(), drawn.root), _verify(drawn, rank, mine, board))


def _allgather(drawn: Drawn, rank: int, size: int) -> Prepared:
    parts = _parts(drawn, size)
    mine = single(drawn.counts[rank], drawn.layout)
    mine.put(0, parts[rank])
    board = Board(drawn.counts, [drawn.layout] * size)
    if drawn.in_place:
        board.put(rank, parts[rank])
    for other, part in enumerate(parts):
        board.expect(other, part)
    send = None if drawn.in_place else mine.message()
    return Prepared((send, board.blocks()), _verify(drawn, rank, mine, board))


def _alltoall(drawn: Drawn, rank: int, size: int) -> Prepared:
    count = drawn.counts[0]
    source, board = (Board.even(count, drawn.layout, size) for _ in range(2))
    for other in range(size):
        (board if drawn.in_place else source).put(other, noise(count * 8, drawn.key, rank, other))
    for other in range(size):
        board.expect(other, noise(count * 8, drawn.key, other, rank))
    send = None if drawn.in_place else source.blocks()
    return Prepared((send, board.blocks()), _verify(drawn, rank, source, board))


def _same_parts(drawn: Drawn, count: int, size: int) -> list[np.ndarray]:
    return [noise(count * 8, drawn.key, rank) for rank in range(size)]


def _reduce(drawn: Drawn, rank: int, size: int) -> Prepared:
    count = drawn.counts[0]
    operation, reference = OPERATIONS[drawn.function]
    parts = _same_parts(drawn, count, size)
    source, board = single(count, drawn.layout), single(count, drawn.layout)
    here = drawn.in_place and rank == drawn.root
    (board if here else source).put(0, parts[rank])
    if rank == drawn.root:
        board.expect(0, fold(reference, parts))
    arguments = (
        None if here else source.message(),
        board.message() if rank == drawn.root else None,
        operation,
        drawn.root,
    )
    return Prepared(arguments, _verify(drawn, rank, source, board))


def _everywhere(drawn: Drawn, rank: int, size: int, begin: int, end: int) -> Prepared:
    """A message in, and out comes what ranks `begin` to `end` - 1 combine to."""
    count = drawn.counts[0]
    operation, reference = OPERATIONS[drawn.function]
    parts = _same_parts(drawn, count, size)
    source, board = single(count, drawn.layout), single(count, drawn.layout)
    (board if drawn.in_place else source).put(0, parts[rank])
    if end > begin:
        board.expect(0, fold(reference, parts[begin:end]))
    send = None if drawn.in_place else source.message()
    return Prepared((send, board.message(), operation), _verify(drawn, rank, source, board))


def _allreduce(drawn: Drawn, rank: int, size: int) -> Prepared:
    return _everywhere(drawn, rank, size, 0, size)


def _scan(drawn: Drawn, rank: int, size: int) -> Prepared:
    return _everywhere(drawn, rank, size, 0, rank + 1)


def _exscan(drawn: Drawn, rank: int, size: int) -> Prepared:
    return _everywhere(drawn, rank, size, 0, rank)


def _reduce_scatter(drawn: Drawn, rank: int, size: int) -> Prepared:
    operation, reference = OPERATIONS[drawn.function]
    counts = list(drawn.counts[:size])
    parts = _same_parts(drawn, sum(counts), size)
    source = single(sum(counts), drawn.layout)
    board = single(sum(counts) if drawn.in_place else counts[rank], drawn.layout)
    (board if drawn.in_place else source).put(0, parts[rank])
    first = sum(counts[:rank]) * 8
    board.expect(0, fold(reference, parts)[first : first + counts[rank] * 8])
    send = None if drawn.in_place else source.message()
    return Prepared((send, board.message(), counts, operation), _verify(drawn, rank, source, board))
