"""pylops-mpi: a block-diagonal system spread over ranks, solved by conjugate gradients."""

import numpy as np
import pylops
import pylops_mpi
from mpi4py import MPI

comm = MPI.COMM_WORLD
rng = np.random.default_rng(5)
blocks = [np.eye(6) * 9 + rng.standard_normal((6, 6)) for _ in range(comm.size)]
whole = pylops_mpi.MPIBlockDiag([pylops.MatrixMult(blocks[comm.rank])])
truth = np.arange(6.0 * comm.size)
x = pylops_mpi.DistributedArray(global_shape=6 * comm.size)
x[:] = truth[6 * comm.rank : 6 * comm.rank + 6]
y = whole @ x
expected = np.concatenate([block @ truth[6 * n : 6 * n + 6] for n, block in enumerate(blocks)])
assert np.allclose(y.asarray(), expected)
start = pylops_mpi.DistributedArray(global_shape=6 * comm.size)
start[:] = 0
solved = pylops_mpi.cgls(whole, y, x0=start, niter=200, tol=1e-14)[0]
assert np.allclose(solved.asarray(), truth, atol=1e-5)
if comm.rank == 0:
    print("fine")
