"""The predefined communicators in an interpreter that several ranks share."""

from __future__ import annotations

from typing import Any

import greenlet
import pytest
from ompy import MPI
from ompy.engine.virtual_engine import RankFailed
from ompy.mpi.processes.interpreter import SharedInterpreter
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

kept = MPI.COMM_WORLD


def run(ranks: int, program: Any, seed: int = 0) -> list[Any]:
    with SharedInterpreter() as shared:

        def joined(process: RankProcess) -> Any:
            shared.join(process)
            return program()

        return virtual(ranks, joined, seed=seed, btl="self,sm").results


def around() -> tuple[int, int, int, int, list[int]]:
    right, left = (kept.rank + 1) % kept.size, (kept.rank - 1) % kept.size
    got = kept.sendrecv(kept.rank, dest=right, source=left)
    return kept.rank, kept.size, got, MPI.COMM_SELF.size, MPI.COMM_WORLD.Dup().allgather(got)


@pytest.mark.parametrize("seed", range(5))
def test_each_rank_has_its_own(seed: int) -> None:
    assert run(3, around, seed) == [(rank, 3, (rank - 1) % 3, 1, [2, 0, 1]) for rank in range(3)]
    assert (kept.rank, kept.size) == (0, 1)


def test_a_rank_that_finalises_leaves_the_others_be() -> None:
    def program() -> tuple[bool, bool]:
        kept.barrier()
        if kept.rank == 1:
            MPI.Finalize()
        return MPI.Is_initialized(), MPI.Is_finalized()

    assert run(3, program) == [(True, False), (True, True), (True, False)]
    assert not MPI.Is_finalized()


def test_all_is_as_before_when_a_rank_fails() -> None:
    def program() -> None:
        if kept.rank == 1:
            raise ValueError("on purpose")
        kept.barrier()

    with pytest.raises(RankFailed, match="rank 1: ValueError"):
        run(2, program)
    assert (kept.rank, kept.size, MPI.COMM_SELF.rank) == (0, 1, 0)
    assert greenlet.gettrace() is None


def test_another_trace_function_goes_on() -> None:
    seen = []
    previous = greenlet.settrace(lambda event, _greenlets: seen.append(event))
    try:
        run(2, kept_barrier)
    finally:
        mine = greenlet.settrace(previous)
    assert mine is not None
    assert "switch" in seen


def kept_barrier() -> None:
    kept.barrier()
