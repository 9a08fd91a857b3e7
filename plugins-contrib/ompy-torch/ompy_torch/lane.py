"""The thread that brings the collectives of a group on, and what it does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from queue import SimpleQueue

import torch.distributed as dist
from torch import Tensor
from torch.futures import Future

from ompy_torch.work import as_torch_says

Operation = Callable[[], None]


class LaneWork(dist.Work):
    """A collective that a lane does."""

    def __init__(self, call: str, tensors: list[Tensor], timeout: float) -> None:
        """Make one that is still to be done.

        Args:
            call: its name, for errors.
            tensors: the results.
            timeout: seconds that `wait` waits if it is told nothing else.
        """
        super().__init__()
        self.call = call
        self._done = threading.Event()
        self._future: Future[list[Tensor]] | None = None
        self._lock = threading.Lock()
        self._problem: BaseException | None = None
        self._tensors = tensors
        self._timeout = timeout

    def finish(self, problem: BaseException | None = None) -> None:
        """It is over, well or with an error."""
        with self._lock:
            self._problem = problem
            self._done.set()
            future = self._future
        if future is not None:
            self._tell(future)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for its end.

        Args:
            timeout: of this wait; none, or none above 0, for the group's.

        Raises:
            RuntimeError: it failed, or is not over in time.
        """
        seconds = timeout.total_seconds() if timeout is not None else 0
        if not self._done.wait(seconds if seconds > 0 else self._timeout):
            raise dist.DistBackendError(
                f"{self.call}: not over after {seconds if seconds > 0 else self._timeout:g} s: "
                "another rank has not called it, or has ended"
            )
        if self._problem is not None:
            raise self._problem
        return True

    def is_completed(self) -> bool:
        """Whether it is over."""
        return self._done.is_set()

    def is_success(self) -> bool:
        """Whether it is over, and well."""
        return self._done.is_set() and self._problem is None

    def exception(self) -> BaseException | None:
        """Its error, if it is over and failed."""
        return self._problem

    def result(self) -> list[Tensor]:
        """The tensors; they are complete when this is."""
        return self._tensors

    def synchronize(self) -> None:
        """Wait for its end."""
        self.wait()

    def get_future(self) -> Future[list[Tensor]]:
        """A future of the tensors; the same at each call."""
        with self._lock:
            new = self._future is None
            future = self._future = self._future or Future()
            over = self._done.is_set()
        if new and over:
            self._tell(future)
        return future

    def _tell(self, future: Future[list[Tensor]]) -> None:
        if self._problem is None:
            future.set_result(self._tensors)
        elif isinstance(self._problem, Exception):
            future.set_exception(self._problem)  # type: ignore[arg-type]


class Lane:
    """A thread that does the collectives of one group, one after the other, as they were called."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[tuple[LaneWork, Operation] | None] = SimpleQueue()
        self._last: LaneWork | None = None
        self._thread: threading.Thread | None = None

    @property
    def idle(self) -> bool:
        """All that was handed over is done."""
        return self._last is None or self._last.is_completed()

    def submit(self, work: LaneWork, operation: Operation) -> None:
        """Do it after all that came before."""
        if self._thread is None:
            # a daemon: a collective that never ends must not keep the process
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        self._last = work
        self._queue.put((work, operation))

    def close(self, timeout: float) -> None:
        """Do what was handed over, then end; wait no longer than `timeout` seconds for it."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout)
            self._thread = None

    def _serve(self) -> None:
        while (task := self._queue.get()) is not None:
            work, operation = task
            try:
                operation()
            except BaseException as problem:
                work.finish(as_torch_says(problem, work.call))
            else:
                work.finish()
            del task, work, operation  # tensors must not live until the next call
