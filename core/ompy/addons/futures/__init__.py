"""Pools of worker ranks: `mpi4py.futures`, over `concurrent.futures`.

See the README of `ompy.addons`. Importing this imports MPI and starts no worker.
"""

from __future__ import annotations

from concurrent.futures import (
    ALL_COMPLETED,
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    TimeoutError,  # noqa: A004
    as_completed,
    wait,
)

from ompy.addons.futures.combining import collect, compose
from ompy.addons.futures.executor import (
    MPIPoolExecutor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from ompy.addons.futures.members import MPICommExecutor
from ompy.addons.futures.worker import get_comm_workers

__all__ = [
    "ALL_COMPLETED",
    "FIRST_COMPLETED",
    "FIRST_EXCEPTION",
    "BrokenExecutor",
    "CancelledError",
    "Executor",
    "Future",
    "InvalidStateError",
    "MPICommExecutor",
    "MPIPoolExecutor",
    "ProcessPoolExecutor",
    "ThreadPoolExecutor",
    "TimeoutError",
    "as_completed",
    "collect",
    "compose",
    "get_comm_workers",
    "wait",
]
