"""coll sm between real processes: more ranks than cores, many communicators, a rank that ends."""

from __future__ import annotations

import pytest
from ompy.data.constants import ANY_TAG
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import THOROUGH
from tests.support.worlds import real

pytestmark = pytest.mark.proc


def everything(process: RankProcess) -> list[str]:
    """All operations of it on three communicators in turn, small and in pipelines."""
    import numpy as np
    from ompy.mpi.collectives.operation import OPERATIONS

    world = world_of(process)
    half = world.Split(world.rank % 2)
    comms = [world, half, world.Dup()]
    used = {type(comm._inner.coll.barrier.__self__).__name__ for comm in comms}
    for step in range(6):
        for comm in comms:
            for count in (1, 3000, 100_001):
                root = step % comm.size
                own = np.arange(count) + comm.rank
                total = comm.size * np.arange(count) + comm.size * (comm.size - 1) // 2
                result = np.zeros_like(own)
                comm.Allreduce(own, result)
                assert (result == total).all()
                result[:] = 0
                comm.Reduce(own, result, OPERATIONS["MAX"], root)
                assert comm.rank != root or (result == np.arange(count) + comm.size - 1).all()
                result = own * 7 if comm.rank == root else np.zeros_like(own)
                comm.Bcast(result, root)
                assert (result == (np.arange(count) + root) * 7).all()
                comm.Barrier()
    assert not world.Iprobe(tag=ANY_TAG)
    for comm in comms[1:]:
        comm.Free()
    return sorted(used)


def one_sleeps(process: RankProcess) -> str:
    """The others are parked meanwhile, and woken by the one that comes last."""
    import time

    world = world_of(process)
    for sleeper in range(world.size):
        if world.rank == sleeper:
            time.sleep(0.15)
        world.Barrier()
    return "awake"


def one_leaves(process: RankProcess) -> str:
    """A rank that ends instead of taking part is an error for the others."""
    world = world_of(process)
    world.Barrier()
    if world.rank == 1:
        return "left"
    try:
        world._inner.coll.barrier()
    except MPIError as problem:
        assert problem.code == ERR_PROC_FAILED
        return "told"
    return "hung"


def others_go_on(process: RankProcess) -> str:
    """Who waits for others in shared memory serves a large message of another meanwhile."""
    import numpy as np
    from ompy.mpi.collectives.operation import SUM

    world = world_of(process)
    data = np.arange(1 << 18) * (world.rank + 1)
    result = np.zeros_like(data)
    for step in range(3):
        if world.rank == 0:
            request = world.Isend(data, world.size - 1)
            (world.Barrier, lambda: world.Allreduce(data[:1], result[:1], SUM))[step % 2]()
            request.Wait()
        elif world.rank == world.size - 1:
            world.Recv(result, 0)  # before it takes part in what the others wait in
            assert (result == np.arange(1 << 18)).all()
            (world.Barrier, lambda: world.Allreduce(data[:1], result[:1], SUM))[step % 2]()
        else:
            (world.Barrier, lambda: world.Allreduce(data[:1], result[:1], SUM))[step % 2]()
    return "done"


@pytest.mark.nightly
@pytest.mark.parametrize("ranks", [2, 5] if THOROUGH else [4])
def test_more_ranks_than_cores(ranks: int) -> None:
    settings = {"btl": "self,sm", "coll_sm_fragment_size": 4096, "coll_sm_comm_num_segments": 3}
    found = real(ranks, "tests.proc.test_coll_sm:everything", settings=settings)
    # a communicator of one rank has nobody to share with
    assert found == [["SelfColl", "SmColl"] if ranks == 2 else ["SmColl"]] * ranks


def test_who_sleeps_is_woken() -> None:
    found = real(3, "tests.proc.test_coll_sm:one_sleeps", settings={"btl": "self,sm"})
    assert found == ["awake"] * 3


def test_messages_move_while_a_rank_waits_in_a_collective() -> None:
    found = real(3, "tests.proc.test_coll_sm:others_go_on", settings={"btl": "self,sm"})
    assert found == ["done"] * 3


def test_a_rank_that_ends_is_an_error() -> None:
    found = real(3, "tests.proc.test_coll_sm:one_leaves", settings={"btl": "self,sm"})
    assert found == ["told", "left", "told"]


