"""MPI.Alloc_mem between real processes: copied directly, freed, and gone after kill -9."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.proc

PROGRAM = """
import numpy as np, ompy.mpi.processes.life
from mpi4py import MPI
comm = MPI.COMM_WORLD
peer = 1 - comm.rank
def regions():
    return open("/proc/self/maps").read().count("ompy-region")
for size in (200_000, 300_000, 3_000_001):
    memory, room = MPI.Alloc_mem(size), MPI.Alloc_mem(size)
    out, into = np.frombuffer(memory, "B"), np.frombuffer(room, "B")
    for step in range(3):
        out[:] = comm.rank + 5 * step
        into[:] = 255
        for own in (False, True):
            target = np.zeros(size - 9, "B") if own else into[:-9]
            if comm.rank: comm.Recv(target, 0); comm.Send(out[9:], 0)
            else: comm.Send(out[9:], 1); comm.Recv(target, 1)
            assert (target == peer + 5 * step).all()
        assert (into[-9:] == 255).all()
        comm.Sendrecv(out, peer, recvbuf=into, source=peer)
        assert (into == peer + 5 * step).all()
    assert regions() in ALL, regions()  # the peer's, and its room too where both ranks copy
    del out, into, target
    MPI.Free_mem(memory); MPI.Free_mem(room)
    del memory, room  # up to Python 3.11 they keep what was freed
    if comm.rank == 0:
        print("size", size, flush=True)
    comm.Barrier()
    ompy.mpi.processes.life.current().context.network._regions._mapped.clear()
    assert regions() == 0
kept = MPI.Alloc_mem(100_000)
"""


@pytest.mark.parametrize("mechanism", ["cma", "emulated", "none"])
def test_messages_between_allocated_memory(launch, mechanism) -> None:
    program = PROGRAM.replace("ALL", "(3, 4)") if mechanism == "cma" else PROGRAM
    if mechanism != "cma":  # nobody maps what is his peer's
        program = program.replace("ALL", "(2,)")
    options = ("--mca", "coll", "basic")  # coll sm has memory of that kind too
    done = launch.python(2, program, "--mca", "btl_sm_single_copy_mechanism", mechanism, *options)
    assert done.code == 0, done.err
    assert done.out.split() == ["size", "200000", "size", "300000", "size", "3000001"]


KILLED = """
import os, signal
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
memory = [MPI.Alloc_mem(1 << 20) for _ in range(3)]
arrays = [np.frombuffer(each, "B") for each in memory]
comm.Sendrecv(arrays[0], 1 - comm.rank, recvbuf=arrays[1], source=1 - comm.rank)
if comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
comm.Recv(arrays[2], 1)
"""


def test_nothing_is_left_of_a_killed_rank(launch) -> None:
    """That nothing is left in /dev/shm and no process that has it mapped: the fixture looks."""
    done = launch.python(2, KILLED)
    assert "Rank 1 was killed by signal 9" in done.err


def test_alone_it_is_plain_memory(launch) -> None:
    program = (
        "from mpi4py import MPI; memory = MPI.Alloc_mem(1 << 20); "
        "assert 'ompy-region' not in open('/proc/self/maps').read(); MPI.Free_mem(memory)"
    )
    assert launch.python(1, program).code == 0
