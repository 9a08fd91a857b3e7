"""pi by throwing darts at the unit square: every rank has its own seed, all get the answer."""

import math
import random

from mpi4py import MPI

comm = MPI.COMM_WORLD
throws = 40_000
darts = random.Random(1000 + comm.rank)
hits = sum(darts.random() ** 2 + darts.random() ** 2 < 1.0 for _ in range(throws))
total = comm.allreduce(hits, op=MPI.SUM)
pi = 4.0 * total / (throws * comm.size)
assert abs(pi - math.pi) < 0.05
assert comm.allreduce(pi, op=MPI.MAX) == pi, "all ranks agree"
if comm.rank == 0:
    print(f"pi is about {pi:.3f} after {throws * comm.size} darts")