def late_member(process: RankProcess) -> list[str]:
    """A member has left, the others write to their memory after the error, one comes late."""
    import time

    import numpy as np
    from ompy.mpi.errors import MPIException

    world = world_of(process)
    count, me = 300_000, world.rank
    mine, room = np.ones(3 * count, "b"), np.zeros(3 * count, "b")
    one = room[:count]
    calls = {
        "Bcast": lambda comm: comm.Bcast(mine[:count] if me == 0 else one),
        "Scatter": lambda comm: comm.Scatter(mine, one),
        "Scatterv": lambda comm: comm.Scatterv([mine, [count] * 3], one),
        "Allgather": lambda comm: comm.Allgather(mine[:count], room),
        "Alltoall": lambda comm: comm.Alltoall(mine, room),
        "Ibcast": lambda comm: comm.Ibcast(mine[:count] if me == 0 else one).Wait(),
        "Iscatter": lambda comm: comm.Iscatter(mine, one).Wait(),
        "Ialltoall": lambda comm: comm.Ialltoall(mine, room).Wait(),
        "Gather": lambda comm: comm.Gather(mine[:count], room, 1),
    }
    comms = [world.Dup() for _ in calls]
    for comm, call in zip(comms, calls.values(), strict=True):
        for _ in range(3):  # all come to the board, try to read each other's memory, know of it
            call(comm)
            world.Barrier()  # a root may be a whole board ahead
    if me == 2:
        return []
    if me == 1:
        time.sleep(1.0)
    said = []
    for comm, (name, call) in zip(comms, calls.items(), strict=True):
        mine[:], room[:] = 1, 0
        try:
            call(comm)
        except MPIException as problem:
            assert problem.Get_error_class() == ERR_PROC_FAILED, name
            said.append(f"{name} failed")
        else:
            said.append(f"{name} {sorted(set(room.tolist()))}")
        mine[:] = 7
    return said


def test_nobody_reads_what_an_owner_that_failed_has_lent() -> None:
    first, late, _ = real(3, "tests.proc.test_coll_sm:late_member", settings={"btl": "self,sm"})
    assert "Bcast failed" in first  # it had lent: so there was something to read
    assert "Scatter failed" in first
    assert "Ibcast failed" in first
    assert not [each for each in late if "7" in each], late
    assert "Bcast failed" in late


def neighbours(process: RankProcess) -> str:
    """Nonblocking and persistent calls along a ring, shown and as messages; then one leaves."""
    import numpy as np
    from ompy.mpi.errors import MPIException

    world = world_of(process)
    ring = world.Create_cart([world.size], periods=[True])
    before, after = ring.Shift(0, 1)
    for count in (1, 3000, 100_001):
        got = np.full(2 * count, -1)
        started = ring.Neighbor_allgather_init(np.full(count, world.rank), got)
        for _ in range(20):
            got[:] = -1
            started.Start()
            out, room = np.repeat([world.rank, world.rank + 100], count), np.full(2 * count, -1)
            begun = ring.Ineighbor_alltoall(out, room)
            started.Wait()
            begun.Wait()
            assert (got[:count] == before).all()
            assert (got[count:] == after).all()
            assert (room[:count] == before + 100).all()
            assert (room[count:] == after).all()
        started.Free()
    if world.rank == 1:
        return "left"
    try:
        ring.Ineighbor_allgather(np.zeros(1), np.zeros(2)).Wait()
    except MPIException as problem:
        assert problem.Get_error_class() == ERR_PROC_FAILED
        return "told"
    return "done"


def test_nonblocking_calls_of_neighbours() -> None:
    found = real(4, "tests.proc.test_coll_sm:neighbours", settings={"btl": "self,sm"})
    assert found == ["told", "left", "told", "done"]


def windows(process: RankProcess) -> str:
    """Windows of requests around the size of a ring, and beyond it, both ways at once."""
    import numpy as np
    from ompy.mpi.point_to_point.request import Request

    world = world_of(process)
    peers = [rank for rank in range(world.size) if rank != world.rank]
    for count in (100, 127, 1100):
        rooms = [np.full((count, 3), -1) for _ in peers]
        requests = [
            world.Irecv(room[place], peer)
            for room, peer in zip(rooms, peers, strict=True)
            for place in range(count)
        ]
        sent = np.arange(count)[:, None] * 1000 + [world.rank, 0, 7]
        requests += [world.Isend(sent[place], peer) for place in range(count) for peer in peers]
        Request.Waitall(requests)
        for room, peer in zip(rooms, peers, strict=True):
            assert (room == np.arange(count)[:, None] * 1000 + [peer, 0, 7]).all()
    return "done"


@pytest.mark.parametrize("ranks", [2, 8])
def test_windows_larger_than_a_ring(ranks: int) -> None:
    found = real(ranks, "tests.proc.test_coll_sm:windows", settings={"btl": "self,sm"})
    assert found == ["done"] * ranks
