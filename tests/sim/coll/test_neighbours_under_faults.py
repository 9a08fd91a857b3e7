"""Neighbourhood collectives over wires that lose, double, reorder and damage packets."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from ompy.mpi.communicators.predefined_comms import world_of

from tests.sim.test_fault_scripts import job

LARGE = 5000  # numbers: more than a fragment
SCRIPT = (
    "corrupt:probability=0.1;drop:probability=0.1;duplicate:probability=0.1;reorder:probability=0.2"
)


def program(process: Any) -> None:
    """Two edges to the next member and one to oneself; all forms, several at a time."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    before, after = (rank - 1) % size, (rank + 1) % size
    graph = comm.Create_dist_graph_adjacent([before, rank, before], [after, rank, after])
    for turn in range(3):
        blocks = [rank, 10 + rank, 20 + rank]
        sent = array("i", [number + turn for number in blocks for _ in range(LARGE)])
        rooms = [array("i", [-1] * len(sent)) for _ in range(2)]
        request = graph.Ineighbor_alltoall(sent, rooms[0])
        found = graph.neighbor_alltoall([(rank, place) for place in range(3)])
        assert found == [(before, 0), (rank, 1), (before, 2)]
        graph.Neighbor_alltoall(sent, rooms[1])
        request.Wait()
        for room in rooms:
            parts = [set(room[at * LARGE : (at + 1) * LARGE]) for at in range(3)]
            assert parts == [{before + turn}, {10 + rank + turn}, {20 + before + turn}]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("btl", ["self,usnic", "self,tcp"])
def test_blocks_arrive_as_they_were_sent(btl: str, seed: int) -> None:
    script = SCRIPT if "usnic" in btl else "delay:delay=100us,jitter=500us"
    world, faults = job(script, btl, seed)
    world.run(program)
    assert sum(sum(one.delivered) for one in faults) > 0, "no fault was delivered"
