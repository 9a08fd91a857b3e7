"""The benchmark loops, as one rank runs them: OSU-like, each checking the data it moved.

Started by `ompy bench` as `python -m ompy.cli.measuring.benchmark_loops NAME SIZES ROUNDS`; rank 0
gives its rows. A row is a label and the times of the rounds, in seconds per operation.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from time import perf_counter
from typing import Any, Final

from ompy import MPI
from ompy.cli.own_jobs import tell_command
from ompy.compiled_loader import is_compiled
from ompy.data.convertor import allocate_memory

WINDOW: Final = 64  # messages under way; reference performance.md 1a, as the OSU loops
ROUND_SECONDS: Final = 0.05  # arbitrary: long against the clock, short against other work
Row = tuple[str, list[float]]


def _repeats(once: Callable[[], None], comm: MPI.Intracomm) -> int:
    """How often to repeat `once` in a round, the same number on every rank."""
    once()
    begin = perf_counter()
    once()
    took = comm.allreduce(perf_counter() - begin, op=MPI.MAX)
    return max(1, min(10_000, int(ROUND_SECONDS / max(took, 1e-7))))


def _rounds(once: Callable[[], None], count: int, comm: MPI.Intracomm) -> list[float]:
    """Seconds per call of `once`, for each of `count` rounds."""
    repeats = _repeats(once, comm)
    times = []
    for _ in range(count):
        comm.Barrier()
        begin = perf_counter()
        for _ in range(repeats):
            once()
        times.append((perf_counter() - begin) / repeats)
    return times


def _filled(size: int, value: int) -> memoryview:
    memory = allocate_memory(size)
    memory[:] = bytes([value]) * size
    return memory


def _check(memory: memoryview, value: int) -> None:
    """Stop the job if the bytes that arrived are not the ones that were sent."""
    if bytes(memory) != bytes([value]) * len(memory):
        raise AssertionError(f"wrong data in a buffer of {len(memory)} bytes")


def latency(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """One-way time of `Send` and `Recv` between two ranks."""
    partner = 1 - comm.rank
    for size in sizes:
        send, receive = _filled(size, 1 + comm.rank), _filled(size, 0)

        def once(send: memoryview = send, receive: memoryview = receive) -> None:
            if comm.rank == 0:
                comm.Send(send, partner)
                comm.Recv(receive, partner)
            else:
                comm.Recv(receive, partner)
                comm.Send(send, partner)

        times = _rounds(once, rounds, comm)
        _check(receive, 1 + partner)
        yield f"{size}", [time / 2 for time in times]


def bandwidth(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of one message among a window of them from rank 0 to rank 1."""
    partner = 1 - comm.rank
    acknowledge = bytearray(1)
    for size in sizes:
        send, receive = _filled(size, 7), _filled(size, 0)

        def once(send: memoryview = send, receive: memoryview = receive) -> None:
            if comm.rank == 0:
                MPI.Request.Waitall([comm.Isend(send, partner) for _ in range(WINDOW)])
                comm.Recv(acknowledge, partner)
            else:
                MPI.Request.Waitall([comm.Irecv(receive, partner) for _ in range(WINDOW)])
                comm.Send(acknowledge, partner)

        times = _rounds(once, rounds, comm)
        if comm.rank == 1:
            _check(receive, 7)
        yield f"{size}", [time / WINDOW for time in times]


