"""One-way time of messages between ranks 0 and 1, 2 and 3, ..., as the OSU loops measure it."""

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
partner = comm.rank ^ 1

if comm.rank == 0:
    print(f"{'bytes':>10} {'us':>10}")
for size in (0, 1, 8, 64, 1024, 4096, 65_536, 1_048_576):
    repeats = 200 if size < 10_000 else 20
    send = np.full(size, comm.rank % 251, dtype="B")
    receive = np.zeros(size, dtype="B")
    comm.Barrier()
    elapsed = 0.0
    if partner < comm.size:
        begin = MPI.Wtime()
        for _ in range(repeats):
            if comm.rank < partner:
                comm.Send([send, MPI.BYTE], dest=partner)
                comm.Recv([receive, MPI.BYTE], source=partner)
            else:
                comm.Recv([receive, MPI.BYTE], source=partner)
                comm.Send([send, MPI.BYTE], dest=partner)
        elapsed = (MPI.Wtime() - begin) / repeats / 2
        assert (receive == partner % 251).all()
    slowest = comm.reduce(elapsed, op=MPI.MAX, root=0)
    if comm.rank == 0:
        print(f"{size:>10} {slowest * 1e6:>10.2f}")
