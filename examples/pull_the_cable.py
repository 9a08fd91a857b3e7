"""Blocks streamed from each even rank to the next odd one for some seconds, every byte checked.

    ompy-run -n 2 python examples/pull_the_cable.py 6

README.md, "Pull the cable", runs it over two rails and pulls one of them out meanwhile.
"""

import sys

from mpi4py import MPI

BLOCK = 1_000_000  # bytes
WINDOW = 4  # blocks under way at a time
PATTERN = bytes(range(251)) * (BLOCK // 251 + 2)

comm = MPI.COMM_WORLD
seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 0.2


def content(number):
    return number.to_bytes(8, "little") + PATTERN[number % 251 :][: BLOCK - 8]


def stream(partner):
    end = MPI.Wtime() + seconds
    under_way = []
    number = 0
    while MPI.Wtime() < end:
        if len(under_way) == WINDOW:
            under_way.pop(0).Wait()
        under_way.append(comm.Isend(content(number), dest=partner))
        number += 1
    MPI.Request.Waitall(under_way)
    for _ in range(WINDOW):  # an empty block for each receive that still waits
        comm.Send(b"", dest=partner)


def check(partner):
    rooms = [bytearray(BLOCK) for _ in range(WINDOW)]
    waiting = [comm.Irecv(room, source=partner) for room in rooms]
    status = MPI.Status()
    number, longest, last = 0, 0.0, MPI.Wtime()
    while True:
        place = number % WINDOW
        waiting[place].Wait(status)
        if status.Get_count(MPI.BYTE) == 0:
            break
        assert rooms[place] == content(number), f"block {number} is not what was sent"
        longest, last = max(longest, MPI.Wtime() - last), MPI.Wtime()
        waiting[place] = comm.Irecv(rooms[place], source=partner)
        number += 1
    MPI.Request.Waitall(waiting)
    return number, longest


partner = comm.rank ^ 1
blocks, longest = 0, 0.0
if partner < comm.size:
    if comm.rank < partner:
        stream(partner)
    else:
        blocks, longest = check(partner)
blocks = comm.reduce(blocks, op=MPI.SUM, root=0)
longest = comm.reduce(longest, op=MPI.MAX, root=0)
if comm.rank == 0:
    print(
        f"{blocks} blocks arrived as they were sent; the longest wait was {longest * 1000:.0f} ms"
    )
