"""pshmem: an array in memory that the ranks of a host share, and a lock of theirs."""

import numpy as np
from mpi4py import MPI
from pshmem import MPILock, MPIShared

comm = MPI.COMM_WORLD
with MPIShared((4, comm.size), np.float64, comm) as shared:
    for rank in range(comm.size):
        mine = np.full((4, 1), float(rank + 1)) if rank == comm.rank else None
        shared.set(mine, offset=(0, rank), fromrank=rank)
    assert np.array_equal(shared[:], np.tile(np.arange(1.0, comm.size + 1), (4, 1)))
with MPILock(comm) as lock:
    for _ in range(5):
        lock.lock()
        lock.unlock()
comm.Barrier()
if comm.rank == 0:
    print("fine")
