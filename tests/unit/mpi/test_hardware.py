"""What hardware a process is restricted to, by MPI 4.1's names."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from ompy import MPI
from ompy.mpi.communicators.hardware import MACHINE, SHARED_MEMORY, pieces_of, resources
from ompy.runtime.place.synthetic import parse_synthetic

BOARD = parse_synthetic("pack:2 numa:1 core:2 pu:2")  # 8 threads


@pytest.mark.parametrize(
    ("threads", "package", "core", "thread"),
    [
        ({5}, 4, 4, 5),
        ({4, 5}, 4, 4, -1),
        ({4, 6}, 4, -1, -1),
        ({0, 7}, -1, -1, -1),
        (set(range(8)), -1, -1, -1),
    ],
)
def test_pieces_of_a_machine(threads: set[int], package: int, core: int, thread: int) -> None:
    found = pieces_of(BOARD, threads)
    assert found["hwloc://Package"] == found["hwloc://NUMANode"] == package
    assert found["hwloc://Core"] == core
    assert found["hwloc://PU"] == thread
    assert "hwloc://L3Cache" not in found, "this machine has none"


def test_a_simulated_host_has_no_processors() -> None:
    assert resources(virtual=True) == {SHARED_MEMORY: 0, MACHINE: 0}


def test_a_system_that_tells_nothing() -> None:
    assert resources(virtual=False, root="/there/is/none") == {SHARED_MEMORY: 0, MACHINE: 0}


def test_before_mpi_is_initialised() -> None:
    """It tells what this process may run on."""
    code = """if True:
        import os, mpi4py
        mpi4py.rc.initialize = False
        from mpi4py import MPI
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        print(MPI.Get_hw_resource_info().get("hwloc://PU"), MPI.Is_initialized())
    """
    dropin = os.path.join(os.path.dirname(MPI.__file__), "dropin")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([dropin, *sys.path])}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("true False\n", "")
