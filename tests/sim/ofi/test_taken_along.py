"""A connection that breaks takes messages along of which no completion tells: injected ones.

The provider makes another one and goes on, so nobody would ever hear of them.
"""

from __future__ import annotations

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.faults.fault_script import parse_spec
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.effort import effort
from tests.support.scripted_world import install
from tests.support.worlds import registry

FAULTS = (
    "link_down:rank=1,rail=rail0,nth=7,lasts=20ms",
    "delay:delay=20ms,jitter=10ms,probability=0.2",
)
LIMIT = 60_000_000_000  # ns of virtual time; all is over in one
SEEDS = [*range(effort(15))]  # of them five stood still or failed, when nobody asked


def program(process: RankProcess) -> list[object]:
    comm = world_of(process)
    comm.Barrier()
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    found = [comm.sendrecv(bytes([comm.rank, turn]) * 500, right, source=left) for turn in range(5)]
    comm.Barrier()
    return [(one[0], one[1], len(one)) for one in found]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("btl", ["self,ofi", "self,ofi,tcp"])
def test_what_was_taken_along_goes_again(btl: str, seed: int) -> None:
    ranks, rails = 2, [Rail("rail0"), Rail("rail1")]
    job = VirtualJob(ranks, registry(btl=btl, pml="bfo"), seed=seed, rails=rails)
    rules = [parse_spec(each) for each in FAULTS]
    scripts = install(job, [rule for each in rules for rule in each], seed=seed)
    results = job.run(program)
    for rank, found in enumerate(results):
        assert found == [(1 - rank, turn, 1000) for turn in range(5)]
    assert job.scheduler.time < LIMIT
    assert any(sum(script.delivered) for script in scripts)
