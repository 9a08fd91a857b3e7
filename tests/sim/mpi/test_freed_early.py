"""Communicators that are freed while receives are pending in them: these complete as others do.

What comes late must not go to a communicator that is made later, either.

Source: MPI standard, 7.4.3 (MPI_COMM_FREE).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable

import pytest
from ompy import MPI
from ompy.frameworks.collectives.coll_selection import SelectedColl
from ompy.frameworks.communicator import Communicator
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

LENGTHS = (3, 60_000)  # eager; with a rendezvous
WAYS = ("Isend", "Issend")
ROUNDS = 3
LONG = (3, 10_000, 60_000, 200_000)
SECOND = 1_000_000_000  # ns


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


def test_an_id_is_free_when_all_of_its_communicator_is_gone() -> None:
    """Another thread may make a communicator at any moment, with an id that is in use nowhere."""

    def program(process: RankProcess) -> None:
        world = world_of(process)
        first = world.Dup()
        first.Barrier()
        freed = first._state().communicator
        made: list[MPI.Intracomm] = []

        def make_one() -> None:
            world._state().world.ids.following = freed.context_id  # as threads may come to want it
            made.append(world.Dup())

        freed.chosen = Closing(freed, make_one)
        first.Free()
        room = numbers(3, -1)
        pending = made[0].Irecv(room, 1 - world.rank, 3)
        made[0].Send(numbers(3, 7), 1 - world.rank, 3)
        pending.Wait()
        assert room == numbers(3, 7)
        made[0].Free()

    virtual(2, program)


class Closing(SelectedColl):
    """The collective calls of a communicator that has chosen, with something done at their end."""

    def __init__(self, communicator: Communicator, then: Callable[[], None]) -> None:
        super().__init__(communicator, communicator.chosen.asked)
        self._then = then

    def close(self) -> None:
        super().close()
        self._then()


@pytest.mark.parametrize("way", ["Isend", "Issend", "Ibsend"])
@pytest.mark.parametrize("btl", ["sm", "tcp"])
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_a_rank_that_ends_delivers_what_it_has_sent(pml: str, btl: str, way: str) -> None:
    """Nobody waits for it, and its receiver comes late. Source: MPI standard, 11.2.2."""

    def program(process: RankProcess) -> None:
        world = world_of(process)
        if world.rank == 0:
            world.Attach_buffer(bytearray(1 << 21))
            for value, length in enumerate(LONG):
                getattr(world, way)(numbers(length, value), 1, 3).Free()
            return
        process.context.engine.wait_until(lambda: False, SECOND)
        for value, length in enumerate(LONG):
            room = numbers(length, -1)
            world.Recv(room, 0, 3)
            assert room == numbers(length, value)

    virtual(2, program, pml=pml, btl=f"self,{btl}")


def test_a_rank_that_may_have_failed_does_not_wait_for_ever() -> None:
    """It delivers, too, but its exit code must come, whatever the others wait for."""

    def program(process: RankProcess) -> None:
        world = world_of(process)
        if world.rank == 0:
            process.context.leaves = False
            world.Isend(numbers(LONG[-1], 0), 1, 3).Free()
            return
        with pytest.raises(MPI.Exception) as caught:
            world.Recv(numbers(3, -1), 0, 4)
        assert caught.value.Get_error_class() == MPI.ERR_PROC_FAILED

    virtual(2, program)
