"""Files that libfabric's provider `shm` names after a process: its agent removes what is left."""

import os
import signal
from pathlib import Path

import pytest

from tests.support.libfabric_devices import needs_libfabric

pytestmark = [pytest.mark.proc, needs_libfabric]

OPTIONS = ("--mca", "btl", "self,ofi", "--mca", "btl_ofi_provider_include", "shm")
PROGRAM = """
import os, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Barrier()
if comm.rank == 0:
    print(os.getpid(), flush=True)
time.sleep(600)
"""


def has_files(process):
    return bool(list(Path("/dev/shm").glob(f"{process}:*")))


@pytest.mark.parametrize("whom", ["rank", "launcher"])
def test_what_is_killed_leaves_nothing(launch, whom) -> None:
    """The fixture looks into /dev/shm."""
    running = launch.start_python(2, PROGRAM, *OPTIONS)
    rank = int(running.line())
    assert has_files(rank), "the provider names its files otherwise"
    os.kill(rank if whom == "rank" else running.pid, signal.SIGKILL)
    running.end()
