"""pi as the integral of 4 / (1 + x^2) over [0, 1], each rank summing every size-th rectangle."""

import math

from mpi4py import MPI

comm = MPI.COMM_WORLD
steps = comm.bcast(200_000 if comm.rank == 0 else None, root=0)
width = 1.0 / steps
mine = 0.0
for index in range(comm.rank, steps, comm.size):
    x = (index + 0.5) * width
    mine += 4.0 / (1.0 + x * x)
pi = comm.reduce(mine * width, op=MPI.SUM, root=0)
if comm.rank == 0:
    assert abs(pi - math.pi) < 1e-9
    print(f"pi is about {pi:.12f}, error {abs(pi - math.pi):.1e}")
