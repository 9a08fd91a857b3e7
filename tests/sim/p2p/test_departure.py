"""A rank ends while others still send to it: they end too, in bounded time, in the virtual world.

In a real job the host's agent tells of it; here the world does.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import pytest
from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.pml import STANDARD
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import NEWS

from tests.sim.p2p.programs import pattern, world
from tests.support.worlds import virtual

MANY = 400  # messages; arbitrary: more than any queue of a BTL holds
END_MAX = 1_000_000_000  # ns; arbitrary: far less than a path takes to be given up
SCARCE = {
    "sm": {"btl": "self,sm", "btl_sm_ring_slots": 2, "btl_sm_free_list_max": 1},
    "sm-sends": {
        "btl": "self,sm",
        "btl_sm_ring_slots": 2,
        "btl_sm_free_list_max": 1,
        "btl_sm_flags": "send",
    },
    "sm-blocks": {
        "btl": "self,sm",
        "btl_sm_free_list_max": 1,
        "btl_sm_eager_limit": 110_000,
    },
    "tcp": {"btl": "self,tcp"},
    "tcp-scarce": {"btl": "self,tcp", "btl_tcp_free_list_max": 1},
}


def meet(process: RankProcess, data: bytes) -> None:
    """Two ranks send each other something."""
    comm, pml = world(process), process.pml
    room = ContiguousConvertor(memoryview(bytearray(len(data))))
    receive = pml.irecv(comm, room, 1 - comm.rank, 1)
    pml.send(comm, ContiguousConvertor(memoryview(data)), 1 - comm.rank, 1, STANDARD)
    pml.wait(comm, receive)


def one_leaves(process: RankProcess, *, size: int, met: bool) -> int:
    """Rank 1 ends at once, rank 0 sends more than the wire holds and ends."""
    comm, pml = world(process), process.pml
    data = pattern(size, 1)
    if met:
        meet(process, data)
    if comm.rank == 1:
        return 0
    for _ in range(MANY):
        pml.isend(comm, ContiguousConvertor(memoryview(data)), 1, 1, STANDARD)
    process.finalize()
    return process.context.engine.now()


@pytest.mark.parametrize("size", [3000, 100_000])
@pytest.mark.parametrize("met", [False, True])
@pytest.mark.parametrize("scarce", sorted(SCARCE))
@pytest.mark.parametrize("seed", range(3))
def test_sends_to_a_rank_that_has_ended(scarce: str, met: bool, size: int, seed: int) -> None:
    job = virtual(2, partial(one_leaves, size=size, met=met), seed=seed, **SCARCE[scarce])
    assert job.results[0] < END_MAX
    if job.results[0] > NEWS:
        assert job.known[0][1].departed


SILENCE: Final = 20_000_000_000  # ns; arbitrary: far more than END_MAX


def one_falls_silent(process: RankProcess) -> int:
    """Nothing that rank 0 sends is taken any more, and no connection ends; then it is told."""
    comm, pml, engine = world(process), process.pml, process.context.engine
    meet(process, pattern(100_000, 1))
    if comm.rank == 1:
        for module in process.context.btls:
            engine.remove_poller(module)
        engine.wait_until(lambda: False, SILENCE)
        for module in process.context.btls:
            engine.add_poller(module)
        return 0
    for _ in range(MANY):
        pml.isend(comm, ContiguousConvertor(memoryview(pattern(3000, 2))), 1, 1, STANDARD)
    btl = next(module for module in process.context.btls if module.name == "tcp")
    assert not btl._flushed(), "something waits in the BTL"
    process.context.departures.died(1, "is on a host that is lost")
    process.finalize()
    return engine.now()


@pytest.mark.parametrize("pml", ["ob1", "bfo"])
@pytest.mark.parametrize("seed", range(3))
def test_a_host_that_is_lost_without_a_word_holds_nobody(seed: int, pml: str) -> None:
    """What is queued for it in tcp is for nobody, as was found by crashing hosts under load."""
    job = virtual(2, one_falls_silent, seed=seed, pml=pml, btl="self,tcp")
    assert job.results[0] < END_MAX
