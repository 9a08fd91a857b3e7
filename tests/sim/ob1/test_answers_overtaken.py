"""A rank leaves while its last answers are lost again and again: LEAVE says what they would."""

from __future__ import annotations

from typing import Any

from ompy.frameworks.pml import SYNCHRONOUS
from ompy.runtime.faults.fault_script import read_faults
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.p2p import programs
from tests.support.effort import effort
from tests.support.scripted_world import install
from tests.support.worlds import registry

SIZE = 300  # goes along with the RNDV whole
# what rank 1 sends is lost half of the time, and usnic waits twice as long each time
SCRIPT = "drop:rank=1,probability=0.5"
SETTINGS = {"btl": "self,usnic", "pml": "ob1", "pml_ob1_leave_patience_ms": 2000}


def synchronous(process: Any) -> None:
    comm, pml = programs.world(process), process.pml
    if comm.rank == 0:
        pml.wait(comm, pml.isend(comm, programs.send(bytes(SIZE)), 1, 0, SYNCHRONOUS))
    else:
        _, room = programs.buffer(SIZE)
        pml.wait(comm, pml.irecv(comm, room, 0, 0))


def test_a_synchronous_send_is_complete_when_its_answer_is_late() -> None:
    for seed in (85, 160, 270, 278, *range(effort(40))):  # in the first ones it was an error
        job = VirtualJob(2, registry(**SETTINGS), seed=seed, hosts=range(2))
        install(job, read_faults([SCRIPT], 2), seed=seed)
        job.run(synchronous)
