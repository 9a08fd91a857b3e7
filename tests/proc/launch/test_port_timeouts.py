"""Who connects to a port waits no longer than the info key `timeout` says, and both sides agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proc

NOBODY = """
import time
from mpi4py import MPI
world = MPI.COMM_WORLD
port = world.bcast(MPI.Open_port() if world.rank == 0 else None)
begun = MPI.Wtime()
try:
    world.Connect(port if world.rank == 0 else None, MPI.Info.Create({"timeout": TIMEOUT}))
except MPI.Exception as problem:
    assert MPI.Wtime() - begun < 5, "it is bounded"
    print(world.rank, problem.Get_error_class() == EXPECTED, problem, flush=True)
world.Barrier()
# the port is as it was before
if world.rank == 0:
    MPI.COMM_SELF.Accept(port).Disconnect()
elif world.rank == 1:
    MPI.COMM_SELF.Connect(port, MPI.Info.Create({"timeout": "30"})).Disconnect()
world.Barrier()
"""

# rank 0 accepts when rank 1 is about to give up: it connects for good if it was too late
RACE = """
import random, time
from mpi4py import MPI
world = MPI.COMM_WORLD
port = world.bcast(MPI.Open_port() if world.rank == 0 else None)
late = random.Random(7 + 1000 * world.rank)
given_up = met = 0
world.Barrier()
for turn in range(TURNS):
    world.Barrier()
    if world.rank == 0:
        time.sleep(max(0, WAIT * late.uniform(0.5, 1.5)))
        between = MPI.COMM_SELF.Accept(port)
    else:
        try:
            between = MPI.COMM_SELF.Connect(port, MPI.Info.Create({"timeout": str(WAIT)}))
            met += 1
        except MPI.Exception as problem:
            assert problem.Get_error_class() == MPI.ERR_PORT, problem
            given_up += 1
            between = MPI.COMM_SELF.Connect(port)
    assert between.allreduce(world.rank) == 1 - world.rank
    between.Disconnect()
if world.rank == 1:
    print(given_up + met == TURNS, given_up > 0, met > 0, flush=True)
"""


def run(program: str, ranks: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), sys.executable, "-c", program]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("timeout", ["0.2", "0"])
def test_nobody_accepts(timeout: str) -> None:
    done = run(f"TIMEOUT = {timeout!r}\n{NOBODY}".replace("EXPECTED", "MPI.ERR_PORT"), 3)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 3
    assert all(" True " in line and "in time" in line for line in done.stdout.splitlines())


@pytest.mark.parametrize("timeout", ["soon", "-1", "nan", "1e30"])
def test_a_time_that_is_none(timeout: str) -> None:
    text = f"TIMEOUT = {timeout!r}\n{NOBODY}".replace("EXPECTED", "MPI.ERR_INFO_VALUE")
    done = run(text, 2)
    assert done.returncode == 0, done.stderr
    assert all(" True " in line and timeout in line for line in done.stdout.splitlines())


def test_who_gives_up_while_somebody_accepts() -> None:
    done = run(f"TURNS, WAIT = 100, 0.003\n{RACE}", 2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "True"


def test_in_virtual_worlds_either_comes_first(tmp_path: Path) -> None:
    """Time is the world's: some give up and some meet, by the seed of the program's own."""
    path = tmp_path / "race.py"
    path.write_text(f"TURNS, WAIT = 40, 0.5\n{RACE}")
    words = [sys.executable, "-m", "ompy.cli.main", "sim", "-n", "2", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * 3
