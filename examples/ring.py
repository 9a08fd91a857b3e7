"""Lesson 2, messages: a token goes around the ring, and every rank adds its number to it.

You learn: what a message needs (data, peer, tag), and why Sendrecv cannot block itself.
Run: ompy-run -n 4 python examples/ring.py
Change: let the token go the other way. Then use Send and Recv: from which size on does it hang?
"""

# %% Neighbours
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size

# %% Once around
token = array("q", [rank])
total = 0
for _ in range(size):
    total += token[0]
    arrived = array("q", [0])
    comm.Sendrecv(token, dest=right, recvbuf=arrived, source=left)
    token = arrived

# %% What must be true now
assert token[0] == rank, "after a whole turn everybody has its own token back"
assert total == size * (size - 1) // 2
comm.Barrier()
if rank == 0:
    print(f"the token went around {size} rank(s) and collected {total}")
