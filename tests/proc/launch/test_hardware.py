"""Communicators of ranks that share hardware: what they are bound to decides."""

from __future__ import annotations

import os
import sys

import pytest

pytestmark = pytest.mark.proc

PROGRAM = """
from mpi4py import MPI
world = MPI.COMM_WORLD
here = dict(MPI.Get_hw_resource_info().items())
assert here["mpi_shared_memory"] == here["hwloc://Machine"] == "true"
sizes = {}

def split(kind, **keys):
    part = world.Split_type(kind, 0, MPI.Info.Create(keys))
    return part.size if part else 0

for kind in (MPI.COMM_TYPE_HW_GUIDED, MPI.COMM_TYPE_RESOURCE_GUIDED):
    for name, restricted in here.items():
        sizes[name] = split(kind, mpi_hw_resource_type=name)
        assert bool(sizes[name]) == (restricted == "true")
for name, size in (("mpi://WORLD", 2), ("mpi://self", 1), ("mpix://SHARED", 2), ("none", 0)):
    assert split(MPI.COMM_TYPE_RESOURCE_GUIDED, mpi_pset_name=name) == size
    assert split(MPI.COMM_TYPE_HW_GUIDED, mpi_pset_name=name) == 0
for kind in (MPI.COMM_TYPE_HW_GUIDED, MPI.COMM_TYPE_HW_UNGUIDED, MPI.UNDEFINED):
    assert world.Split_type(kind) == MPI.COMM_NULL
inter = world.Split(world.rank).Create_intercomm(0, world, 1 - world.rank)
both = inter.Split_type(MPI.COMM_TYPE_SHARED)
assert (both.size, both.remote_size) == (1, 1)
print(sizes["hwloc://Machine"], sizes["hwloc://PU"], flush=True)
"""


@pytest.mark.parametrize(("bound", "of_a_thread"), [("hwthread", 1), ("none", 0)])
def test_ranks_that_share_a_piece_of_hardware(launch, bound, of_a_thread):
    words = ["--bind-to", bound, "--oversubscribe", "-n", 2, sys.executable, "-c", PROGRAM]
    result = launch(*words)
    assert result.code == 0, result
    if bound == "none" and len(os.sched_getaffinity(0)) == 1:
        of_a_thread = 2
    assert result.out == f"2 {of_a_thread}\n" * 2
