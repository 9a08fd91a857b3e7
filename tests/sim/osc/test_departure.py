"""A rank ends in an epoch: whoever needs it gets MPI_ERR_PROC_FAILED, in bounded time."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
from ompy.data.errors import ERR_PROC_FAILED
from ompy.frameworks.osc_base.module import GRACE
from ompy.mpi import constants
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import NEWS

from tests.support.effort import THOROUGH, effort
from tests.support.worlds import virtual

END_MAX = GRACE + 100_000_000  # ns after the news; arbitrary: as little as is sure to be more
SEEDS = effort(2)
ENDS = 1  # the rank that does


def made(process: RankProcess) -> tuple[Any, Win]:
    comm = world_of(process)
    win = Win.Create(array("i", [0] * 8), 4, comm=comm)
    win.Fence()
    win.Put(array("i", [1]), (comm.rank + 1) % comm.size)  # they have all met
    win.Fence()
    return comm, win


def held_lock(comm: Any, win: Win) -> None:
    """It has the lock of rank 0, for which others wait."""
    if comm.rank == ENDS:
        win.Lock(0)
        comm.Send(array("i", [1]), 0)
        comm.Send(array("i", [1]), 2)
        return
    comm.Recv(array("i", [0]), ENDS)
    win.Lock(0)


def target_lock(comm: Any, win: Win) -> None:
    """It is asked for its own lock, again and again."""
    if comm.rank != ENDS:
        while True:
            win.Lock(ENDS, constants.LOCK_SHARED)
            win.Unlock(ENDS)


def flush(comm: Any, win: Win) -> None:
    """It is written to."""
    if comm.rank != ENDS:
        win.Lock_all()
        while True:
            win.Put(array("i", [1] * 4), ENDS)
            win.Flush(ENDS)


def fetch(comm: Any, win: Win) -> None:
    """It is read from."""
    if comm.rank != ENDS:
        win.Lock_all()
        while True:
            win.Rget(array("i", [1] * 4), ENDS).Wait()


def post(comm: Any, win: Win) -> None:
    """It is expected to post."""
    if comm.rank != ENDS:
        win.Start(win.group.Incl([ENDS]))
        win.Put(array("i", [1]), ENDS)


def complete(comm: Any, win: Win) -> None:
    """It is expected to complete."""
    if comm.rank != ENDS:
        win.Post(win.group.Incl([ENDS]))
        win.Wait()


def fence(comm: Any, win: Win) -> None:
    """It is expected in a fence."""
    if comm.rank != ENDS:
        win.Fence()


def free(comm: Any, win: Win) -> None:
    """It is expected to free the window."""
    if comm.rank != ENDS:
        win.Free()


OVER: dict[str, dict[str, object]] = {
    "sm": {"btl": "self,sm", "osc": "pt2pt"},
    "tcp": {"btl": "self,tcp", "osc": "pt2pt"},
    "copies": {"btl": "self,sm", "osc": "rdma,pt2pt"},
}
CASES = (held_lock, target_lock, flush, fetch, post, complete, fence, free)
CELLS = [(over, case, seed) for over in ("sm", "tcp") for case in CASES for seed in range(SEEDS)]
# what osc/rdma does otherwise
CELLS += [("copies", case, 0) for case in (CASES if THOROUGH else (flush, fetch, fence))]


@pytest.mark.parametrize(("over", "case", "seed"), CELLS)
def test_nobody_hangs(case: Callable[[Any, Win], None], over: str, seed: int) -> None:
    def program(process: RankProcess) -> tuple[int, int]:
        comm, win = made(process)
        began = process.context.engine.now()
        code = 0
        try:
            case(comm, win)
        except MPIException as problem:
            code = problem.code
        return code, process.context.engine.now() - began

    job = virtual(3, program, seed=seed, **OVER[over])
    codes = [code for code, _ in job.results]
    assert codes == [ERR_PROC_FAILED, 0, ERR_PROC_FAILED]
    assert max(took for _, took in job.results) < NEWS + END_MAX


def test_who_asks_later_gets_the_lock() -> None:
    """The lock of who has ended is free for those that had not waited for it."""

    def program(process: RankProcess) -> int:
        comm, win = made(process)
        if comm.rank == ENDS:
            win.Lock(0)
            return 0
        engine = process.context.engine
        engine.wait_until(lambda: bool(process.context.procs[ENDS].departed))
        code = 0
        try:
            win.Lock(0)
        except MPIException as problem:
            code = problem.code
            win.Lock(0)
        win.Unlock(0)
        comm.Send(array("i", [1]), 2 - comm.rank)
        comm.Recv(array("i", [1]), 2 - comm.rank)
        return code

    results = virtual(3, program, seed=1, btl="self,sm", osc="pt2pt").results
    assert results[ENDS] == 0
    assert set(results) <= {0, ERR_PROC_FAILED}
