"""The interface of `multiprocessing.pool` over an executor: `mpi4py.util.pool`."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent import futures as standard
from operator import length_hint
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from ompy.addons import futures

__all__ = ["ApplyResult", "AsyncResult", "MapResult", "Pool", "ThreadPool"]

_TASKS_EACH: Final = 4  # arbitrary: as in multiprocessing
_GATHERING: Final = 4  # arbitrary: threads that put lists of results together, at most
_Callback = Callable[[Any], Any] | None
_T = TypeVar("_T")


class Pool:
    """Workers as `multiprocessing.Pool` has them.

    Args:
        processes: how many; see `MPIPoolExecutor`.
        initializer: called once at each worker.
        initargs: what it gets.
        kwargs: as for `MPIPoolExecutor`. `maxtasksperchild` and `context` are of no effect, and
            warn (UserWarning).

    Raises:
        ValueError: `processes` is below 1.
        TypeError: the initializer cannot be called.
    """

    Executor: ClassVar[Any] = futures.MPIPoolExecutor

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **kwargs: Any,
    ) -> None:
        if processes is not None and processes < 1:
            raise ValueError("processes must be at least 1")
        if initializer is not None and not callable(initializer):
            raise TypeError("the initializer cannot be called")
        for name in ("maxtasksperchild", "context"):
            if kwargs.pop(name, None) is not None:
                warnings.warn(f"argument {name!r} is not supported", stacklevel=2)
        self._lock = threading.Lock()
        self._collectors: standard.ThreadPoolExecutor | None = None
        self.executor = self.Executor(
            processes, initializer=initializer, initargs=initargs, **kwargs
        )

    def apply(
        self,
        func: Callable[..., _T],
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] | None = None,
    ) -> _T:
        """Call a function at a worker and wait for its result."""
        return self.executor.submit(func, *args, **(kwds or {})).result()  # type: ignore[no-any-return]

    def apply_async(
        self,
        func: Callable[..., _T],
        args: Iterable[Any] = (),
        kwds: Mapping[str, Any] | None = None,
        callback: _Callback = None,
        error_callback: _Callback = None,
    ) -> ApplyResult[_T]:
        """Have a function called at a worker.

        Args:
            func: the function.
            args: its arguments.
            kwds: those that have names.
            callback: called with the result.
            error_callback: called with the exception.
        """
        future = self.executor.submit(func, *args, **(kwds or {}))
        return ApplyResult(future, callback, error_callback)

    def map(
        self, func: Callable[..., _T], iterable: Iterable[Any], chunksize: int | None = None
    ) -> list[_T]:
        """As `list(map(func, iterable))`.

        Args:
            func: the function.
            iterable: its arguments.
            chunksize: calls that are one task; a quarter of a worker's share, if nothing is said.
        """
        items, size = self._in_chunks(iterable, chunksize)
        return list(self.imap(func, items, size))

    def map_async(
        self,
        func: Callable[..., _T],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: _Callback = None,
        error_callback: _Callback = None,
    ) -> MapResult[_T]:
        """As `map`, and do not wait."""
        items, size = self._in_chunks(iterable, chunksize)
        return self._gathered(self.imap(func, items, size), callback, error_callback)

    def imap(
        self, func: Callable[..., _T], iterable: Iterable[Any], chunksize: int = 1
    ) -> Iterator[_T]:
        """As `map(func, iterable)`: results one after another."""
        return self.executor.map(func, iterable, chunksize=chunksize)  # type: ignore[no-any-return]

    def imap_unordered(
        self, func: Callable[..., _T], iterable: Iterable[Any], chunksize: int = 1
    ) -> Iterator[_T]:
        """As `imap`, in the order in which results come."""
        return self.executor.map(  # type: ignore[no-any-return]
            func, iterable, chunksize=chunksize, unordered=True
        )

    def starmap(
        self,
        func: Callable[..., _T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
    ) -> list[_T]:
        """As `list(itertools.starmap(func, iterable))`; `chunksize` as in `map`."""
        items, size = self._in_chunks(iterable, chunksize)
        return list(self.istarmap(func, items, size))

    def starmap_async(
        self,
        func: Callable[..., _T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: _Callback = None,
        error_callback: _Callback = None,
    ) -> MapResult[_T]:
        """As `starmap`, and do not wait."""
        items, size = self._in_chunks(iterable, chunksize)
        return self._gathered(self.istarmap(func, items, size), callback, error_callback)

    def istarmap(
        self, func: Callable[..., _T], iterable: Iterable[Iterable[Any]], chunksize: int = 1
    ) -> Iterator[_T]:
        """As `itertools.starmap(func, iterable)`: results one after another."""
        return self.executor.starmap(  # type: ignore[no-any-return]
            func, iterable, chunksize=chunksize
        )

    def istarmap_unordered(
        self, func: Callable[..., _T], iterable: Iterable[Iterable[Any]], chunksize: int = 1
    ) -> Iterator[_T]:
        """As `istarmap`, in the order in which results come."""
        return self.executor.starmap(  # type: ignore[no-any-return]
            func, iterable, chunksize=chunksize, unordered=True
        )

    def close(self) -> None:
        """No more tasks will come."""
        self.executor.shutdown(wait=False)

    def terminate(self) -> None:
        """No more tasks will come, and those that no worker has yet are cancelled."""
        self.executor.shutdown(wait=False, cancel_futures=True)

    def join(self) -> None:
        """Wait until all is done."""
        self.executor.shutdown(wait=True)
        with self._lock:
            collectors, self._collectors = self._collectors, None
        if collectors is not None:
            collectors.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def _in_chunks(
        self, iterable: Iterable[Any], chunksize: int | None
    ) -> tuple[Iterable[Any], int]:
        """The items, and how many of them are one task."""
        if chunksize is not None:
            return iterable, chunksize
        number = length_hint(iterable)
        if not number:
            iterable = list(iterable)
            number = len(iterable)
        workers = getattr(self.executor, "_max_workers", 0) or 1
        return iterable, max(1, -(-number // (workers * _TASKS_EACH)))

    def _gathered(
        self, found: Iterator[_T], callback: _Callback, error_callback: _Callback
    ) -> MapResult[_T]:
        """Results as a list that is not there yet: a thread puts it together."""
        with self._lock:
            if self._collectors is None:
                threads = min(_GATHERING, os.cpu_count() or 1)
                self._collectors = standard.ThreadPoolExecutor(threads)
            future = self._collectors.submit(list, found)
        return MapResult(future, callback, error_callback)


class ThreadPool(Pool):
    """The same with threads of this process for workers."""

    Executor: ClassVar[Any] = futures.ThreadPoolExecutor


class AsyncResult(Generic[_T]):
    """A result that is not there yet.

    Args:
        future: of the result.
        callback: called with it.
        error_callback: called with the exception.

    Attributes:
        future: as given.
    """

    def __init__(
        self,
        future: standard.Future[_T],
        callback: _Callback = None,
        error_callback: _Callback = None,
    ) -> None:
        self.future = future
        self._callbacks = callback, error_callback
        self._ready = threading.Event()
        future.add_done_callback(self._end)

    def _end(self, future: standard.Future[_T]) -> None:
        problem = TimeoutError() if future.cancelled() else future.exception()
        good, bad = self._callbacks
        try:
            if problem is None and good is not None:
                good(future.result())
            elif problem is not None and bad is not None:
                bad(problem)
        finally:
            self._ready.set()

    def get(self, timeout: float | None = None) -> _T:
        """Wait for the result.

        Args:
            timeout: seconds to wait at most.

        Raises:
            TimeoutError: it is not there by then, or never will be as it was cancelled.
            BaseException: what the function raised.
        """
        if not self._ready.wait(timeout):
            raise TimeoutError
        try:
            return self.future.result()
        except standard.CancelledError:
            raise TimeoutError("the pool was terminated") from None

    def wait(self, timeout: float | None = None) -> None:
        """Wait until the result is there, or so many seconds."""
        self._ready.wait(timeout)

    def ready(self) -> bool:
        """Whether the result is there."""
        return self._ready.is_set()

    def successful(self) -> bool:
        """Whether the function returned.

        Raises:
            ValueError: the result is not there yet.
        """
        if not self.ready():
            raise ValueError(f"{self!r} is not ready")
        return not self.future.cancelled() and self.future.exception() is None


class ApplyResult(AsyncResult[_T]):
    """The result of one call."""


class MapResult(AsyncResult[list[_T]]):
    """The results of many calls, in a list."""
