"""Large nonblocking collective calls: what is lent is read before it is used again."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from ompy.mpi.buffers.markers import IN_PLACE
from ompy.mpi.collectives.operation import SUM
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import effort
from tests.support.worlds import real

# around `coll_sm_lend_least` and `coll_sm_nonblocking_size` (64 KiB), what goes past the cache in
# any case (16 KiB), and a page of others
COUNTS = (1, 2047, 2048, 2049, 4097, 8191, 8192, 8193, 131072, 200001)
CALLS = (
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "alltoall in place",
    "reduce",
    "allreduce",
    "allreduce in place",
    "scan",
    "scan in place",
    "reduce_scatter",
    "neighbor_allgather",
    "neighbor_alltoall",
    "blocking",
)


def begun(
    comm: Any, ring: Any, call: str, count: int, root: int
) -> tuple[Any, Any, Any, list[Any]]:
    """A request, its result, what that has to be, and what the caller may write to afterwards."""
    import numpy as np

    rank, ranks = comm.rank, comm.size

    def of(other: int, block: int = 0) -> Any:
        return np.arange(count) + 1000 * other + 7 * block

    everybody = range(ranks)
    mine, room, rooms = of(rank), np.zeros(count, int), np.zeros(count * ranks, int)
    blocks = np.concatenate([of(rank, block) for block in everybody])
    all_of = np.concatenate([of(other) for other in everybody])
    for_me = np.concatenate([of(other, rank) for other in everybody])
    here, spoilt = rank == root, [mine, blocks]
    before, after = (rank - 1) % ranks, (rank + 1) % ranks
    if call == "bcast":
        told = mine if here else room
        return comm.Ibcast(told, root), told, of(root), spoilt
    if call == "gather":
        request = comm.Igather(mine, rooms if here else None, root)
        return request, rooms if here else None, all_of, spoilt
    if call == "scatter":
        request = comm.Iscatter(blocks if here else None, room, root)
        return request, room, of(root, rank), spoilt
    if call == "allgather":
        return comm.Iallgather(mine, rooms), rooms, all_of, spoilt
    if call == "alltoall":
        return comm.Ialltoall(blocks, rooms), rooms, for_me, spoilt
    if call == "alltoall in place":
        rooms[:] = blocks
        return comm.Ialltoall(IN_PLACE, rooms), rooms, for_me, spoilt
    if call == "reduce":
        request = comm.Ireduce(mine, room if here else None, SUM, root)
        return request, room if here else None, sum(map(of, everybody)), spoilt
    if call == "reduce_scatter":
        request = comm.Ireduce_scatter_block(blocks, room)
        return request, room, sum(of(other, rank) for other in everybody), spoilt
    if call.startswith("neighbor"):
        pair = np.zeros(2 * count, int)
        if call == "neighbor_allgather":
            wanted = np.concatenate([of(before), of(after)])
            return ring.Ineighbor_allgather(mine, pair), pair, wanted, spoilt
        both = np.concatenate([mine, mine + 5])
        wanted = np.concatenate([of(before) + 5, of(after)])
        return ring.Ineighbor_alltoall(both, pair), pair, wanted, [*spoilt, both]
    if call == "blocking":
        comm.Allgather(mine, rooms)
        return None, rooms, all_of, spoilt
    method = comm.Iscan if call.startswith("scan") else comm.Iallreduce
    wanted = sum(map(of, range(rank + 1) if call.startswith("scan") else everybody))
    if call.endswith("in place"):
        room[:] = mine
        return method(IN_PLACE, room), room, wanted, spoilt
    return method(mine, room), room, wanted, spoilt


def mixed_calls(process: RankProcess) -> str:
    """Several under way, waited for in an order of each member's own."""
    comm = world_of(process)
    ring = comm.Create_cart([comm.size], periods=[True])
    for seed in range(effort(2)):
        alike, own = Random(seed), Random(f"{seed}, {comm.rank}")
        for _ in range(12):
            under_way = []
            for _ in range(alike.randrange(1, 6)):
                call, count = alike.choice(CALLS), alike.choice(COUNTS)
                made = begun(comm, ring, call, count, alike.randrange(comm.size))
                under_way.append((call, count, *made))
            own.shuffle(under_way)
            for call, count, request, result, wanted, spoilt in under_way:
                if request is not None:
                    request.Wait()
                assert result is None or (result == wanted).all(), (call, count)
                for memory in spoilt:
                    memory[:] = -1
    return "right"


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_nothing_is_given_back_before_it_was_read(ranks: int) -> None:
    found = real(
        ranks, "tests.proc.test_large_collectives:mixed_calls", settings={"btl": "self,sm"}
    )
    assert found == ["right"] * ranks
