"""Neighbourhood collectives, all forms of all of them, against a model in plain Python.

Graphs have edges to oneself and several edges between the same two members. The model pairs the
k-th edge to a member with the k-th edge from there; in a grid it pairs directions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from math import prod
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ompy import MPI
from ompy.frameworks.collectives import exchange
from ompy.frameworks.pml import STANDARD, SYNCHRONOUS
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import effort
from tests.support.worlds import virtual

LENGTHS = (0, 1, 3, 700)  # numbers in a block: none, eager, more than one fragment
NAMES = ("allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw")
WAYS = ("blocking", "nonblocking", "persistent")
Lists = list[list[int]]


class Drawn(NamedTuple):
    """A topology, and from which block of whom each block comes.

    Attributes:
        sources: of each rank.
        targets: of each rank.
        origins: for each rank and source, the place among the source's targets; -1 for nobody.
        make: makes the communicator.
    """

    sources: Lists
    targets: Lists
    origins: Lists
    make: Callable[[Any], Any]


def paired(sources: Lists, targets: Lists) -> Lists:
    """The k-th edge to a member is the k-th edge from there."""
    origins = []
    for rank, mine in enumerate(sources):
        seen: dict[int, int] = defaultdict(int)
        found = []
        for source in mine:
            places = [place for place, to in enumerate(targets[source]) if to == rank]
            found.append(places[seen[source]])
            seen[source] += 1
        origins.append(found)
    return origins


@st.composite
def edges(draw: Callable[[Any], Any], size: int) -> list[tuple[int, int]]:
    rank = st.integers(0, size - 1)
    found: list[tuple[int, int]] = draw(st.lists(st.tuples(rank, rank), max_size=3 * size))
    return found


def adjacent(chance: Random, size: int, drawn: list[tuple[int, int]]) -> Drawn:
    """Every member tells its own edges, in an order of its own."""
    sources: Lists = [[s for s, t in drawn if t == rank] for rank in range(size)]
    targets: Lists = [[t for s, t in drawn if s == rank] for rank in range(size)]
    for mine in (*sources, *targets):
        chance.shuffle(mine)

    def make(world: Any) -> Any:
        mine, theirs = sources[world.rank], targets[world.rank]
        weights = [7 * each for each in mine], [9 * each for each in theirs]
        made = world.Create_dist_graph_adjacent(mine, theirs, *weights)
        assert made.Get_dist_neighbors() == (mine, theirs, weights)
        return made

    return Drawn(sources, targets, paired(sources, targets), make)


def distributed(chance: Random, size: int, drawn: list[tuple[int, int]]) -> Drawn:
    """Any member tells of any edge; who told first has the first places."""
    told: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for edge in drawn:
        told[chance.randrange(size)].append(edge)
    every = [edge for mine in told for edge in mine]
    sources: Lists = [[s for s, t in every if t == rank] for rank in range(size)]
    targets: Lists = [[t for s, t in every if s == rank] for rank in range(size)]

    def make(world: Any) -> Any:
        mine = told[world.rank]
        starts, ends = [s for s, _ in mine], [t for _, t in mine]
        made = world.Create_dist_graph(starts, [1] * len(mine), ends)
        assert made.Get_dist_neighbors() == (sources[world.rank], targets[world.rank], None)
        return made

    return Drawn(sources, targets, paired(sources, targets), make)


def graph(chance: Random, size: int, drawn: list[tuple[int, int]]) -> Drawn:
    """Each edge leads both ways; every member knows all."""
    both = [edge for s, t in drawn for edge in ({(s, t), (t, s)})]
    lists: Lists = [[t for s, t in both if s == rank] for rank in range(size)]
    for mine in lists:
        chance.shuffle(mine)
    ends, flat = [], []
    for mine in lists:
        flat += mine
        ends.append(len(flat))

    def make(world: Any) -> Any:
        made = world.Create_graph([0, *ends], flat)  # or no node could be without edges
        assert made.Get_topo() == (ends, flat)
        assert [made.Get_neighbors(rank) for rank in range(size)] == lists
        return made

    return Drawn(lists, lists, paired(lists, lists), make)


def grid(chance: Random, size: int, _: list[tuple[int, int]]) -> Drawn:
    """What is sent in a direction comes from the other one."""
    dims = MPI.Compute_dims(size, chance.randrange(1, 4))
    chance.shuffle(dims)
    rings = [chance.random() < 0.7 for _ in dims]
    lists: Lists = []
    for rank in range(size):
        mine = []
        for dim, (width, ring) in enumerate(zip(dims, rings, strict=True)):
            stride = prod(dims[dim + 1 :])
            at = rank // stride % width
            for step in (-1, 1):
                inside = ring or 0 <= at + step < width
                there = rank + ((at + step) % width - at) * stride
                mine.append(there if inside else MPI.PROC_NULL)
        lists.append(mine)
    origins = [
        [-1 if source < 0 else place ^ 1 for place, source in enumerate(mine)] for mine in lists
    ]
    return Drawn(lists, lists, origins, lambda world: world.Create_cart(dims, rings))


KINDS = (adjacent, distributed, graph, grid)


def block(rank: int, place: int, count: int, call: int) -> list[int]:
    """What a member sends to one target."""
    return [1_000_000 * call + 10_000 * rank + 100 * place + i % 100 for i in range(count)]


def buffers(drawn: Drawn, rank: int, name: str, length: int, call: int) -> tuple[Any, Any, Any]:
    """A call's two buffers, and what is to be in the second one at the end, block by block."""
    sources, targets, origins = drawn.sources[rank], drawn.targets[rank], drawn.origins[rank]
    varied = name[-1] in "vw"
    gathers = name.startswith("allgather")

    def count(source: int, place: int) -> int:
        return length + (source + (0 if gathers else place)) % 3 if varied else length

    if gathers:
        sent = [block(rank, 0, count(rank, 0), call)]
        origins = [0 if place >= 0 else -1 for place in origins]
    else:
        sent = [block(rank, place, count(rank, place), call) for place in range(len(targets))]
    expected = [
        [-1] * length if place < 0 else block(source, place, count(source, place), call)
        for source, place in zip(sources, origins, strict=True)
    ]
    out = np.array([number for each in sent for number in each], "i8")
    room = np.full(sum(map(len, expected)), -1, "i8")
    if not varied:
        return [out, MPI.INT64_T], [room, MPI.INT64_T], (room, expected)
    sides = []
    for memory, blocks in ((out, sent), (room, expected)):
        counts = [len(each) for each in blocks]
        places = [sum(counts[:place]) for place in range(len(counts))]
        if name == "alltoallw":
            types = [MPI.INT64_T] * len(counts)
            sides.append([memory, (counts, [8 * place for place in places]), types])
        elif gathers and memory is out:
            sides.append([memory, MPI.INT64_T])
        else:
            sides.append([memory, (counts, places), MPI.INT64_T])
    return sides[0], sides[1], (room, expected)


