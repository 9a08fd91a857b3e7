"""A rank is killed while all write a file together: others get an error, the file is in order."""

from __future__ import annotations

import subprocess
import sys
from array import array
from itertools import product
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 120.0  # s; far beyond what anything here takes, beside many others too
RANKS = 4
ROWS = 20_000
pytestmark = pytest.mark.proc

# columns of numbers, the last of which nobody writes; in round i all words of a column say so
WRITES = """
import os, sys, time
from array import array
from threading import Timer
from mpi4py import MPI
comm = MPI.COMM_WORLD
path, victim, after, rows = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
rank, size = comm.rank, comm.size
hints = MPI.Info.Create({"cb_buffer_size": "65536"})
column = MPI.INT64_T.Create_vector(1, 1, 1).Create_resized(0, 8 * (size + 1)).Commit()
fh = MPI.File.Open(comm, path, MPI.MODE_RDWR, hints)
fh.Set_view(8 * rank, MPI.INT64_T, column)
number = 0
try:
    while True:
        if rank == victim and number == 2:
            Timer(after, os.kill, (os.getpid(), 9)).start()
        begin = time.monotonic()
        fh.Write_at_all(0, array("q", [number] * rows))
        number += 1
except MPI.Exception as problem:
    took = time.monotonic() - begin
    assert problem.Get_error_class() in (MPI.ERR_PROC_FAILED, MPI.ERR_REVOKED), problem
assert took < 20, took
try:
    fh.Close()
except MPI.Exception:
    pass
comm.Revoke()
made = comm.Shrink()
numbers = made.allgather((rank, number))
if made.rank == 0:
    print(*(f"{each}:{count}" for each, count in numbers), flush=True)
fh = MPI.File.Open(made, path, MPI.MODE_RDWR, hints)  # and they go on with it
fh.Set_view(8 * rank, MPI.INT64_T, column)
room = array("q", bytes(8 * rows))
fh.Read_at_all(0, room)
assert set(room) <= {number, number - 1}, (number, set(room))
fh.Close()
"""
CELLS = [*product((0, 1, 3), ("self,sm", "self,tcp"), ("ob1", "bfo"), (0.0, 0.003, 0.02))]


@pytest.mark.parametrize(("victim", "way", "pml", "after"), CELLS if THOROUGH else CELLS[::7])
def test_a_rank_is_killed(victim: int, way: str, pml: str, after: float, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(array("q", [-1] * (ROWS * (RANKS + 1))).tobytes())
    settings = {"mpi_ft_enable": "1", "btl": way, "pml": pml}
    mca = [word for name, value in settings.items() for word in ("--mca", name, value)]
    job = [sys.executable, "-m", "ompy.cli.run", "-n", str(RANKS), *mca]
    program = [sys.executable, "-c", WRITES, path, str(victim), str(after), str(ROWS)]
    done = subprocess.run(
        [*job, *program], capture_output=True, text=True, timeout=PATIENCE, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    told = [each.split(":") for each in done.stdout.split()]
    assert sorted(int(rank) for rank, _ in told) == [r for r in range(RANKS) if r != victim]
    rounds = {int(rank): int(number) for rank, number in told}
    assert max(rounds.values()) - min(rounds.values()) <= 1, "they are in the same round, or next"
    words = array("q", path.read_bytes())
    assert set(words[RANKS :: RANKS + 1]) == {-1}, "a gap was written"
    for rank in range(RANKS):
        last = rounds.get(rank, max(rounds.values()))
        assert set(words[rank :: RANKS + 1]) <= {last, last - 1}, rank
