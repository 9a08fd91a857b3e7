"""Locks and atomic operations of real ranks at once: nothing is lost, nobody sees half of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.proc

RUN = str(Path(sys.executable).parent / "ompy-run")
PROGRAM = """
from array import array
from random import Random
from mpi4py import MPI
comm = MPI.COMM_WORLD
rounds = 300
win = MPI.Win.Allocate(32, 8, comm=comm)
memoryview(win.tomemory())[:] = bytes(32)
comm.Barrier()
chance = Random(comm.rank)
one, two, got = array("q", [1]), array("q", [0, 0]), array("q", [0])
seen = adds = swaps = 0
for _ in range(rounds):
    target, what = chance.randrange(comm.size), chance.randrange(4)
    if what == 0:  # two words that belong together, changed in two steps
        win.Lock(target)
        win.Get(two, target)
        assert two[0] == two[1], two
        two[0] += 1
        win.Put(two[:1], target, 0)
        two[1] += 1
        win.Put(two[1:], target, 1)
        win.Unlock(target)
        seen += 1
    elif what == 1:
        win.Lock(target, MPI.LOCK_SHARED)
        win.Get(two, target)
        assert two[0] == two[1], two
        win.Unlock(target)
    elif what == 2:
        win.Lock(target, MPI.LOCK_SHARED)
        win.Fetch_and_op(one, got, target, 2, MPI.SUM)
        win.Flush(target)
        win.Accumulate(one, target, 2)
        win.Unlock(target)
        adds += 2
    else:
        win.Lock(target, MPI.LOCK_SHARED)
        old = array("q", [0])
        while True:
            win.Compare_and_swap(array("q", [old[0] + 1]), old, got, target, 3)
            win.Flush(target)
            if got[0] == old[0]:
                break
            old[0] = got[0]
        win.Unlock(target)
        swaps += 1
comm.Barrier()
mine = memoryview(win.tomemory()).cast("B").cast("q").tolist()
said = [comm.allreduce(count) for count in (seen, seen, adds, swaps)]
there = [comm.allreduce(count) for count in mine]
assert there == said, (there, said)
assert min(said) > 0
win.Free()
if comm.rank == 0:
    print("all of", sum(said))
"""


@pytest.mark.parametrize("words", ["1", "0"])
def test_at_once(words: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    command = [RUN, "-n", "4", "--oversubscribe", "--mca", "osc_sm_word_locks", words]
    done = subprocess.run(
        [*command, sys.executable, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("all of ")