def objects(comm: MPI.Intracomm, _sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """One-way time of `send` and `recv` of Python objects between two ranks."""
    partner = 1 - comm.rank
    for label, value in _objects():
        got: list[Any] = [None]

        def once(value: Any = value, got: list[Any] = got) -> None:
            if comm.rank == 0:
                comm.send(value, partner)
                got[0] = comm.recv(source=partner)
            else:
                got[0] = comm.recv(source=partner)
                comm.send(got[0], partner)

        times = _rounds(once, rounds, comm)
        if not _same(got[0], value):
            raise AssertionError(f"{label} arrived changed")
        yield label, [time / 2 for time in times]


def _objects() -> Iterator[tuple[str, Any]]:
    yield "int", 12345
    yield "bytes, 1 KiB", bytes(range(256)) * 4
    yield "dict, 45 floats", {f"key {index}": index / 7 for index in range(45)}
    yield "bytearray, 8 MiB", bytearray(range(256)) * 32_768
    try:
        import numpy as np
    except ImportError:
        return
    yield "ndarray, 1 KiB", np.arange(128.0)
    yield "ndarray, 8 MiB", np.arange(1_048_576.0)
    yield "dict of ndarray, 8 MiB", {"field": np.arange(1_048_576.0)}


def _same(left: Any, right: Any) -> bool:
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    equal = left == right
    return bool(equal.all()) if hasattr(equal, "all") else bool(equal)


def _arithmetic() -> None:
    """Have the reductions done as in programs that use NumPy, which most of them do."""
    with suppress(ImportError):
        import numpy as np  # noqa: F401


def allreduce(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Allreduce` of doubles over all ranks."""
    _arithmetic()
    for size in sizes:
        count = max(1, size // 8)
        send = array("d", [comm.rank + 1.0]) * count
        receive = array("d", [0.0]) * count
        times = _rounds(lambda s=send, r=receive: comm.Allreduce(s, r), rounds, comm)  # type: ignore[misc]
        total = comm.size * (comm.size + 1) / 2
        if receive[0] != total or receive[-1] != total:
            raise AssertionError(f"a sum of {count} doubles is wrong")
        yield f"{count * 8}", times


def reduce(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Reduce` of doubles to rank 0, one after the other."""
    _arithmetic()
    for size in sizes:
        count = max(1, size // 8)
        send = array("d", [comm.rank + 1.0]) * count
        receive = array("d", [0.0]) * count
        times = _rounds(lambda s=send, r=receive: comm.Reduce(s, r), rounds, comm)  # type: ignore[misc]
        total = comm.size * (comm.size + 1) / 2
        if comm.rank == 0 and (receive[0] != total or receive[-1] != total):
            raise AssertionError(f"a sum of {count} doubles is wrong")
        yield f"{count * 8}", times


def barrier(comm: MPI.Intracomm, _sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Barrier`."""
    yield "-", _rounds(comm.Barrier, rounds, comm)


def broadcast(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Bcast` from rank 0, one after the other."""
    for size in sizes:
        both = _filled(size, 0 if comm.rank else 7)
        times = _rounds(lambda b=both: comm.Bcast(b), rounds, comm)  # type: ignore[misc]
        _check(both, 7)
        yield f"{size}", times


def allgather(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Allgather` of so many bytes from every rank."""
    for size in sizes:
        send, receive = _filled(size, 1 + comm.rank), _filled(size * comm.size, 0)
        times = _rounds(lambda s=send, r=receive: comm.Allgather(s, r), rounds, comm)  # type: ignore[misc]
        for rank in range(comm.size):
            _check(receive[rank * size : (rank + 1) * size], 1 + rank)
        yield f"{size}", times


def alltoall(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Alltoall` of so many bytes for every rank."""
    for size in sizes:
        send, receive = (_filled(size * comm.size, value) for value in (1 + comm.rank, 0))
        times = _rounds(lambda s=send, r=receive: comm.Alltoall(s, r), rounds, comm)  # type: ignore[misc]
        for rank in range(comm.size):
            _check(receive[rank * size : (rank + 1) * size], 1 + rank)
        yield f"{size}", times


def puts(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Put` and `Flush` from rank 0 into rank 1's window."""

    def put(win: MPI.Win, memory: memoryview) -> None:
        win.Put(memory, 1)
        win.Flush(1)

    for size in sizes:
        times, theirs = _accessed(comm, put, _filled(size, 7), rounds)
        _check(theirs, 7)
        yield f"{size}", times


def gets(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Get` and `Flush` by rank 0 out of rank 1's window."""

    def get(win: MPI.Win, memory: memoryview) -> None:
        win.Get(memory, 1)
        win.Flush(1)

    for size in sizes:
        memory = _filled(size, 7)
        times, theirs = _accessed(comm, get, memory, rounds)
        if comm.rank == 0:
            _check(memory, 0)  # what a new window has
        _check(theirs, 0)
        yield f"{size}", times


def fetches(comm: MPI.Intracomm, _sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Fetch_and_op` and `Flush` on a 64-bit integer of rank 1's window."""
    one, was = array("q", [1]), array("q", [0])
    calls = 0

    def fetch(win: MPI.Win, _memory: memoryview) -> None:
        nonlocal calls
        calls += 1
        win.Fetch_and_op(one, was, 1)
        win.Flush(1)

    times, theirs = _accessed(comm, fetch, _filled(one.itemsize, 0), rounds)
    wanted = comm.bcast(calls, 0)
    found = theirs.cast("q")[0] if comm.rank else was[0] + 1
    if found != wanted:
        raise AssertionError("a sum is wrong")
    yield "8", times


def _accessed(
    comm: MPI.Intracomm,
    access: Callable[[MPI.Win, memoryview], None],
    memory: memoryview,
    rounds: int,
) -> tuple[list[float], memoryview]:
    """Times of rank 0's accesses; rank 1 waits in a barrier. And a copy of rank 1's window."""
    win = MPI.Win.Allocate(len(memory), 1, comm=comm)
    win.Lock_all()

    def once() -> None:
        if comm.rank == 0:
            access(win, memory)

    times = _rounds(once, rounds, comm)
    win.Unlock_all()
    comm.Barrier()
    theirs = _filled(len(memory), 0)
    theirs[:] = memoryview(win.tomemory()) if comm.rank == 1 else memory
    win.Free()
    return times, theirs


def fences(comm: MPI.Intracomm, sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Time of `Put` to the next rank and `Fence`, by all ranks."""
    target = (comm.rank + 1) % comm.size
    for size in sizes:
        memory = _filled(size, 1 + comm.rank)
        win = MPI.Win.Allocate(size, 1, comm=comm)
        win.Fence()

        def once(win: MPI.Win = win, memory: memoryview = memory) -> None:
            win.Put(memory, target)
            win.Fence()

        times = _rounds(once, rounds, comm)
        _check(memoryview(win.tomemory()), 1 + (comm.rank - 1) % comm.size)
        win.Free()
        yield f"{size}", times


LOOPS: Final = {
    "latency": latency,
    "bandwidth": bandwidth,
    "rate": bandwidth,
    "object": objects,
    "allreduce": allreduce,
    "reduce": reduce,
    "barrier": barrier,
    "bcast": broadcast,
    "allgather": allgather,
    "alltoall": alltoall,
    "put": puts,
    "get": gets,
    "fetch": fetches,
    "fence": fences,
}


def main() -> None:
    """Run one loop on this rank; see the module's docstring for the arguments."""
    name, sizes, rounds = sys.argv[1:]
    comm = MPI.COMM_WORLD
    rows = list(LOOPS[name](comm, json.loads(sizes), int(rounds)))
    if comm.rank == 0:
        tell_command({"rows": rows, "form": form()})


def form() -> str:
    """Whether the hot modules of this process are compiled."""
    import ompy.engine.base

    return "compiled" if is_compiled(ompy.engine.base.__name__) else "interpreted"


if __name__ == "__main__":
    main()
