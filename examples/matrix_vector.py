"""Power iteration with a row-distributed matrix: Allgather puts the vector together each turn."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows = 6  # of each rank
n = rows * comm.size
index = np.arange(n)
whole = 1.0 / (1.0 + np.abs(index[:, None] - index[None, :]))  # only to check the answer
mine = whole[comm.rank * rows : (comm.rank + 1) * rows].copy()

vector = np.ones(n)
product = np.empty(n)
for _ in range(60):
    part = mine @ vector
    comm.Allgather(part, product)
    norm = np.linalg.norm(product)
    vector = product / norm
expected = np.linalg.eigvalsh(whole)[-1]
assert abs(norm - expected) < 1e-8 * expected
if comm.rank == 0:
    print(f"largest eigenvalue of a {n} x {n} matrix: {norm:.6f}")
