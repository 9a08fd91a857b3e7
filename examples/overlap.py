"""Post everything, work meanwhile, take what comes first."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
others = [rank for rank in range(comm.size) if rank != comm.rank]
rooms = [np.zeros(50_000) for _ in others]
receives = [comm.Irecv(room, source=rank) for room, rank in zip(rooms, others, strict=True)]
data = np.full(50_000, float(comm.rank))
sends = [comm.Isend(data, dest=rank) for rank in others]

worked = sum(index * index for index in range(20_000))  # something useful

order = []
for _ in others:
    status = MPI.Status()
    index = MPI.Request.Waitany(receives, status)
    assert status.Get_source() == others[index]
    assert (rooms[index] == others[index]).all()
    order.append(others[index])
assert sorted(order) == others
assert MPI.Request.Waitany(receives) == MPI.UNDEFINED
MPI.Request.Waitall(sends)
comm.Barrier()
if comm.rank == 0:
    print(f"rank 0 received from {len(order)} other(s) and worked meanwhile ({worked})")
