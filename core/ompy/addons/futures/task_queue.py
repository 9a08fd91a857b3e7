"""Between the threads of a process: tasks that wait, and calls of MPI one at a time."""

from __future__ import annotations

import functools
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, cast

from ompy import MPI

BACKOFF: Final = 0.001  # seconds; reference mpi4py.md 8: the default of `backoff`
_STEPS: Final = 1024  # arbitrary: the first pause is so many times as short as the longest


def environment_value(name: str, default: Any = None) -> Any:
    """The value of MPI4PY_FUTURES_<name>."""
    return os.environ.get(f"MPI4PY_FUTURES_{name}", default)


class Backoff:
    """How long to wait for what has not come yet: ever longer, up to a limit.

    Args:
        seconds: the limit.
    """

    def __init__(self, seconds: float = BACKOFF) -> None:
        self._longest = max(0.0, float(seconds))
        self._pause = 0.0

    def reset(self) -> None:
        """Something came: begin with short pauses again."""
        self._pause = 0.0

    def next_pause(self) -> float:
        """Seconds to wait now."""
        pause = self._pause
        self._pause = min(self._longest, max(self._longest / _STEPS, 2 * pause))
        return pause


class TaskQueue:
    """Tasks of an executor that no worker has yet; None is the end of them."""

    def __init__(self) -> None:
        self._items: deque[Any] = deque()
        self._changed = threading.Condition(threading.RLock())

    def put_item(self, item: Any) -> None:
        """Add at the end. May be called while an object is destroyed, in any thread."""
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    def pop(self) -> Any:
        """Take the first.

        Raises:
            IndexError: there is none.
        """
        return self._items.popleft()

    def sleep(self, seconds: float | None) -> None:
        """Wait until there is something, or so long."""
        with self._changed:
            if not self._items:
                self._changed.wait(seconds)

    def __len__(self) -> int:
        return len(self._items)


class Serialized(Protocol):
    """`serialized`, which has a lock."""

    lock: threading.Lock | None

    def __call__(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """A function that is called under the lock."""
        ...


def _serialized(function: Callable[..., Any], /) -> Callable[..., Any]:
    """A function that is called under the lock, where MPI is not for several threads at once."""

    @functools.wraps(function)
    def wrapper(*arguments: Any, **named: Any) -> Any:
        lock = serialized.lock
        if lock is None:
            return function(*arguments, **named)
        with lock:
            return function(*arguments, **named)

    return wrapper


_serialized.lock = None  # type: ignore[attr-defined]
serialized: Final = cast("Serialized", _serialized)
_settled: list[int] = []


def setup_mpi_threads() -> None:
    """Learn how many threads may call MPI. A pool's own thread does."""
    if _settled:
        return
    level = MPI.Query_thread()
    _settled.append(level)
    if level < MPI.THREAD_MULTIPLE:
        serialized.lock = threading.Lock()
    if level < MPI.THREAD_SERIALIZED:
        warnings.warn(
            "MPI was initialised for one thread (mpi4py.rc: threads, thread_level); mpi4py.futures "
            "calls it from another one too",
            RuntimeWarning,
            stacklevel=3,
        )
