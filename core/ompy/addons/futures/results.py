"""The results of many calls, one after another: what `map` and `starmap` return."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, as_completed
from itertools import islice, starmap
from typing import Any
from weakref import ref


def check_sizes(chunksize: int, buffersize: int | None, unordered: bool) -> None:
    """Whether the sizes of a `map` make sense.

    Raises:
        ValueError: one is below 1, or there is a buffer size for results as they come.
        TypeError: the buffer size is no integer.
    """
    if chunksize < 1:
        raise ValueError("chunksize must be at least 1")
    if buffersize is None:
        return
    if not isinstance(buffersize, int):
        raise TypeError("buffersize must be an integer or None")
    if buffersize < 1:
        raise ValueError("buffersize must be at least 1, or None")
    if unordered:
        raise ValueError("results as they come (unordered) have no buffersize")


class ChunkCall:
    """Several calls of a function as one task.

    Args:
        function: the function.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *chunk: Any) -> list[Any]:
        """The results of all."""
        return list(starmap(self._function, chunk))


def chunks(iterable: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    """The items in groups of a size; the last may be shorter."""
    iterator = iter(iterable)
    while chunk := tuple(islice(iterator, size)):
        yield chunk


class Calls:
    """Calls of a function that are submitted one after another.

    Args:
        executor: where. It is not kept alive: without it there are no more calls.
        function: what.
        arguments: of each call.
    """

    def __init__(
        self, executor: Executor, function: Callable[..., Any], arguments: Iterator[Any]
    ) -> None:
        self._executor = ref(executor)
        self._function = function
        self._arguments = arguments

    def submit(self, number: int | None) -> Iterator[Future[Any]]:
        """Submit so many, or all; fewer if there are no more."""
        executor = self._executor()
        if executor is not None:
            for arguments in islice(self._arguments, number):
                yield executor.submit(self._function, *arguments)


def begin(
    calls: Calls, timeout: float | None, buffersize: int | None, unordered: bool
) -> Iterator[Any]:
    """Submit calls; their results.

    Args:
        calls: which.
        timeout: seconds from now until the last result is there.
        buffersize: how many are ahead of the results that were taken; None for all.
        unordered: as they come.
    """
    end = None if timeout is None else time.monotonic() + timeout
    futures = deque(calls.submit(buffersize))
    if unordered:
        return _as_they_come(set(futures), end)
    return _in_order(futures, calls, end, buffersize is not None)


def _left(end: float | None) -> float | None:
    return None if end is None else end - time.monotonic()


def _in_order(
    futures: deque[Future[Any]], calls: Calls, end: float | None, more: bool
) -> Iterator[Any]:
    try:
        while futures:
            # nothing here keeps the result, which may be large, while the caller has it
            yield _result(futures, calls, end, more)
    finally:
        for future in futures:
            future.cancel()


def _result(futures: deque[Future[Any]], calls: Calls, end: float | None, more: bool) -> Any:
    """The first result; one more call in its place."""
    future = futures.popleft()
    try:
        result = future.result(_left(end))
    finally:
        future.cancel()
    if more:
        futures.extend(calls.submit(1))
    return result


def _as_they_come(futures: set[Future[Any]], end: float | None) -> Iterator[Any]:
    try:
        for future in as_completed(futures, _left(end)):
            futures.discard(future)
            yield future.result()
    finally:
        for future in futures:
            future.cancel()
