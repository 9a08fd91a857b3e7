"""A rank ends while others still send to it: they end too, in bounded time, in the virtual world.

In a real job the host's agent tells of it; here the world does.
"""

from __future__ import annotations

import pytest
from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.pml import STANDARD
from ompy.runtime.process import RankProcess

from tests.sim.p2p.programs import pattern, world
from tests.support.worlds import virtual

SCARCE = {
    "sm": {"btl": "self,sm", "btl_sm_ring_slots": 2, "btl_sm_free_list_max": 1},
    "tcp": {"btl": "self,tcp"},
    "tcp-scarce": {"btl": "self,tcp", "btl_tcp_free_list_max": 1},
}


def one_leaves(process: RankProcess, *, met: bool) -> int:
    """Rank 1 ends at once, rank 0 sends more than the wire holds and ends."""
    comm, pml = world(process), process.pml
    data = pattern(3000, 1)
    if met:
        pml.send(comm, ContiguousConvertor(memoryview(data)), 1 - comm.rank, 1, STANDARD)
        pml.recv(comm, ContiguousConvertor(memoryview(bytearray(3000))), 1 - comm.rank, 1)
    if comm.rank == 1:
        return 0
    for _ in range(50):
        pml.isend(comm, ContiguousConvertor(memoryview(data)), 1, 1, STANDARD)
    process.finalize()
    return process.context.engine.now()


@pytest.mark.parametrize("met", [False, True])
@pytest.mark.parametrize("scarce", sorted(SCARCE))
@pytest.mark.parametrize("seed", range(3))
def test_sends_to_a_rank_that_has_ended(scarce: str, met: bool, seed: int) -> None:
    from functools import partial

    job = virtual(2, partial(one_leaves, met=met), seed=seed, **SCARCE[scarce])
    assert job.results[0] < 30_000_000_000
    assert all(proc.departed for proc in job.known_by(0)[1:])
