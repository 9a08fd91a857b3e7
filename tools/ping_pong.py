#!/usr/bin/env python3
"""Ping-pong of NumPy buffers between two ranks, for `compare_peers.py`; rank 0 prints JSON.

    mpiexec -n 2 python tools/ping_pong.py SECONDS SIZE...

It runs as it is on ompy and on mpi4py. The line has one-way seconds by size, a list of `PARTS`.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Final

import numpy as np
from mpi4py import MPI

# NumPy asks for huge pages from here on (reference performance.md, 3d), and the kernel copies
# from them two to three times as fast: every size is measured in memory of one kind
HUGE: Final = 4 << 20
WARM_UP: Final = 5  # arbitrary: connections are made, pages are touched
PARTS: Final = 20  # arbitrary: enough for a lowest tenth, which other work has not disturbed


def exchange(send: np.ndarray, receive: np.ndarray, count: int) -> float:
    """Seconds of `count` messages there and back."""
    comm = MPI.COMM_WORLD
    begin = perf_counter()
    for _ in range(count):
        if comm.rank == 0:
            comm.Send(send, 1)
            comm.Recv(receive, 1)
        else:
            comm.Recv(receive, 0)
            comm.Send(send, 0)
    return perf_counter() - begin


def one_way(size: int, seconds: float) -> list[float]:
    """Seconds of one message one way: a figure for each of `PARTS` parts of `seconds`."""
    comm = MPI.COMM_WORLD
    room = max(size, HUGE)
    send, receive = np.empty(room, np.uint8)[:size], np.empty(room, np.uint8)[:size]
    send[:] = comm.rank + 1
    receive[:] = 0
    comm.Barrier()
    once = min(exchange(send, receive, 1) for _ in range(WARM_UP))
    count = comm.bcast(max(1, min(1000, int(seconds / PARTS / max(once, 1e-7)))))
    if not (receive == 2 - comm.rank).all():
        raise SystemExit(f"rank {comm.rank}: wrong data in a message of {size} bytes")
    comm.Barrier()
    return [exchange(send, receive, count) / count / 2 for _ in range(PARTS)]


def main() -> None:
    """Measure each size on the command line."""
    seconds, *sizes = sys.argv[1:]
    found = {size: one_way(int(size), float(seconds)) for size in sizes}
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps({"library": MPI.Get_library_version().strip("\0\n"), "seconds": found}))


if __name__ == "__main__":
    main()
