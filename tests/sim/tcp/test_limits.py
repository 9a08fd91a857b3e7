"""Limits of fragments that users may set apart: eager ones may be larger than those that follow."""

from __future__ import annotations

from array import array

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

SIZES = (100, 700, 20_000, 60_000, 200_000)
FLAGS = ("send", "send,put,inplace,need-ack,need-csum,rdma-completion")


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_eager_fragments_larger_than_others(pml: str, flags: str) -> None:
    def program(process: RankProcess) -> None:
        world = world_of(process)
        for size in SIZES:
            pair = MPI.BYTE.Create_vector(size, 1, 2).Commit()
            data = array("B", (number % 251 for number in range(2 * size)))
            for count, datatype, want in ((size, MPI.BYTE, data[:size]), (1, pair, data[::2])):
                if world.rank == 0:
                    world.Send([data, count, datatype], 1)
                else:
                    room = array("B", bytes(size))
                    world.Recv(room, 0)
                    assert room == want

    settings = {"btl_tcp_max_send_size": 300, "btl_tcp_flags": flags}
    virtual(2, program, pml=pml, btl="self,tcp", **settings)
