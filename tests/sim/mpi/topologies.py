"""Programs of one rank each: graphs, and collectives along their edges."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from ompy.data.constants import PROC_NULL, UNDEFINED
from ompy.data.errors import ERR_ARG, ERR_BUFFER, ERR_RANK, ERR_TOPOLOGY
from ompy.mpi import constants
from ompy.mpi.buffers.markers import IN_PLACE
from ompy.mpi.communicators.comm import COMM_NULL
from ompy.mpi.communicators.graphs import Distgraphcomm, Graphcomm
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.communicators.topocomm import Topocomm
from ompy.mpi.datatypes.predefined import DATATYPES
from ompy.mpi.errors import MPIException
from ompy.runtime.ranks.process import RankProcess

LARGE = 5000  # numbers: more than a fragment


def _refused(code: int, call: Any, *arguments: Any) -> None:
    with pytest.raises(MPIException) as caught:
        call(*arguments)
    assert caught.value.Get_error_class() == code, caught.value


def graphs(process: RankProcess) -> None:
    """A ring as a graph; members that are no node; what belongs to the communicator."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    ends = [2 * (node + 1) for node in range(size)]
    edges = [other for node in range(size) for other in ((node - 1) % size, (node + 1) % size)]
    ring = comm.Create_graph(ends, edges, reorder=True)
    assert type(ring) is Graphcomm
    assert ring.topology == constants.GRAPH
    assert ring.is_topo
    assert (ring.Get_dims(), ring.nnodes, ring.nedges) == ((size, 2 * size), size, 2 * size)
    assert (ring.index, ring.edges) == (ends, edges)
    assert ring.neighbors == ring.inedges == ring.outedges == ring.Get_neighbors(rank)
    assert ring.nneighbors == ring.indegree == ring.outdegree == 2
    assert comm.Graph_map(ends, edges) == rank
    assert type(ring.Split(0, rank)) is Intracomm
    assert Graphcomm(ring).edges == edges
    with pytest.raises(TypeError):
        Distgraphcomm(ring)
    copy = ring.Dup()
    assert copy.topo == ring.topo
    _refused(ERR_RANK, ring.Get_neighbors, size)
    _refused(ERR_RANK, ring.Get_neighbors_count, -1)
    one = comm.Create_graph([1], [0])
    assert (one == COMM_NULL) == (rank > 0)
    assert comm.Graph_map([1], [0]) == (UNDEFINED if rank else 0)
    if one:
        assert one.neighbor_allgather("me") == ["me"]
    assert comm.Create_graph([], []) == COMM_NULL


