"""A member has left: nobody waits for ever in a collective, also who waits for a rank that lives.

Who waits for the one that has left gets an error, and tells those that wait for it in turn.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest
from ompy.data.convertor import ContiguousConvertor
from ompy.data.errors import ERR_PROC_FAILED, MPIError
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.runtime.ranks.process import RankProcess

from tests.support.effort import THOROUGH, effort
from tests.support.worlds import virtual

PATIENCE = 50  # ms of virtual time
# ns; patience, and what a collective gives messages whose beginning is here
BOUND = 3 * PATIENCE * 1_000_000 + 2_000_000_000
LARGE = 200_000
SEEDS = effort(1)
CELLS = [*product((3, 5), ("tcp", "sm"))]  # ranks and BTL


def numbers(count: int = 1) -> array[int]:
    return array("i", [1] * count)


CALLS: dict[str, Callable[[Any], object]] = {
    "barrier": lambda comm: comm.Barrier(),
    "bcast": lambda comm: comm.Bcast(numbers(), root=1),
    "large bcast": lambda comm: comm.Bcast(numbers(LARGE), root=1),
    "reduce": lambda comm: comm.Reduce(numbers(), numbers(), root=0),
    "allreduce": lambda comm: comm.Allreduce(numbers(), numbers()),
    "large allreduce": lambda comm: comm.Allreduce(numbers(LARGE), numbers(LARGE)),
    "allgather": lambda comm: comm.Allgather(numbers(), numbers(comm.size)),
    "large allgather": lambda comm: comm.Allgather(numbers(LARGE), numbers(LARGE * comm.size)),
    "alltoall": lambda comm: comm.Alltoall(numbers(comm.size), numbers(comm.size)),
    "large alltoall": lambda comm: comm.Alltoall(
        numbers(LARGE * comm.size), numbers(LARGE * comm.size)
    ),
    "scan": lambda comm: comm.Scan(numbers(), numbers()),
    "objects": lambda comm: comm.allgather(comm.rank),
    "object from the one": lambda comm: comm.bcast(1, root=1),
    "ibarrier": lambda comm: comm.Ibarrier().Wait(),
    "large ialltoall": lambda comm: comm.Ialltoall(
        numbers(LARGE * comm.size), numbers(LARGE * comm.size)
    ).Wait(),
    "dup": lambda comm: comm.Dup(),
    "split": lambda comm: comm.Split(0),
}
RING_CALLS: dict[str, Callable[[Any], object]] = {
    "neighbor_allgather": lambda comm: comm.Neighbor_allgather(numbers(), numbers(2)),
    "large neighbor_alltoall": lambda comm: comm.Neighbor_alltoall(
        numbers(2 * LARGE), numbers(2 * LARGE)
    ),
    "ineighbor_alltoall": lambda comm: comm.Ineighbor_alltoall(numbers(2), numbers(2)).Wait(),
    "objects of neighbours": lambda comm: comm.neighbor_allgather(comm.rank),
}


def program(
    process: RankProcess, call: Callable[[Any], object], gone: int, ring: bool = False
) -> list[int]:
    """One leaves, the others call; then they talk. Codes, and the longest wait."""
    comm = world_of(process)
    if ring:
        comm = comm.Create_cart([comm.size], [True])
    comm.Barrier()
    if comm.rank == gone:
        return []
    now = process.context.engine.now
    began, code = now(), 0
    try:
        call(comm)
    except MPIException as problem:
        code = problem.code
    took = now() - began
    others = [rank for rank in range(comm.size) if rank != gone]
    place = others.index(comm.rank)
    after, before = others[(place + 1) % len(others)], others[place - 1]
    comm.Sendrecv(numbers(), after, 7, numbers(), before, 7)
    return [code, took]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("ranks", "btl"), CELLS if THOROUGH else CELLS[1:3])
@pytest.mark.parametrize("call", [*CALLS, *RING_CALLS])
def test_nobody_waits_for_ever(call: str, ranks: int, btl: str, seed: int) -> None:
    pml = ("ob1", "bfo")[(ranks + seed) % 2]
    settings = {"btl": f"self,{btl}", "pml": pml, f"pml_{pml}_leave_patience_ms": PATIENCE}
    ring = call in RING_CALLS
    body = partial(program, call=(RING_CALLS if ring else CALLS)[call], gone=1, ring=ring)
    job = virtual(ranks, body, seed=seed, **settings)
    results = [result for rank, result in enumerate(job.results) if rank != 1]
    assert {code for code, _ in results} <= {0, ERR_PROC_FAILED}
    assert any(code == ERR_PROC_FAILED for code, _ in results)
    assert max(took for _, took in results) < BOUND


def test_a_context_that_is_used_again_is_abandoned_like_any_other() -> None:
    """ABANDON is dropped for a communicator that has gone, not for the next one of its number."""

    def program(process: RankProcess) -> int:
        world = world_of(process)
        abandoned = process.pml.gone.abandoned
        old = world.Dup()
        number = old._state().communicator.context_id
        abandoned.ranks.add(1)  # as after an ABANDON: from then on what goes is remembered
        old.Free()
        world._state().world.ids.following = number
        comm = world.Dup()._state().communicator
        assert comm.context_id == number
        if world.rank == 1:
            process.pml.abandon(comm, -77)
            world.Barrier()
            world.recv(source=0)  # it lives on
            return 0
        request = process.pml.irecv(comm, ContiguousConvertor(memoryview(bytearray(4))), 1, -77)
        world.Barrier()
        with pytest.raises(MPIError) as raised:
            process.pml.wait(comm, request)
        world.send(None, dest=1)
        return raised.value.code

    assert virtual(2, program, btl="self,tcp").results == [ERR_PROC_FAILED, 0]
