"""Small messages over several rails of one kind: each takes its turn, traced or not."""

from __future__ import annotations

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy_components.btl.usnic.module import UsnicModule

from tests.support.worlds import virtual

COUNT = 20


@pytest.mark.parametrize("pml", ["ob1", "bfo"])
@pytest.mark.parametrize("trace", [False, True], ids=["untraced", "traced"])
def test_small_messages_take_the_rails_in_turn(pml: str, trace: bool) -> None:
    """A BTL without `sendi`: the try to send at once had used up every second turn, untraced."""

    def program(process: RankProcess) -> list[int]:
        world = world_of(process)
        modules = [one for one in process.context.btls if isinstance(one, UsnicModule)]
        before = [one.statistics.num_frag_sends for one in modules]
        for _ in range(COUNT):
            if world.rank == 0:
                world.Send(bytearray(60), 1, 0)
            else:
                world.Recv(bytearray(60), 0, 0)
        return [
            one.statistics.num_frag_sends - was for one, was in zip(modules, before, strict=True)
        ]

    rails = (Rail("rail0"), Rail("rail1"))
    job = virtual(2, program, btl="self,usnic", pml=pml, rails=rails, trace=trace)
    assert job.results[0] == [COUNT // 2, COUNT // 2]
