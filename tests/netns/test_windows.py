"""Windows whose rails are cut in the middle of epochs."""

import pytest

from .test_rails import Job, breaks_and_heals, pulled

pytestmark = [pytest.mark.proc, pytest.mark.netns]

# each rank puts into the other's window, adds to it, gets from it and counts in it; all is looked
# at in every step, so that what is lost, stale or done twice is seen
PROGRAM = """
import os, sys, time
import numpy as np
from mpi4py import MPI
w = MPI.COMM_WORLD
n, other = int(sys.argv[1]), 1 - w.rank
mine = np.zeros(2 * n + 2)
win = MPI.Win.Create(mine, 8, comm=w)
base, room, was = np.arange(float(n)), np.empty(n), np.zeros(1)
going = np.ones(1)
step, longest, said = 0, 0.0, 0.0
win.Fence()
while going[0]:
    step += 1
    began = time.monotonic()
    win.Put(base * step + w.rank, other)
    win.Accumulate(base, other, n)
    win.Accumulate(np.ones(1), other, 2 * n)
    win.Fence()
    assert (mine[:n] == base * step + other).all(), step
    assert (mine[n : 2 * n] == base * step).all(), step
    assert mine[2 * n] == step, (step, mine[2 * n])
    w.Barrier()
    win.Lock(other, MPI.LOCK_SHARED)
    win.Get(room, other)
    win.Fetch_and_op(np.ones(1), was, other, 2 * n + 1)
    win.Unlock(other)
    assert (room == base * step + w.rank).all(), step
    assert was[0] == step - 1, (step, was)
    win.Fence()
    longest = max(longest, time.monotonic() - began)
    going[0] = not os.path.exists(sys.argv[2])
    w.Bcast(going, 0)
    if w.rank == 0 and time.monotonic() - said > 0.2:
        said = time.monotonic()
        print("step", step, longest, flush=True)
        longest = 0.0
win.Free()
if w.rank == 0:
    print("done", step, flush=True)
"""


def test_a_rail_goes_in_an_epoch_and_comes_back(lab, tmp_path):
    """Every value is right in every step, over one rail as over two."""
    breaks_and_heals(lab, Job(lab, tmp_path, program=PROGRAM, size=50_000), pulled)
