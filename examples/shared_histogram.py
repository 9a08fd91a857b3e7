"""Lesson 10, windows: a histogram that nobody owns; every rank counts straight into all of it.

You learn: a window is memory that others may reach, and no rank receives anything; Accumulate and
    Fetch_and_op are atomic for each element, so a shared lock is enough; Flush completes them.
Run: ompy-run -n 4 python examples/shared_histogram.py
Change: Get, add and Put instead of Accumulate: how many numbers are lost, and why?
"""

# %% Bins with each rank, and at rank 0 a counter of batches
import random
from array import array

from mpi4py import MPI

BINS_EACH = 8
BATCHES, BATCH = 24, 500

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
bins = BINS_EACH * size
item = MPI.INT64_T.Get_size()

histogram = MPI.Win.Allocate(BINS_EACH * item, item, comm=comm)
counter = MPI.Win.Allocate(item if rank == 0 else 0, item, comm=comm)
comm.Barrier()

# %% Draw a batch, count it, add the counts to the bins wherever they are
counter.Lock_all()
histogram.Lock_all()
drawn = array("q", [0])
done = 0
while True:
    counter.Fetch_and_op(array("q", [1]), drawn, 0)  # who gets a number has that batch
    counter.Flush(0)
    if drawn[0] >= BATCHES:
        break
    numbers = random.Random(drawn[0])  # whoever counts a batch counts the same
    mine = array("q", [0] * bins)
    for _ in range(BATCH):
        mine[min(int(abs(numbers.gauss(0, 0.3)) * bins), bins - 1)] += 1
    for owner in range(size):
        part = mine[owner * BINS_EACH : (owner + 1) * BINS_EACH]
        histogram.Accumulate([part, MPI.INT64_T], owner)
    histogram.Flush_all()
    done += 1
histogram.Unlock_all()
counter.Unlock_all()

# %% Nothing is lost
comm.Barrier()  # everybody has counted
own = memoryview(histogram.tomemory()).cast("B").cast("q").tolist()
everything = [count for part in comm.allgather(own) for count in part]
assert sum(everything) == BATCHES * BATCH, everything
assert comm.allreduce(done) == BATCHES
histogram.Free()
counter.Free()
if rank == 0:
    shares = "".join(" .:-=+*#"[min(7, 8 * count // max(everything))] for count in everything)
    print(f"{sum(everything)} numbers counted into {bins} bins: {shares}")
