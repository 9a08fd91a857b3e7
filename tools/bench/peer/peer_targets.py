"""What ompy is to reach, and against whom: the rows of the table of `peers.py`."""

from __future__ import annotations

from typing import Final, NamedTuple

OPEN_MPI: Final = "mpi4py, Open MPI"
MPICH: Final = "mpi4py, MPICH"
PIPE: Final = "multiprocessing.Pipe"
COMPILED: Final = "ompy, compiled"
INTERPRETED: Final = "ompy, interpreted"


class Target(NamedTuple):
    """One row.

    Attributes:
        what: for people.
        word: the workload; `start` for the start and end of a job.
        most: our time by theirs, at most.
        against: the peer.
        ours: compiled or not.
        ranks: processes.
        way: `sm` or `tcp`.
        theirs: the peer's workload, where it is another one.
    """

    what: str
    word: str
    most: float
    against: str = OPEN_MPI
    ours: str = COMPILED
    ranks: int = 2
    way: str = "sm"
    theirs: str = ""


RATE: Final = 1 / 1.2  # a rate of 1.2 is a time of 1 / 1.2

TARGETS: Final = (
    Target("8 B", "send:8", 0.8),
    Target("1 KiB", "send:1k", 0.8),
    Target("64 KiB", "send:64k", 1.0),
    Target("1 MiB", "send:1m", 0.75),
    Target("8 MiB", "send:8m", 0.75),
    Target("64 MiB", "send:64m", 0.9),
    Target("message rate, 8 B, window 64 (time of a message)", "rate:8", RATE),
    Target("Alloc_mem, 64 KiB", "alloc:64k", 0.5),
    Target("Alloc_mem, 1 MiB", "alloc:1m", 0.5),
    Target("Alloc_mem, 8 MiB", "alloc:8m", 0.5),
    Target("object: int", "object:int", 0.7),
    Target("object: dict, 1 KiB", "object:dict1k", 1.0),
    Target("object: array, 1 KiB", "object:array1k", 0.6),
    Target("object: array, 8 MiB", "object:array8m", 0.15),
    Target("object: dict of an 8 MiB array, by pkl5", "object:dict8m", 0.7, theirs="pkl5:dict8m"),
    Target("tcp, 8 B", "send:8", 0.8, way="tcp"),
    Target("tcp, 1 MiB", "send:1m", 1.0, way="tcp"),
    Target("interpreted, 8 B", "send:8", 0.3, PIPE, INTERPRETED),
    Target("allreduce 8 B, 4 ranks", "allreduce:8", 1.0, ranks=4),
    Target("allreduce 1 MiB, 4 ranks", "allreduce:1m", 1.0, ranks=4),
    Target("allreduce 8 B, 8 ranks", "allreduce:8", 1.0, ranks=8),
    Target("allreduce 1 MiB, 8 ranks", "allreduce:1m", 1.0, ranks=8),
    Target("start and end, 4 ranks", "start", 0.2, ranks=4),
    Target("start and end, 16 ranks", "start", 0.2, ranks=16),
    Target("start and end, 4 ranks", "start", 1.0, MPICH, ranks=4),
    Target("start and end, 16 ranks", "start", 1.0, MPICH, ranks=16),
)
IDLE_MOST: Final = 1.0  # percent of a core that a waiting rank uses
