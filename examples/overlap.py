"""Lesson 4, nonblocking messages: post everything, work meanwhile, take what comes first.

You learn: Isend and Irecv only begin; a buffer is MPI's until its request is complete; Waitany
    takes messages in the order in which they come.
Run: ompy-run -n 4 python examples/overlap.py
Change: work ten times as long, and look at the trace. Then change `data` before Waitall and run it
    with `ompy-run --check`.
"""

# %% Post all receives, then all sends
from array import array

from mpi4py import MPI

NUMBERS = 50_000

comm = MPI.COMM_WORLD
others = [rank for rank in range(comm.size) if rank != comm.rank]
rooms = [array("d", bytes(8 * NUMBERS)) for _ in others]
receives = [comm.Irecv(room, source=rank) for room, rank in zip(rooms, others, strict=True)]
data = array("d", [float(comm.rank)]) * NUMBERS
sends = [comm.Isend(data, dest=rank) for rank in others]

# %% Work meanwhile
worked = sum(index * index for index in range(20_000))  # something useful

# %% Take what comes first
order = []
for _ in others:
    status = MPI.Status()
    index = MPI.Request.Waitany(receives, status)
    assert status.Get_source() == others[index]
    assert rooms[index] == array("d", [float(others[index])]) * NUMBERS
    order.append(others[index])
assert sorted(order) == others
assert MPI.Request.Waitany(receives) == MPI.UNDEFINED, "there is none left"
MPI.Request.Waitall(sends)
comm.Barrier()
if comm.rank == 0:
    print(f"rank 0 received from {len(order)} other(s) and worked meanwhile ({worked})")
