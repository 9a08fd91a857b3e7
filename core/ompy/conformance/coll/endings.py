"""Endings: a member that leaves, a communicator that is freed, and a run that is had again."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, ClassVar, Final

import pytest

from ompy.conformance.coll.calls import CALLS, sum_reduction
from ompy.conformance.coll.coll_suite import (
    CollSuite,
    served_operations,
    skip_unless_served,
    skip_unserved,
)
from ompy.conformance.coll.results import blocking
from ompy.conformance.coll.rooms import Case, Types
from ompy.conformance.kept_by_engine import kept_by_engine
from ompy.conformance.mpi_worlds import SECOND, MpiWorlds, Rank
from ompy.data.errors import ERR_PROC_FAILED
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.errors import MPIException

PATIENCE_MS: Final = 50  # arbitrary: little of a PML's patience with who has left
BOUND: Final = 5 * SECOND  # ns; arbitrary: well above that, and what a collective gives the rest
LEAVES: Final = 1  # the rank that does
DUPLICATES: Final = 5  # arbitrary


def _numbers(count: int = 1) -> array[int]:
    return array("i", [1] * count)


# calls in which every rank needs every other, so that all of them notice
NEEDY: Final[dict[str, Callable[[Intracomm], object]]] = {
    "barrier": lambda comm: comm.Barrier(),
    "allgather": lambda comm: comm.Allgather(_numbers(), _numbers(comm.size)),
    "alltoall": lambda comm: comm.Alltoall(_numbers(comm.size), _numbers(comm.size)),
    "allreduce": lambda comm: comm.Allreduce(_numbers(), _numbers()),
}


class EndingSuite(CollSuite):
    """What is left, and who is left alone."""

    title: ClassVar[str] = "endings"

    def test_serves_something(self, worlds: MpiWorlds) -> None:
        """Some communicator has an operation of it: alone, on one host, on several."""
        found = served_operations(worlds.component, tuple(sorted(worlds.settings.items())))
        assert found, "query gives no module with an operation, for no communicator that was tried"

    @pytest.mark.parametrize("operation", NEEDY)
    def test_a_member_has_left(self, worlds: MpiWorlds, operation: str) -> None:
        """A rank ends before the call: the others get MPI_ERR_PROC_FAILED, and do not hang."""
        skip_unless_served(worlds, operation)

        def program(rank: Rank) -> Any:
            comm = rank.comm
            comm.Barrier()
            if comm.rank == LEAVES:
                return False
            began = rank.engine.now()
            with pytest.raises(MPIException) as caught:
                NEEDY[operation](comm)
            assert caught.value.Get_error_class() == ERR_PROC_FAILED, caught.value
            took = rank.engine.now() - began
            assert took < BOUND, f"the error came after {took / SECOND:g} s of virtual time"
            return rank.serves(operation)

        told = {"pml_ob1_leave_patience_ms": PATIENCE_MS}
        served = any(worlds.play(program, 4, settings=told).results)
        skip_unserved(operation, served=served)

    def test_freed(self, worlds: MpiWorlds) -> None:
        """A communicator that is freed leaves no poller and no timer behind."""

        def program(rank: Rank) -> None:
            rank.comm.Barrier()
            before = kept_by_engine(rank.engine)
            for _ in range(DUPLICATES):
                _every_call(rank.comm.Dup())
            rank.comm.Barrier()
            rank.pass_time(SECOND)
            after = kept_by_engine(rank.engine)
            assert after == before, f"pollers and timers: {before} before, {after} after"

        worlds.play(program, 3)

    def test_same_seed_same_trace(self, worlds: MpiWorlds, seed: int) -> None:
        """What it does depends on the seed alone: not on memory, hashes, clocks or chance."""

        def program(rank: Rank) -> None:
            _every_call(rank.comm.Dup())

        first = worlds.play(program, 4, seed=seed, trace=True).lines()
        second = worlds.play(program, 4, seed=seed, trace=True).lines()
        assert len(first) == len(second), f"{len(first)} events, then {len(second)}"
        for number, (one, other) in enumerate(zip(first, second, strict=True), 1):
            assert one == other, f"seed {seed}: a second run differs from event {number} on"


def _every_call(comm: Intracomm) -> None:
    types = Types()
    for operation in CALLS:
        prepared = CALLS[operation](comm, Case(20), types, sum_reduction())
        blocking(comm, prepared)
        prepared.verify(operation)
    types.free_all()
    comm.Free()