def check(room: np.ndarray, expected: Lists, story: object) -> None:
    assert room.tolist() == [number for each in expected for number in each], story


def one_call(comm: Any, drawn: Drawn, name: str, way: str, length: int, call: int) -> Any:
    """Make a call; what has to be waited for, and then looked at."""
    out, into, result = buffers(drawn, comm.rank, name, length, call)
    story = name, way, length
    if way == "blocking":
        getattr(comm, f"Neighbor_{name}")(out, into)
        check(*result, story)
        return None
    if way == "nonblocking":
        return getattr(comm, f"Ineighbor_{name}")(out, into), result, story
    request = getattr(comm, f"Neighbor_{name}_init")(out, into)
    for _ in range(2):
        result[0][:] = -1
        request.Start()
        request.Wait()
        check(*result, story)
    request.Free()
    return None


def objects(comm: Any, drawn: Drawn) -> None:
    rank = comm.rank
    sources, origins = drawn.sources[rank], drawn.origins[rank]
    pairs = list(zip(sources, origins, strict=True))
    found = comm.neighbor_alltoall([(rank, place) for place in range(len(drawn.targets[rank]))])
    assert found == [None if place < 0 else (source, place) for source, place in pairs]
    large = "x" * 9000
    found = comm.neighbor_allgather([rank, large])
    assert found == [None if place < 0 else [source, large] for source, place in pairs]


@pytest.mark.parametrize("sending", [STANDARD, SYNCHRONOUS])
@pytest.mark.parametrize("kind", KINDS)
def test_every_form_is_as_the_model(kind: Any, sending: int) -> None:
    @settings(max_examples=effort(20), deadline=None)
    @given(data=st.data())
    def run(data: st.DataObject) -> None:
        size, seed = data.draw(st.integers(1, 5)), data.draw(st.integers(0, 1 << 20))
        drawn = kind(Random(seed), size, data.draw(edges(size)))
        calls = data.draw(
            st.lists(
                st.tuples(*(st.sampled_from(each) for each in (NAMES, WAYS, LENGTHS))), max_size=6
            )
        )

        def program(process: RankProcess) -> None:
            world = world_of(process)
            comm = drawn.make(world)
            mine = drawn.sources[comm.rank], drawn.targets[comm.rank]
            assert comm.inoutedges == mine
            assert comm.degrees == (len(mine[0]), len(mine[1]))
            begun = []
            for number, (name, way, length) in enumerate(calls):
                begun.append(one_call(comm, drawn, name, way, length, number))
            for request, result, story in filter(None, reversed(begun)):
                request.Wait()
                check(*result, story)
            copy = comm.Dup()
            objects(copy, drawn)
            copy.Free()
            comm.Free()

        btl = data.draw(st.sampled_from(("self,sm", "self,tcp", "self,usnic")))
        # with the least of it, blocks have room beside each other, or go as messages
        slot = data.draw(st.sampled_from((64, 256, 65536)))
        chosen = {"coll_sm_fragment_size": slot}
        chosen["coll_sm_nonblocking_size"] = slot
        chosen["coll_sm_lend_least"] = data.draw(st.sampled_from((1, 300, 16384)))
        chosen["coll_sm_single_copy"] = data.draw(st.sampled_from((1, 1, 0)))
        virtual(size, program, seed=seed, btl=btl, **chosen)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "STANDARD", sending)
        run()
