"""Real ranks: one leaves, and whatever another waits for of it fails, in bounded time.

One job makes many calls, the first of each rank begun before the other leaves. All of them over
every BTL, in every way of leaving: `tools/sweep leaving_matrix --real`.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.effort import THOROUGH
from tests.support.leaving_cells import ENDS_JOB, Outcome, real_job
from tests.support.leaving_waits import COLLECTIVES, MESSAGES, WINDOWS

pytestmark = pytest.mark.proc

STEP = 1 if THOROUGH else 5
LOCKS = [name for name in WINDOWS["Allocate"] if "Lock" in name]
# (what, way, settings)
JOBS = [
    (list(MESSAGES)[::STEP], "stays", {"btl": "self,sm"}),
    (list(COLLECTIVES)[::STEP], "exits", {"btl": "self,tcp", "pml": "bfo"}),
    (LOCKS, "stays", {"btl": "self,sm"}),
]


@pytest.mark.parametrize(("names", "way", "settings"), JOBS, ids=["messages", "bfo", "locks"])
def test_every_wait_ends(names: list[str], way: str, settings: dict[str, str]) -> None:
    found = real_job(names, way, early=True, **settings)
    assert [each for each in map(Outcome.wrong, found.outcomes) if each] == [], found.said
    assert sorted(outcome.name for outcome in found.outcomes) == sorted(names), found.said


WAITS = """
import os, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
window = MPI.Win.Allocate(8, comm=comm)
if comm.rank == 1:
    window.Lock(1)  # shared memory has no lock that goes with its holder
comm.Barrier()
if comm.rank == 1:
    os.kill(os.getpid(), 9)
for wait in [lambda: comm.recv(source=1), lambda: window.Lock(1)]:
    begin = time.monotonic()
    try:
        wait()
    except MPI.Exception as problem:
        print(problem.Get_error_class() == MPI.ERR_PROC_FAILED, int(time.monotonic() - begin))
"""


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_who_waits_for_one_that_was_killed_hears_of_it_soon(btl: str) -> None:
    job = [sys.executable, "-m", "ompy.cli.run", "-n", "3", "--mca", "mpi_ft_enable", "1"]
    words = [*job, "--mca", "btl", btl, sys.executable, "-c", WAITS]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    told = [line.split() for line in done.stdout.splitlines()]
    assert [(failed, int(took) < 3) for failed, took in told] == [("True", True)] * 4, done


@pytest.mark.parametrize("way", ENDS_JOB if THOROUGH else ["vanishes"])
def test_a_rank_that_ends_the_job(way: str) -> None:
    found = real_job(list(MESSAGES)[:4], way, early=True, btl="self,sm")
    assert found.code == ENDS_JOB[way], found.said
    assert way != "vanishes" or "without MPI_Finalize" in found.said.replace("\n", " ")
