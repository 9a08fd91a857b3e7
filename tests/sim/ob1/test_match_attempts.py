"""The performance variable `match_attempts`: what was looked at to find what fits."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.performance import measured
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.pml.ob1.unexpected import SCANNED

from tests.support.worlds import registry


def attempts(process: RankProcess) -> int:
    return measured(process)["pml_ob1_match_attempts"]


def looked(tags: list[int], *, posted: bool, freed: bool = False) -> int:
    """What rank 1 looks at to receive tags 1, 2, ... that were sent in order, in this order."""

    def program(process: RankProcess) -> Any:
        comm = world_of(process)
        made = comm.Dup()
        comm.Barrier()
        before = attempts(process)
        if comm.rank == 0:
            if posted:
                comm.Recv(bytearray(1), source=1, tag=99)
            for tag in range(1, len(tags) + 1):
                made.Send(bytes(1), 1, tag)
            comm.Send(bytes(1), 1, 98)
            return None
        if posted:
            requests = [made.Irecv(bytearray(1), 0, tag) for tag in tags]
            comm.Send(bytes(1), 0, 99)
            for request in requests:
                request.Wait()
        comm.Recv(bytearray(1), 0, 98)
        if not posted:
            assert measured(process)["pml_ob1_unexpected_msgq_length"] == len(tags)
            for tag in tags:
                made.Recv(bytearray(1), 0, tag)
        if freed:
            made.Free()
        return attempts(process) - before

    found: int = VirtualJob(2, registry(btl="self,tcp"), seed=1).run(program)[1]
    return found - 1  # that of tag 98, which fits at once


@pytest.mark.parametrize("posted", [False, True])
def test_what_fits_at_once_is_one_look(posted: bool) -> None:
    assert looked([1, 2, 3], posted=posted) == 3


@pytest.mark.parametrize("posted", [False, True])
def test_in_the_wrong_order(posted: bool) -> None:
    assert looked([3, 2, 1], posted=posted) == 3 + 2 + 1


def test_of_a_communicator_that_is_gone() -> None:
    gone, kept = (looked([3, 2, 1], posted=False, freed=freed) for freed in (True, False))
    assert gone >= kept == 6


@pytest.mark.parametrize("posted", [False, True])
def test_an_index_is_one_look(posted: bool) -> None:
    """Once eight were looked at in vain, what fits is found in one step, until none is left."""
    assert looked(list(range(20, 0, -1)), posted=posted) == 20 + SCANNED
