"""Communicators that are freed while receives are pending in them: these complete as others do.

What comes late must not go to a communicator that is made later, either.

Source: MPI standard, 7.4.3 (MPI_COMM_FREE).
"""

from __future__ import annotations

from array import array

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

LENGTHS = (3, 60_000)  # eager; with a rendezvous
WAYS = ("Isend", "Issend")
ROUNDS = 3


def numbers(length: int, value: int) -> array[int]:
    return array("i", [value]) * length


@pytest.mark.parametrize("source", ["named", "any"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_a_pending_receive_completes(pml: str, length: int, way: str, source: str) -> None:
    def program(process: RankProcess) -> None:
        world = world_of(process)
        for value in range(ROUNDS):
            comm = world.Dup()
            room = numbers(length, -1)
            if world.rank == 0:
                pending = comm.Irecv(room, 1 if source == "named" else MPI.ANY_SOURCE, 3)
                comm.Free()
                world.Barrier()
            else:
                world.Barrier()
                pending = getattr(comm, way)(numbers(length, value), 0, 3)
                comm.Free()
            later = world.Dup()
            other = numbers(length, -1)
            reply = later.Irecv(other, 1 - world.rank, 3)
            later.Send(numbers(length, 100 + value), 1 - world.rank, 3)
            reply.Wait()
            pending.Wait()
            later.Free()
            assert other == numbers(length, 100 + value)
            assert room == numbers(length, -1 if world.rank else value)
        assert len(process.communicators) == 2  # all others are gone

    virtual(2, program, pml=pml)
