"""Ranks that die while the job goes on: real processes, on one host and on faked others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

ROOT = Path(__file__).resolve().parents[3]
RUN = [sys.executable, "-m", "ompy.cli.run"]
PATIENCE = 120.0  # s; far beyond what anything here takes, beside many others too
pytestmark = pytest.mark.proc

DIES = """
import os, sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
try:
    comm.Barrier()  # what the dead has sent last may go with it
    if comm.rank == 1:
        {death}
    comm.Barrier()
    comm.recv(source=1)
except MPI.Exception as problem:
    assert problem.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED)
    comm.Revoke()
while True:
    try:
        comm.Agree(1)
        break
    except MPI.Exception:
        comm.Ack_failed()
made = comm.Shrink()
print("rank", made.rank, "of", made.allreduce(1), flush=True)
sys.exit({code})
"""


def run(*words: str, ft: int = 1) -> subprocess.CompletedProcess[str]:
    command = [*RUN, "--mca", "mpi_ft_enable", str(ft), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False
    )


CELLS = [
    *product(
        ("os.kill(os.getpid(), 9)", "os._exit(4)", "os.abort()"),
        ("self,sm", "self,tcp"),
        ("ob1", "bfo"),
    )
]


@pytest.mark.parametrize(("death", "way", "pml"), CELLS if THOROUGH else CELLS[::5])
def test_the_others_go_on(death: str, way: str, pml: str) -> None:
    text = DIES.format(death=death, code=0)
    done = run("-n", "4", "--mca", "btl", way, "--mca", "pml", pml, sys.executable, "-c", text)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} of 3" for rank in range(3)]
    assert done.stderr.count("the job goes on without it") == 1


def test_the_survivors_say_how_the_job_went() -> None:
    text = DIES.format(death="os._exit(4)", code=3)
    done = run("-n", "3", sys.executable, "-c", text)
    assert done.returncode == 3


def test_without_the_parameter_a_death_is_the_end() -> None:
    text = DIES.format(death="os.kill(os.getpid(), 9)", code=0)
    done = run("-n", "3", sys.executable, "-c", text, ft=0)
    assert done.returncode == 128 + signal.SIGKILL
    assert done.stdout == ""


LATE = """
import time
from mpi4py import MPI
comm = MPI.COMM_WORLD
for turn in range(4):
    made = [comm.Dup() for _ in range(3)]
    for other in made:
        other.Barrier()
    for other in made:
        other.Free()  # it goes when all have freed it: in the middle of the next wait
    if comm.rank == turn % 2:
        time.sleep(0.5)  # longer than a wait that asks nothing
    comm.allgather(comm.rank)
"""


def test_a_late_rank_after_communicators_were_freed() -> None:
    done = run("-n", "2", sys.executable, "-c", LATE)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def test_nobody_survives() -> None:
    text = "import os; from mpi4py import MPI; MPI.COMM_WORLD.Barrier(); os._exit(4)"
    done = run("-n", "2", sys.executable, "-c", text)
    assert done.returncode == 4
    assert "No rank has survived" in done.stderr


@pytest.mark.parametrize("pml", ["ob1", "bfo"] if THOROUGH else ["bfo"])
def test_a_stencil_goes_on_with_as_many_ranks(pml: str) -> None:
    kill = ["--kill", "rank=3,after=1500ms", "--kill", "rank=0,after=1700ms"]
    words = ["-n", "6", "--mca", "pml", pml, *kill, sys.executable, "examples/survive.py", "200"]
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("6 ranks, 200 steps: as without a failure\n")
    assert done.stderr.count("was killed by signal 9; the job goes on") == 2


def test_a_kill_that_makes_no_sense_starts_nothing() -> None:
    done = run("-n", "2", "--kill", "rank=2,after=1s", sys.executable, "-c", "print('began')")
    assert done.returncode
    assert done.stdout == ""
    assert "the job has ranks 0 to 1" in done.stderr
    assert os.linesep in done.stderr
