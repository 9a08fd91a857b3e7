"""Vector variants with any counts, displacements and layouts: only the blocks are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy.data.layout import Layout
from ompy.frameworks.communicator import Communicator
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll import programs
from tests.sim.coll.shapes import LAYOUTS, PLAIN, Board, noise, single
from tests.support.effort import effort
from tests.support.worlds import virtual

INTS = Layout(((0, 4),), 0, 4, "i")  # half an element of the others
SCATTERED = Layout(((16, 4), (0, 2), (8, 2)), -3, 24, "")

layouts = st.sampled_from((*LAYOUTS, SCATTERED))
counts = st.sampled_from((0, 0, 1, 2, 3, 9, 70))
limits = st.sampled_from((0, 8, 100, 1 << 20))


class World:
    """A draw of everything a vector call needs."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self.draw = draw
        self.size: int = draw(st.integers(1, 6))
        self.root: int = draw(st.integers(0, self.size - 1))
        self.in_place: bool = draw(st.booleans())
        self.settings = {
            "coll": "basic",
            "coll_basic_tree_block_max": draw(limits),
            "coll_basic_allgather_small_max": draw(limits),
            "coll_basic_alltoall_window": draw(st.sampled_from((1, 2, 16))),
            "btl": draw(st.sampled_from(("self,sm", "self,tcp"))),
        }
        self.seed: int = draw(st.integers(0, 1 << 20))

    def board(self, each: Sequence[int]) -> Board:
        """Blocks of so many elements, anywhere, of any layout."""
        ranks = range(len(each))
        return Board(
            each,
            [self.draw(layouts) for _ in ranks],
            [self.draw(st.integers(0, 9)) for _ in ranks],
            self.draw(st.permutations(ranks)),
        )

    def run(self, program: Callable[[Communicator], None]) -> None:
        def body(process: RankProcess) -> None:
            program(programs.world(process))

        virtual(self.size, body, seed=self.seed, **self.settings)


@st.composite
def worlds(draw: Callable[[Any], Any]) -> World:
    return World(draw)


few = settings(max_examples=effort(40), deadline=None)  # CI runs them in both forms


def part(*key: int) -> np.ndarray:
    """Eight bytes for each element: key is the count and what tells parts apart."""
    return noise(key[0] * 8, *key)


@few
@given(worlds(), st.data())
def test_scatterv(world: World, data: st.DataObject) -> None:
    each = [data.draw(counts) for _ in range(world.size)]
    source, mine = world.board(each), [world.board([count]) for count in each]
    for rank, count in enumerate(each):
        source.put(rank, part(count, rank))

    def program(comm: Communicator) -> None:
        here = comm.rank == world.root
        receive = None if here and world.in_place else mine[comm.rank].message()
        comm.coll.scatter(source.blocks() if here else None, receive, world.root)
        if receive is not None:
            mine[comm.rank].expect(0, part(each[comm.rank], comm.rank))

    world.run(program)
    for board in (source, *mine):
        board.verify("scatterv")


@few
@given(worlds(), st.data())
def test_gatherv(world: World, data: st.DataObject) -> None:
    each = [data.draw(counts) for _ in range(world.size)]
    target, mine = world.board(each), [world.board([count]) for count in each]
    for rank, count in enumerate(each):
        (target if world.in_place and rank == world.root else mine[rank]).put(
            rank if world.in_place and rank == world.root else 0, part(count, rank)
        )

    def program(comm: Communicator) -> None:
        here = comm.rank == world.root
        send = None if here and world.in_place else mine[comm.rank].message()
        comm.coll.gather(send, target.blocks() if here else None, world.root)

    world.run(program)
    for rank, count in enumerate(each):
        target.expect(rank, part(count, rank))
    for board in (target, *mine):
        board.verify("gatherv")


@few
@given(worlds(), st.data())
def test_allgatherv(world: World, data: st.DataObject) -> None:
    each = [data.draw(counts) for _ in range(world.size)]
    targets = [world.board(each) for _ in each]
    mine = [world.board([count]) for count in each]
    for rank, count in enumerate(each):
        if world.in_place:
            targets[rank].put(rank, part(count, rank))
        else:
            mine[rank].put(0, part(count, rank))

    def program(comm: Communicator) -> None:
        send = None if world.in_place else mine[comm.rank].message()
        comm.coll.allgather(send, targets[comm.rank].blocks())

    world.run(program)
    for target in targets:
        for rank, count in enumerate(each):
            target.expect(rank, part(count, rank))
    for board in (*targets, *mine):
        board.verify("allgatherv")


@few
@given(worlds(), st.data())
def test_alltoallw(world: World, data: st.DataObject) -> None:
    ranks = range(world.size)
    table = [[data.draw(counts) for _ in ranks] for _ in ranks]
    if world.in_place:
        table = [[table[min(i, j)][max(i, j)] for j in ranks] for i in ranks]
    sources = [world.board(table[i]) for i in ranks]
    targets = [world.board([table[i][j] for i in ranks]) for j in ranks]
    for i in ranks:
        for j in ranks:
            (targets if world.in_place else sources)[i].put(j, part(table[i][j], i, j))

    def program(comm: Communicator) -> None:
        send = None if world.in_place else sources[comm.rank].blocks()
        comm.coll.alltoall(send, targets[comm.rank].blocks())

    world.run(program)
    for i in ranks:
        for j in ranks:
            targets[j].expect(i, part(table[i][j], i, j))
    for board in (*sources, *targets):
        board.verify("alltoallw", table)


@few
@given(worlds(), st.data())
def test_same_bytes_in_other_units(world: World, data: st.DataObject) -> None:
    """Sender and receiver need agree on bytes only: two elements here are one there."""
    each = [data.draw(counts) for _ in range(world.size)]
    target = Board([2 * count for count in each], [INTS] * world.size)

    def program(comm: Communicator) -> None:
        mine = single(each[comm.rank], PLAIN)
        mine.put(0, part(each[comm.rank], comm.rank))
        here = comm.rank == world.root
        comm.coll.gather(mine.message(), target.blocks() if here else None, world.root)
        back = single(each[comm.rank], PLAIN)
        comm.coll.scatter(target.blocks() if here else None, back.message(), world.root)
        back.expect(0, part(each[comm.rank], comm.rank))
        back.verify("back")

    world.run(program)
    for rank, count in enumerate(each):
        target.expect(rank, part(count, rank))
    target.verify("there")
