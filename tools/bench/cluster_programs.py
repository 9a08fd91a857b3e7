"""Programs whose times are measured on two ranks, and predicted by `ompy sim --cluster`.

Each is a program as anybody writes it; it prints what one round took, in seconds.
"""

from __future__ import annotations

from typing import Final, NamedTuple

HEAD: Final = """\
import sys
from mpi4py import MPI
comm = MPI.COMM_WORLD
size, rounds, batches = map(int, sys.argv[1:4])
rank, other, ranks = comm.rank, 1 - comm.rank, comm.size
right, left = (rank + 1) % ranks, (rank - 1) % ranks
data, room = bytearray(size), bytearray(size)
times = []
for batch in range(batches + 1):  # the first is not counted
    comm.Barrier()
    begin = MPI.Wtime()
    for _ in range(rounds):
"""
FOOT: Final = """
    times.append((MPI.Wtime() - begin) / rounds)
if rank == 0:
    print(min(times[1:]))  # other processes have disturbed the others
"""

BODIES: Final = {
    # fitted: what LogGP's numbers come from
    "ping-pong": """
if rank == 0:
    comm.Send(data, 1)
    comm.Recv(room, 1)
else:
    comm.Recv(room, 0)
    comm.Send(data, 0)
""",
    "burst": """
if rank == 0:
    for _ in range(32):
        comm.Send(data, 1)
    comm.Recv(room, 1)
else:
    for _ in range(32):
        comm.Recv(room, 0)
    comm.Send(data, 0)
""",
    "exchange": """
comm.Sendrecv(data, other, recvbuf=room, source=other)
""",
    # predicted: nothing is fitted to these
    "ring": """
if rank:
    comm.Recv(room, left)
comm.Send(data, right)
if not rank:
    comm.Recv(room, left)
""",
    "halo": """
rooms = bytearray(size), bytearray(size)
requests = [comm.Irecv(rooms[0], left, 1), comm.Irecv(rooms[1], right, 2)]
requests += [comm.Isend(data, right, 1), comm.Isend(data, left, 2)]
MPI.Request.Waitall(requests)
""",
    "bcast": """
comm.Bcast(data)
comm.Barrier()
""",
    "allreduce": """
words = size // 8
comm.Allreduce([data, words, MPI.INT64_T], [room, words, MPI.INT64_T])
""",
    "alltoall": """
half = size // ranks * ranks
comm.Alltoall(memoryview(data)[:half], memoryview(room)[:half])
""",
}
FITTED: Final = ("ping-pong", "burst", "exchange")


class Case(NamedTuple):
    """A program and a size."""

    program: str
    size: int


def program_text(name: str) -> str:
    """A whole program."""
    body = "".join(f"        {line}\n" for line in BODIES[name].strip().splitlines())
    return HEAD + body + FOOT


def rounds_of(size: int) -> int:
    """So many that a batch takes a few milliseconds, less than a turn of another process."""
    return max(4, min(40, 1_000_000 // (size + 20_000)))
