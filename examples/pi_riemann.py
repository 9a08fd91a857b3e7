"""Lesson 5, collective calls: pi as an integral, each rank with every size-th rectangle of the sum.

You learn: all ranks of a communicator make a collective call; bcast goes from one to all, reduce
    from all to one; ompy chooses an algorithm for each, which a trace shows.
Run: ompy-run -n 4 python examples/pi_riemann.py
Change: use allreduce, so that every rank has pi. Then only rank 1 calls allreduce: what is said?
"""

# %% One knows how many, all have to
import math

from mpi4py import MPI

comm = MPI.COMM_WORLD
steps = comm.bcast(200_000 if comm.rank == 0 else None, root=0)

# %% Each sums its own rectangles of 4 / (1 + x^2) over [0, 1]
width = 1.0 / steps
mine = 0.0
for index in range(comm.rank, steps, comm.size):
    x = (index + 0.5) * width
    mine += 4.0 / (1.0 + x * x)

# %% The sum of the sums
pi = comm.reduce(mine * width, op=MPI.SUM, root=0)
if comm.rank == 0:
    assert abs(pi - math.pi) < 1e-9
    print(f"pi is about {pi:.12f}, error {abs(pi - math.pi):.1e}")
