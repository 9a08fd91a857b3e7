"""Passive targets of real ranks: served in any MPI call, and by a thread while they compute."""

from __future__ import annotations

import time
from array import array

import pytest
from ompy.data.errors import ERR_PROC_FAILED
from ompy.mpi import constants
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errhandler import ERRORS_RETURN
from ompy.mpi.errors import MPIException
from ompy.mpi.windows.windows import Win
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import real

HERE = "tests.proc.test_windows"
LONG = 40  # s; arbitrary: the test fails when it takes so long
ROUNDS = 50
BARRIERS = 150
COMPUTES = 0.003  # s; arbitrary: ranks that wait go to sleep meanwhile


def computes(process: RankProcess) -> int:
    """Rank 0 makes no MPI call until all it is to be given is there; how often it looked."""
    comm = world_of(process)
    memory = array("q", [0] * 4)
    win = Win.Create(memory, 8, comm=comm)
    comm.Barrier()
    looked = 0
    if comm.rank == 0:
        end = time.monotonic() + LONG
        while memory[1] < comm.size - 1 and time.monotonic() < end:
            looked += 1
        assert memory[1] == comm.size - 1
        assert memory[0] == ROUNDS * (comm.size - 1)
    else:
        was = array("q", [-1])
        for _ in range(ROUNDS):
            win.Lock(0)
            win.Fetch_and_op(array("q", [1]), was, 0)
            win.Unlock(0)
        win.Lock(0, constants.LOCK_SHARED)
        win.Accumulate(array("q", [1]), 0, 1)
        win.Unlock(0)
    comm.Barrier()
    win.Free()
    return looked


def probes(process: RankProcess) -> int:
    """Rank 0 only asks for messages that nobody sends."""
    comm = world_of(process)
    memory = array("q", [0])
    win = Win.Create(memory, 8, comm=comm)
    asked = 0
    if comm.rank == 0:
        end = time.monotonic() + LONG
        while memory[0] < ROUNDS * (comm.size - 1) and time.monotonic() < end:
            comm.Iprobe()
            asked += 1
        assert memory[0] == ROUNDS * (comm.size - 1)
    else:
        for _ in range(ROUNDS):
            win.Lock(0)
            win.Accumulate(array("q", [1]), 0)
            win.Unlock(0)
    comm.Barrier()
    win.Free()
    return asked


def barriers(process: RankProcess) -> int:
    """Ranks that compute in turn, and barriers between."""
    comm = world_of(process)
    win = Win.Create(array("q", [0]), 8, comm=comm)
    for turn in range(BARRIERS):
        comm.Barrier()
        end = time.monotonic() + (COMPUTES if turn % comm.size == comm.rank else 0)
        while time.monotonic() < end:
            pass
    win.Free()
    return BARRIERS


def leaves_it(process: RankProcess) -> int:
    """A window that is never freed, with a thread at work: the end of the job ends it."""
    win = Win.Create(array("q", [0]), 8, comm=world_of(process))
    win.Fence()
    return win.group_size


@pytest.mark.proc
@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_a_thread_serves_while_the_target_computes(btl: str) -> None:
    settings = {"btl": btl, "osc": "pt2pt", "osc_base_progress_thread": 1}
    assert real(3, f"{HERE}:computes", settings=settings)[0] > 0


@pytest.mark.proc
def test_a_thread_leaves_the_core_to_who_waits() -> None:
    """Once it has polled what another thread of its rank waits for, it has nothing to look for."""
    settings = {"btl": "self,sm", "osc": "pt2pt", "osc_base_progress_thread": 1}
    assert real(3, f"{HERE}:barriers", settings=settings) == [BARRIERS] * 3


@pytest.mark.proc
def test_any_call_of_the_target_serves() -> None:
    settings = {"btl": "self,sm", "osc": "pt2pt"}
    assert real(3, f"{HERE}:probes", settings=settings)[0] > 0


@pytest.mark.proc
def test_a_target_on_this_host_need_not_serve() -> None:
    """What reaches its memory asks nothing of it."""
    settings = {"btl": "self,sm", "osc": "sm"}
    looked = real(3, f"{HERE}:computes", settings=settings)
    assert looked[1:] == [0, 0]  # and rank 0 found what it looked for


def goes_first(process: RankProcess) -> list[int]:
    """Rank 1 finalizes with a window there, whose memory may be anything from then on."""
    comm = world_of(process)
    win = Win.Create(array("q", [5]), 8, comm=comm)
    win.Set_errhandler(ERRORS_RETURN)
    win.Lock(1, constants.LOCK_SHARED)
    win.Put(array("q", [7]), 1)
    win.Flush(1)
    comm.Barrier()
    if comm.rank == 1:
        return []
    codes = []
    end = time.monotonic() + LONG
    while not codes and time.monotonic() < end:
        try:
            win.Put(array("q", [9]), 1)
            win.Flush(1)
        except MPIException as problem:
            codes.append(problem.Get_error_class())
    return codes


@pytest.mark.proc
def test_the_memory_of_who_has_finalized_is_left_alone() -> None:
    settings = {"btl": "self,sm", "osc": "sm"}
    assert real(2, f"{HERE}:goes_first", settings=settings) == [[ERR_PROC_FAILED], []]


@pytest.mark.proc
def test_a_window_that_is_left_behind() -> None:
    settings = {"btl": "self,sm", "osc_base_progress_thread": 1}
    assert real(2, f"{HERE}:leaves_it", settings=settings) == [2, 2]
