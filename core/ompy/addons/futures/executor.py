"""Executors: `concurrent.futures.Executor` over ranks, or threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from concurrent.futures import Future as StandardFuture
from typing import Any, ClassVar, Final, ParamSpec, Self, TypeVar

from ompy.addons.futures import results
from ompy.addons.futures.pools import Pool, ThreadPool
from ompy.addons.futures.spawned import ServicePool, SpawnedPool, check_not_recursive
from ompy.addons.futures.task_queue import environment_value
from ompy.addons.futures.world_pool import WorldPool

_P = ParamSpec("_P")
_T = TypeVar("_T")

_YES: Final = ("true", "yes", "on", "y", "1")
_NO: Final = ("false", "no", "off", "n", "0")


class MPIPoolExecutor(Executor):
    """Calls functions at worker ranks.

    Under `python -m mpi4py.futures` the workers are all ranks but the first. Elsewhere they are
    processes that are started for the executor, and end with it.

    Args:
        max_workers: how many are started; `MPI4PY_FUTURES_MAX_WORKERS` if nothing is said, else as
            many as the job has room for. Of no effect where the workers are ranks of the job.
        initializer: called once at each worker, before any task.
        initargs: what it gets.
        kwargs: for the workers. `main`: run this program's main module, True if nothing is said;
            `globals`: names that are in it before. `path`: folders to look for modules in; `wdir`:
            directory to work in; `env`: environment variables. `backoff`: seconds between two looks
            for results. For those that are started: `python_exe`, `python_args`, and `mpi_info` for
            `Spawn`. `service`: none are started; they wait for this one under a service's name, or
            at a host and port. Of no effect: `use_pkl5`, as no buffer is copied into a pickle.

    Raises:
        ValueError: `max_workers` is below 1.
        TypeError: the initializer cannot be called.
    """

    Future: ClassVar[type[StandardFuture[Any]]] = StandardFuture

    def __init__(
        self,
        max_workers: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        if max_workers is not None:
            kwargs["max_workers"] = int(max_workers)
            if kwargs["max_workers"] < 1:
                raise ValueError("max_workers must be at least 1")
        if initializer is not None:
            if not callable(initializer):
                raise TypeError("the initializer cannot be called")
            kwargs["initializer"], kwargs["initargs"] = initializer, tuple(initargs)
        if kwargs.get("use_pkl5") is None:
            _check_pkl5(environment_value("USE_PKL5"))
        self._options = kwargs
        self._lock = threading.Lock()
        self._shutdown = False
        self._broken: str | None = None
        self._pool: Pool | None = None

    def _make_pool(self) -> Pool:
        """What will do the tasks."""
        if WorldPool.active is not None:
            return WorldPool.active.pool_for(self)
        check_not_recursive()
        return ServicePool(self) if self._options.get("service") else SpawnedPool(self)

    def _started(self) -> Pool:
        """What does the tasks; the lock is held."""
        if self._pool is None:
            self._pool = self._make_pool()
        return self._pool

    @property
    def num_workers(self) -> int:
        """How many workers there are; 0 after the end. Waits until they are ready."""
        with self._lock:
            if self._broken is not None or self._shutdown:
                return 0
            pool = self._started()
            pool.wait_ready()
            return 0 if self._broken is not None else pool.size

    @property
    def _max_workers(self) -> int:
        """As executors of the standard library have it; others look for it."""
        return self.num_workers

    def bootup(self, wait: bool = True) -> Self:
        """Get the workers ready now, rather than at the first task.

        Args:
            wait: until they are.

        Raises:
            RuntimeError: it was shut down.
        """
        with self._lock:
            if self._shutdown:
                raise RuntimeError("cannot bootup after shutdown")
            pool = self._started()
            if wait:
                pool.wait_ready()
        return self

    def submit(
        self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs
    ) -> StandardFuture[_T]:
        """Have a function called at a worker.

        Args:
            fn: the function. It is pickled, as are its arguments and what it returns or raises.
            args: its arguments.
            kwargs: those that have names.

        Raises:
            BrokenExecutor: the initializer failed, or a worker has ended.
            RuntimeError: it was shut down.
        """
        with self._lock:
            if self._broken is not None:
                raise BrokenExecutor(self._broken)
            if self._shutdown:
                raise RuntimeError("cannot submit after shutdown")
            pool = self._started()
            future: StandardFuture[_T] = self.Future()
            pool.push(future, (fn, args, kwargs))
            return future

    def map(
        self,
        fn: Callable[..., _T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[_T]:
        """As the built-in `map`, at the workers.

        Args:
            fn: the function.
            iterables: one for each of its arguments. They are read at once, unless there is a
                buffer size.
            timeout: seconds from now until the last result is there.
            chunksize: how many calls are one task.
            buffersize: no more tasks than so many are ahead of the results that were taken.
            unordered: give results as they come.

        Raises:
            ValueError: a size is below 1, or there is a buffer size for results as they come.
            TypeError: the buffer size is no integer.
        """
        return self.starmap(
            fn, zip(*iterables, strict=False), timeout, chunksize, buffersize, unordered
        )

    def starmap(
        self,
        fn: Callable[..., _T],
        iterable: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
        unordered: bool = False,
    ) -> Iterator[_T]:
        """As `itertools.starmap`, at the workers.

        Args:
            fn: the function.
            iterable: the arguments of each call, together.
            timeout: as in `map`.
            chunksize: as in `map`.
            buffersize: as in `map`.
            unordered: as in `map`.

        Raises:
            ValueError: as in `map`.
            TypeError: as in `map`.
        """
        results.check_sizes(chunksize, buffersize, unordered)
        if chunksize > 1:
            calls = results.Calls(self, results.ChunkCall(fn), results.chunks(iterable, chunksize))
            found = results.begin(calls, timeout, buffersize, unordered)
            return (each for chunk in found for each in chunk)
        return results.begin(
            results.Calls(self, fn, iter(iterable)), timeout, buffersize, unordered
        )

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """No more tasks will come. May be called more than once.

        Args:
            wait: until all are done.
            cancel_futures: cancel those that no worker has yet.
        """
        with self._lock:
            pool = self._pool
            if pool is not None and not self._shutdown:
                pool.finish()
            self._shutdown = True
            if pool is not None and cancel_futures:
                pool.cancel()
            if wait:
                self._pool = None
        if pool is not None and wait:
            pool.join()


class ThreadPoolExecutor(MPIPoolExecutor):
    """The same with threads of this process for workers; one, if nothing else is said."""

    def _make_pool(self) -> Pool:
        return ThreadPool(self)


class ProcessPoolExecutor(MPIPoolExecutor):
    """The same with processes of its own, also under `python -m mpi4py.futures`."""

    def _make_pool(self) -> Pool:
        check_not_recursive()
        return SpawnedPool(self)


def _check_pkl5(value: str | None) -> None:
    if value is not None and value.lower() not in (*_YES, *_NO):
        warnings.warn(
            f"environment variable MPI4PY_FUTURES_USE_PKL5: unexpected value {value!r}",
            RuntimeWarning,
            stacklevel=3,
        )
