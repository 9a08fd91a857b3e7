#!/usr/bin/env python3
"""What `peers.py` measures, as one program for ompy and every mpi4py; rank 0 prints JSON.

    mpiexec -n 2 python tools/bench/peer/peer_workloads.py SECONDS WORKLOAD...

A workload is a kind and what it is about: `send:1m`, `alloc:64k`, `rate:8`, `object:int`,
`pkl5:dict8m`, `allreduce:8`. The line has, for each, a list of `PARTS` figures in seconds: one way
for messages, one message of a window for the rate, one call for allreduce. What was moved is
checked, beside the clock.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

import numpy as np
from mpi4py import MPI

# NumPy asks for huge pages from here on (reference performance.md 3d), and the kernel copies
# from them two to three times as fast: every size is measured in memory of one kind
HUGE: Final = 4 << 20
WARM_UP: Final = 5  # arbitrary: connections are made, pages are touched
PARTS: Final = 20  # arbitrary: enough for a lowest tenth, which other work has not disturbed
WINDOW: Final = 64  # messages under way at a time in the rate; as OSU's multi-lat and bw have it
UNITS: Final = {"k": 1 << 10, "m": 1 << 20}

OBJECTS: Final[dict[str, Callable[[], Any]]] = {
    "int": lambda: 12345,
    "bytes1k": lambda: bytes(range(256)) * 4,
    "dict1k": lambda: {f"key {number}": number / 7 for number in range(45)},
    "array1k": lambda: np.arange(128.0),
    "array8m": lambda: np.arange(1 << 20, dtype=float),
    "dict8m": lambda: {"name": "field", "data": np.arange(1 << 20, dtype=float), "step": 3},
}

Step = Callable[[int], None]  # does something so many times
Check = Callable[[], bool]  # whether what came is right


def bytes_of(word: str) -> int:
    """8, 1k or 4m."""
    return int(word[:-1]) * UNITS[word[-1]] if word[-1] in UNITS else int(word)


def buffers(comm: Any, size: int, room: Callable[[int], Any]) -> tuple[Step, Check]:
    """Ping-pong of buffers in memory that `room` makes."""
    send, receive = room(size), room(size)
    send[:] = comm.rank + 1
    receive[:] = 0

    def step(count: int) -> None:
        for _ in range(count):
            if comm.rank == 0:
                comm.Send(send, 1)
                comm.Recv(receive, 1)
            else:
                comm.Recv(receive, 0)
                comm.Send(send, 0)

    return step, lambda: bool((receive == 2 - comm.rank).all())


def numpy_room(size: int) -> Any:
    """Memory of NumPy's."""
    return np.empty(max(size, HUGE), np.uint8)[:size]


def mpi_room(size: int) -> Any:
    """Memory of MPI's."""
    return np.frombuffer(MPI.Alloc_mem(size), np.uint8)


def objects(comm: Any, name: str) -> tuple[Step, Check]:
    """Ping-pong of an object."""
    obj = OBJECTS[name]()
    last = [None]

    def step(count: int) -> None:
        back = None
        for _ in range(count):
            if comm.rank == 0:
                comm.send(obj, 1)
                back = comm.recv(source=1)
            else:
                back = comm.recv(source=0)
                comm.send(back, 0)
        last[0] = back

    return step, lambda: same(last[0], obj)


def out_of_band(comm: Any) -> Any:
    """A communicator whose objects keep their buffers out of the pickle; ompy's do anyway."""
    try:
        from mpi4py.util import pkl5
    except ImportError:
        return comm
    return pkl5.Intracomm(comm)


def same(one: Any, other: Any) -> bool:
    """Whether two of `OBJECTS` are equal."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return bool(np.array_equal(one, other))


def rate(comm: Any, size: int) -> tuple[Step, Check]:
    """Windows of messages one way, each answered by one."""
    send, receive = np.full(size, 7, np.uint8), np.zeros((WINDOW, size), np.uint8)
    answer = np.zeros(1, np.uint8)

    def step(count: int) -> None:
        for _ in range(count):
            if comm.rank == 0:
                MPI.Request.Waitall([comm.Isend(send, 1) for _ in range(WINDOW)])
                comm.Recv(answer, 1)
            else:
                MPI.Request.Waitall([comm.Irecv(receive[place], 0) for place in range(WINDOW)])
                comm.Send(answer, 0)

    return step, lambda: comm.rank == 0 or bool((receive == 7).all())


def allreduce(comm: Any, size: int) -> tuple[Step, Check]:
    """Sums of float64 over all ranks."""
    count_of = max(size // 8, 1)
    send, receive = np.full(count_of, comm.rank + 1.0), np.zeros(count_of)
    total = comm.size * (comm.size + 1) / 2

    def step(count: int) -> None:
        for _ in range(count):
            comm.Allreduce(send, receive)

    return step, lambda: bool((receive == total).all())


def workload(comm: Any, word: str) -> tuple[tuple[Step, Check], int]:
    """What to do and to check, and the parts of a step that a figure is for."""
    kind, _, what = word.partition(":")
    if kind == "object":
        return objects(comm, what), 2
    if kind == "pkl5":
        return objects(out_of_band(comm), what), 2
    size = bytes_of(what)
    if kind == "rate":
        return rate(comm, size), WINDOW
    if kind == "allreduce":
        return allreduce(comm, size), 1
    return buffers(comm, size, mpi_room if kind == "alloc" else numpy_room), 2


def timed(step: Step, check: Check, count: int) -> float:
    """Seconds of `count` steps."""
    begin = perf_counter()
    step(count)
    seconds = perf_counter() - begin
    if not check():
        raise SystemExit(f"rank {MPI.COMM_WORLD.rank}: wrong data")
    return seconds


def figures(comm: Any, word: str, seconds: float) -> list[float]:
    """A figure for each of `PARTS` parts of `seconds`."""
    (step, check), parts = workload(comm, word)
    comm.Barrier()
    once = min(timed(step, check, 1) for _ in range(WARM_UP))
    count = comm.bcast(max(1, min(2000, int(seconds / PARTS / max(once, 1e-7)))))
    found = []
    for _ in range(PARTS):
        comm.Barrier()  # the other's check is no part of it
        found.append(timed(step, check, count) / count / parts)
    return found


def main() -> None:
    """Measure each workload on the command line."""
    seconds, *words = sys.argv[1:]
    comm = MPI.COMM_WORLD
    found = {word: figures(comm, word, float(seconds)) for word in words}
    if comm.rank == 0:
        print(json.dumps({"library": MPI.Get_library_version().strip("\0\n"), "seconds": found}))


if __name__ == "__main__":
    main()
