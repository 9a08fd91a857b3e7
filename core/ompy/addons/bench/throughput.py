"""Tasks of executors."""

from __future__ import annotations

import concurrent.futures
import contextlib
import time
from argparse import Namespace
from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final

from ompy import MPI
from ompy.addons.bench import parser_of
from ompy.addons.bench.sizes import Row, Table, add_sizes, measured, sizes_of
from ompy.addons.futures import MPICommExecutor, MPIPoolExecutor
from ompy.addons.futures.world_pool import WorldPool

# mpi4py's: iterations and warm-up of small, large and huge messages; bytes above which one is that
LOOPS: Final = (10, 1, 5, 1, 3, 1, 1 << 16, 1 << 18)
LARGEST: Final = 1 << 20  # bytes; mpi4py's
TASKS: Final = 50  # mpi4py's: for each worker
PRIMING: Final = 0.001  # seconds; mpi4py's: a first task of each worker


def futures(comm: MPI.Intracomm, args: Sequence[str] | None, verbose: bool) -> list[Row]:
    """Have tasks done that return what they are given.

    The workers are all ranks but the first, whether the job was started by `mpi4py.futures` or not.

    Args:
        comm: the ranks.
        args: the command line.
        verbose: what holds when that says nothing.
    """
    options = _options(args, verbose)
    with _executor(comm, options) as executor:
        if executor is None:
            return []
        wanted = options.verbose and (comm.Get_rank() == 0 or options.executor != "mpi")
        return _measured(executor, options, wanted)
    return []


def _options(args: Sequence[str] | None, verbose: bool) -> Namespace:
    parser = parser_of("futures", verbose)
    add_sizes(parser, smallest=0, largest=LARGEST, loops=LOOPS)
    add = parser.add_argument
    kinds = ["mpi", "process", "thread", "interpreter"]
    add("-e", "--executor", default="mpi", choices=kinds, help="executor backend")
    add("-w", "--num-workers", type=int, dest="workers", help="number of workers")
    add(
        "-t",
        "--num-tasks",
        type=int,
        dest="tasks",
        default=TASKS,
        help="number of tasks per worker",
    )
    allocators = ["numpy", "array", "bytes"]
    add("-a", "--allocator", default="numpy", choices=allocators, help="task data allocator")
    add("-c", "--chunksize", type=int, default=1, help="chunksize parameter")
    add("-b", "--backoff", type=float, default=0.0, help="backoff parameter")
    add("-o", "--outband", action="store_true", help="use out-of-band pickle")
    return parser.parse_args(args)


def _executor(comm: MPI.Intracomm, options: Namespace) -> Any:
    """A context of the executor, or of None at a worker."""
    workers = options.workers
    if options.executor == "process":
        return concurrent.futures.ProcessPoolExecutor(workers)
    if options.executor == "thread":
        return concurrent.futures.ThreadPoolExecutor(workers)
    if options.executor == "interpreter":
        pool = getattr(concurrent.futures, "InterpreterPoolExecutor", None)
        if pool is None:
            raise NotImplementedError("InterpreterPoolExecutor needs Python 3.14")
        return pool(workers)
    if WorldPool.active is None and comm.Get_size() > 1:
        return MPICommExecutor(comm, backoff=options.backoff)
    return MPIPoolExecutor(workers, backoff=options.backoff, use_pkl5=options.outband)


def _measured(executor: Any, options: Namespace, wanted: bool) -> list[Row]:
    workers = executor._max_workers
    number = workers * options.tasks
    _run_all(executor, time.sleep, [PRIMING] * workers, options.chunksize)
    name = "MPIPoolExecutor" if options.executor == "mpi" else type(executor).__name__
    title = f"# {name} - {workers} workers, {options.tasks} tasks/worker"
    table = Table(options, title, ("Tasks/s", "9.0f"), wanted)
    allocate = _allocator(options.allocator)
    for size, loop, skip in sizes_of(options):
        data = [allocate(size) for _ in range(number)]
        run = _Run(executor, data, options.chunksize)
        row = measured(size, loop, skip, run)
        table.add_row(row, loop, number / row[1])
    return table.rows


class _Run:
    """All tasks once: seconds."""

    def __init__(self, executor: Any, data: list[Any], chunksize: int) -> None:
        self._arguments = executor, _identity, data, chunksize

    def __call__(self) -> float:
        started = time.perf_counter()
        _run_all(*self._arguments)
        return time.perf_counter() - started


def _run_all(executor: Any, task: Callable[..., Any], data: list[Any], chunksize: int) -> None:
    for _ in executor.map(task, data, chunksize=chunksize):
        pass


def _identity(argument: Any) -> Any:
    return argument


def _allocator(kind: str) -> Callable[[int], Any]:
    if kind == "numpy":
        with contextlib.suppress(ImportError):
            from numpy import zeros

            return lambda size: zeros(size, "B")
    return bytes if kind == "bytes" else lambda size: array("B", bytes(size))