def wrong_graphs(process: RankProcess) -> None:
    """What no graph is; a graph of edges that lead one way."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    for index, edges in (([2, 1], [0, 0]), ([-1], []), ([1], []), ([1], [1]), ([1], [-1])):
        _refused(ERR_ARG, comm.Create_graph, index, edges)
    _refused(ERR_ARG, comm.Create_graph, [0] * (size + 2), [])
    _refused(ERR_RANK, comm.Create_dist_graph_adjacent, [size], [])
    _refused(ERR_RANK, comm.Create_dist_graph_adjacent, [], [PROC_NULL])
    _refused(ERR_RANK, comm.Create_dist_graph, [size], [0], [])
    _refused(ERR_ARG, comm.Create_dist_graph, [0], [-1], [])
    _refused(ERR_ARG, comm.Create_dist_graph_adjacent, [rank], [rank], [1], None)
    _refused(ERR_ARG, comm.Create_dist_graph_adjacent, [rank], [rank], [1], [-1])
    for wrong in (([0], [1], []), ([0], [], []), ([0], [1], [0], [1, 2])):
        with pytest.raises(ValueError, match="expecting"):
            comm.Create_dist_graph(*wrong)
    with pytest.raises(ValueError, match="nonzero degree"):
        comm.Create_dist_graph_adjacent([rank], [], constants.WEIGHTS_EMPTY, None)
    if size > 1:
        chain = comm.Create_graph([1] * size, [1])
        _refused(ERR_TOPOLOGY, chain.neighbor_allgather, 0)
        _refused(ERR_TOPOLOGY, chain.Neighbor_allgather, bytes(1), bytearray(1))
        weights = [1] if rank == 0 else None
        _refused(ERR_ARG, comm.Create_dist_graph, [rank], [1], [0], weights)
    assert comm.allreduce(1) == size


def distributed_graphs(process: RankProcess) -> None:
    """Rank 0 tells of all edges; weights; members without any edge."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    told = (range(size), [2] * size, [to for s in range(size) for to in (s, (s + 1) % size)])
    weights = list(range(2 * size))
    arguments = (*told, weights) if rank == 0 else ([], [], [], constants.WEIGHTS_EMPTY)
    made = comm.Create_dist_graph(*arguments)
    assert made.topology == constants.DIST_GRAPH
    before = (rank - 1) % size
    incoming = sorted([(2 * rank, rank), (2 * before + 1, before)])
    assert made.Get_dist_neighbors_count() == (2, 2, True)
    assert made.Get_dist_neighbors() == (
        [source for _, source in incoming],
        [rank, (rank + 1) % size],
        ([weight for weight, _ in incoming], [2 * rank, 2 * rank + 1]),
    )
    found = made.neighbor_alltoall([(rank, "own"), (rank, "next")])
    assert sorted(found) == sorted([(rank, "own"), (before, "next")])
    empty = comm.Create_dist_graph_adjacent(None, None)
    assert empty.neighbor_allgather("nobody hears") == []
    assert empty.neighbor_alltoall([]) == []
    room = bytearray(b"x")
    empty.Neighbor_allgather(b"y", room)
    empty.Neighbor_alltoallv([b"y", []], [room, []])
    assert room == b"x"
    star = comm.Create_dist_graph_adjacent([0], range(size) if rank == 0 else [])
    assert star.degrees == (1, size if rank == 0 else 0)
    assert star.neighbor_allgather(rank) == [0]


def along_edges(process: RankProcess) -> None:
    """Large blocks in all forms; several calls under way; who calls what is no call."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    line = comm.Create_cart([size], [False])
    room = array("i", [-1] * (2 * LARGE))
    line.Neighbor_allgather(array("i", [rank] * LARGE), room)
    expected = [at if 0 <= at < size else -1 for at in (rank - 1, rank + 1)]
    assert [room[0], room[LARGE - 1], room[LARGE], room[-1]] == [
        expected[0],
        expected[0],
        expected[1],
        expected[1],
    ]
    left, right = (at if at >= 0 else None for at in expected)
    assert line.neighbor_allgather(rank) == [left, right]
    pair = comm.Create_dist_graph_adjacent([(rank - 1) % size] * 2, [(rank + 1) % size] * 2)
    rooms = [array("i", [-1] * (2 * LARGE)) for _ in range(4)]
    requests = [
        pair.Ineighbor_alltoall(array("i", [rank + turn] * LARGE + [turn] * LARGE), into)
        for turn, into in enumerate(rooms)
    ]
    last = array("i", [-1, -1])
    kinds = [DATATYPES["INT"]] * 2
    again = pair.Neighbor_alltoallw_init(
        [array("i", [7, 8]), ([1, 1], [4, 0]), kinds], [last, ([1, 1], [0, 4]), kinds]
    )
    for request in reversed(requests):
        request.Wait()
    for turn, into in enumerate(rooms):
        assert set(into[:LARGE]) == {(rank - 1) % size + turn}
        assert set(into[LARGE:]) == {turn}
    for _ in range(3):
        last[:] = array("i", [-1, -1])
        again.Start()
        again.Wait()
        assert list(last) == [8, 7]
    again.Free()
    _refused(ERR_BUFFER, line.Neighbor_allgather, IN_PLACE, room)
    with pytest.raises(ValueError, match="expecting 2 items"):
        pair.neighbor_alltoall([1])
    with pytest.raises(ValueError, match="multiple"):
        pair.Neighbor_allgather(bytes(1), bytearray(3))
    with pytest.raises(TypeError):
        Topocomm(comm)


PROGRAMS = ("graphs", "wrong_graphs", "distributed_graphs", "along_edges")
