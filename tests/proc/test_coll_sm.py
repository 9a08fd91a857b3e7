"""coll sm between real processes: more ranks than cores, many communicators, a rank that ends."""

from __future__ import annotations

import pytest
from ompy.data.constants import ANY_TAG
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.mpi.predefined_comms import world_of
from ompy.runtime.process import RankProcess

from tests.support.effort import THOROUGH
from tests.support.worlds import real

pytestmark = pytest.mark.proc


def everything(process: RankProcess) -> list[str]:
    """All operations of it on three communicators in turn, small and in pipelines."""
    import numpy as np
    from ompy.mpi.operation import OPERATIONS

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
    from ompy.mpi.operation import SUM

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


@pytest.mark.parametrize("ranks", [2, 5] if THOROUGH else [4])
def test_more_ranks_than_cores(ranks: int) -> None:
    settings = {"btl": "self,sm", "coll_sm_fragment_size": 4096, "coll_sm_comm_num_segments": 3}
    found = real(ranks, "tests.proc.test_coll_sm:everything", settings=settings)
    # a communicator of one rank has nobody to share with
    assert found == [["Basic", "SmColl"] if ranks == 2 else ["SmColl"]] * ranks


def test_who_sleeps_is_woken() -> None:
    found = real(3, "tests.proc.test_coll_sm:one_sleeps", settings={"btl": "self,sm"})
    assert found == ["awake"] * 3


def test_messages_move_while_a_rank_waits_in_a_collective() -> None:
    found = real(3, "tests.proc.test_coll_sm:others_go_on", settings={"btl": "self,sm"})
    assert found == ["done"] * 3


def test_a_rank_that_ends_is_an_error() -> None:
    found = real(3, "tests.proc.test_coll_sm:one_leaves", settings={"btl": "self,sm"})
    assert found == ["told", "left", "told"]
