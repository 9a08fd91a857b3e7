"""Calls that need a member that dies: each ends with an error or in order, at all who live."""

from __future__ import annotations

import tempfile
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ompy import MPI

from tests.sim.mpi.test_survival import DEAD, FAILED, REVOKED, Die, turns_of, world
from tests.support.effort import THOROUGH

ALLOWED = {FAILED, REVOKED}


def numbers(comm: Any, per: int = 1) -> tuple[array[int], array[int]]:
    return array("i", range(per * comm.size)), array("i", [0] * per * comm.size)


def collective(name: str) -> Callable[[Any], object]:
    def call(comm: Any) -> None:
        mine, theirs = numbers(comm)
        match name:
            case "Barrier":
                comm.Barrier()
            case "Bcast":
                comm.Bcast(mine, root=comm.size - 1)
            case "Gather" | "Scatter":
                getattr(comm, name)(mine[:1] if name == "Gather" else mine, theirs, root=0)
            case "Reduce":
                comm.Reduce(mine, theirs, root=0)
            case "Allgather":
                comm.Allgather(mine[:1], theirs)
            case "Reduce_scatter_block":
                comm.Reduce_scatter_block(mine, theirs[:1])
            case "Iallreduce":
                comm.Iallreduce(mine, theirs).Wait()
            case _:
                getattr(comm, name)(mine, theirs)

    return call


def objects(comm: Any) -> None:
    comm.allgather(comm.rank)
    comm.bcast(comm.rank, root=1)


def made(comm: Any) -> None:
    """A call that makes a communicator may fail at some and not at others: all agree on it."""
    duplicate = _agreed(comm, comm.Dup)
    part = MPI.COMM_NULL
    try:
        part = _agreed(duplicate, lambda: duplicate.Split(comm.rank % 2))
        part.Barrier()
    except MPI.Exception:
        for each in (duplicate, part):
            if each:
                each.Revoke()
        raise


def _agreed(comm: Any, make: Callable[[], Any]) -> Any:
    """A communicator that all have made; else nobody goes on with it."""
    communicator, problem = MPI.COMM_NULL, None
    try:
        communicator = make()
    except MPI.Exception as raised:
        problem = raised
    try:
        all_have = comm.Agree(int(problem is None))
    except MPI.Exception as raised:
        all_have, problem = 0, problem or raised
    if all_have:
        return communicator
    if communicator:
        communicator.Revoke()
    raise problem or MPI.Exception(MPI.ERR_PROC_FAILED)


def neighbours(comm: Any) -> None:
    cart = comm.Create_cart([comm.size], periods=[True])
    try:
        cart.Neighbor_alltoall(array("i", [1, 2]), array("i", [0, 0]))
        cart.neighbor_allgather(comm.rank)
    except MPI.Exception:
        cart.Revoke()
        raise


def fences(comm: Any) -> None:
    window = MPI.Win.Allocate(64, 1, comm=comm)
    window.Fence()
    for target in range(comm.size):
        window.Put(b"12345678", target)
    window.Fence()
    window.Free()


def locks(comm: Any) -> None:
    window = MPI.Win.Create(bytearray(64), 1, comm=comm)
    for target in range(comm.size):
        window.Lock(target)
        window.Put(b"12345678", target)
        window.Unlock(target)
    window.Lock_all()
    window.Get(bytearray(8), comm.size - 1)
    window.Flush_all()
    window.Unlock_all()


def posts(comm: Any) -> None:
    window = MPI.Win.Allocate(64, 1, comm=comm)
    window.Post(comm.group)
    window.Start(comm.group)
    window.Put(b"12345678", (comm.rank + 1) % comm.size)
    window.Complete()
    window.Wait()


def files(comm: Any) -> None:
    path = Path(tempfile.gettempdir(), "survival-of-files")
    file = MPI.File.Open(comm, str(path), MPI.MODE_CREATE | MPI.MODE_RDWR)
    file.Write_at_all(8 * comm.rank, b"12345678")
    file.Write_shared(b"12345678")
    file.Read_at_all(0, bytearray(8 * comm.size))
    file.Close()


def messages(comm: Any) -> None:
    big = bytearray(300_000)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    comm.Sendrecv(bytes(300_000), right, 0, big, left, 0)
    comm.Ssend(b"1", right) if comm.rank else comm.Recv(bytearray(1), comm.size - 1)
    comm.Recv(bytearray(1), left) if comm.rank else comm.Ssend(b"1", right)


COLLECTIVES = (
    *("Barrier", "Bcast", "Gather", "Scatter", "Reduce", "Allgather", "Alltoall"),
    *("Allreduce", "Scan", "Reduce_scatter_block", "Iallreduce"),
)
CALLS: dict[str, Callable[[Any], object]] = {
    **{name: collective(name) for name in COLLECTIVES},
    **{
        call.__name__: call
        for call in (objects, made, neighbours, fences, locks, posts, files, messages)
    },
}


@pytest.mark.parametrize("pml", ["ob1", "bfo"])
@pytest.mark.parametrize("name", CALLS)
def test_no_survivor_waits_for_the_dead(name: str, pml: str) -> None:
    def body(comm: Any, die: Die) -> Any:
        problem = None
        try:
            CALLS[name](comm)
        except MPI.Exception as raised:
            problem = raised.Get_error_class()
            comm.Revoke()
        comm.Ack_failed()
        shrunk = comm.Shrink()
        try:
            return problem, shrunk.allreduce(1)
        except MPI.Exception:  # it has died since
            return problem, shrunk.size

    ranks = 3
    turns = turns_of(ranks, body, 5)
    for victim, most in enumerate(turns):
        step = max(1, most // (8 if THOROUGH else 4))
        first = victim + (step // 2 if pml == "bfo" else 0)  # the two take the steps in turn
        for turn in range(first, most, step):
            job, results = world(ranks, body, deaths={victim: turn}, seed=5, pml=pml)
            living = [result for result in results if result != DEAD]
            assert len(living) == ranks - len(job.killed)
            for problem, there in living:
                assert problem is None or problem in ALLOWED, (victim, turn, problem)
                assert ranks - 1 <= there <= ranks
            assert job.scheduler.time < 20_000_000_000, "it takes too long"
