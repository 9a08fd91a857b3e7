"""`Agree`, `Shrink` and their like where the death of a rank ends the job: nobody has died."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual


def of_one_group(process: RankProcess) -> Any:
    return world_of(process).Create_cart([process.context.size])


def of_two_groups(process: RankProcess) -> Any:
    world = world_of(process)
    first = world.rank == 0
    local = world.Split(first)
    return local.Create_intercomm(0, world, int(first), 3)


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
@pytest.mark.parametrize("make", [of_one_group, of_two_groups])
@pytest.mark.parametrize("ranks", [2, 4])
def test_all_members_live(ranks: int, make: Any, btl: str) -> None:
    def program(process: RankProcess) -> None:
        comm = make(process)
        assert not comm.Is_revoked()
        assert comm.Get_failed().size == 0
        assert comm.Ack_failed() == comm.Ack_failed(2) == 0
        with pytest.raises(MPI.Exception) as raised:
            comm.Ack_failed(-1)
        assert raised.value.Get_error_class() == MPI.ERR_ARG
        flag = ~(1 << process.context.rank)
        everybody = -(1 << ranks)
        assert comm.Agree(flag) == everybody
        given = array("i", [flag])
        begun = comm.Iagree(given)
        comm.Barrier()
        begun.Wait()
        assert given[0] == everybody
        small = comm.Shrink()
        later, begun = comm.Ishrink()
        begun.Wait()
        for made in (small, later):
            assert made.size == comm.size
            assert made.is_inter is comm.is_inter
            assert made.topology == MPI.UNDEFINED
            assert made.Agree(7) == 7
            made.Free()

    virtual(ranks, program, btl=btl)


@pytest.mark.parametrize("call", ["Agree", "Shrink"])
def test_members_that_make_different_calls(call: str) -> None:
    """The error names both, as of any call of all members."""

    def program(process: RankProcess) -> str:
        comm = world_of(process)
        calls = {"Agree": lambda: comm.Agree(1), "Shrink": comm.Shrink}
        mine = comm.Barrier if comm.rank else calls[call]
        with pytest.raises(MPI.Exception) as raised:
            mine()
        return str(raised.value)

    for said in virtual(2, program, btl="self,sm").results:
        assert call in said
        assert "Barrier" in said


def test_to_revoke_wants_the_parameter() -> None:
    def program(process: RankProcess) -> None:
        with pytest.raises(NotImplementedError, match="mpi_ft_enable"):
            world_of(process).Dup().Revoke()

    virtual(2, program)
