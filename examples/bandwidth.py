"""Bytes per second from each even rank to the next odd one, many messages under way at a time."""

import numpy as np
from mpi4py import MPI

WINDOW = 16

comm = MPI.COMM_WORLD
partner = comm.rank ^ 1

if comm.rank == 0:
    print(f"{'bytes':>10} {'MB/s':>10}")
for size in (1024, 16_384, 262_144, 1_048_576):
    repeats = 5
    data = np.full(size, 17, dtype="B")
    rooms = [np.zeros(size, dtype="B") for _ in range(WINDOW)]
    rate = 0.0
    comm.Barrier()
    if partner < comm.size:
        begin = MPI.Wtime()
        for _ in range(repeats):
            if comm.rank < partner:
                MPI.Request.Waitall([comm.Isend(data, dest=partner) for _ in range(WINDOW)])
                comm.Recv(bytearray(1), source=partner)
            else:
                MPI.Request.Waitall([comm.Irecv(room, source=partner) for room in rooms])
                comm.Send(b"k", dest=partner)
        rate = size * WINDOW * repeats / (MPI.Wtime() - begin)
        assert comm.rank < partner or all((room == 17).all() for room in rooms)
    total = comm.reduce(rate if comm.rank % 2 == 0 else 0.0, op=MPI.SUM, root=0)
    if comm.rank == 0:
        print(f"{size:>10} {total / 1e6:>10.1f}")
