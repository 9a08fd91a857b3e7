"""A rail that is gone before it was ever used: what waits for it goes over the other one, soon.

Source: seed bfo (1).
"""

from __future__ import annotations

from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.pml import STANDARD
from ompy.net.faults.fault_rules import FaultRule
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.bfo.test_mixtures import RAILS, settings_of
from tests.sim.p2p.programs import world
from tests.support.scripted_world import install
from tests.support.worlds import registry

SECOND = 1_000_000_000  # ns


def test_a_rail_that_is_gone_before_its_first_connection() -> None:
    """It was attempted for nine seconds while the other rail was there."""
    gone = FaultRule("nic_gone", rails=("first",), ranks=(1,), since=1)
    job = VirtualJob(2, registry(**settings_of(("tcp", "tcp"))), seed=1, rails=RAILS, hosts=[0, 1])
    faults = install(job, [gone])

    def program(process: RankProcess) -> int:
        comm, pml, engine = world(process), process.pml, process.context.engine
        engine.wait_until(lambda: False, SECOND)
        for turn in range(2):
            data = ContiguousConvertor(bytearray(8))
            if comm.rank == 1:
                pml.isend(comm, data, 0, turn, STANDARD)
            else:
                pml.recv(comm, data, 1, turn)
        return engine.now()

    took, _ = job.run(program)
    assert sum(sum(one.delivered) for one in faults) > 3
    assert took < SECOND * 3 // 2
