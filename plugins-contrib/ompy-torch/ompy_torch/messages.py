"""Messages under way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import torch.distributed as dist
from ompy import MPI
from torch import Tensor
from torch.futures import Future

from ompy_torch.work import as_torch_says

Operation = Callable[[], None]
_NS_PER_S: Final = 10**9  # POSIX: tv_nsec of a second


class MessageWork(dist.Work):
    """A message that is sent or received."""

    def __init__(
        self,
        call: str,
        request: Any,
        tensors: list[Tensor],
        timeout: float,
        settle: Operation | None = None,
    ) -> None:
        """Take over a request.

        Args:
            call: the name of the call, for errors.
            request: ompy's.
            tensors: sent or received.
            timeout: seconds that `wait` waits if it is told nothing else.
            settle: called once at the end, for what is to be copied then.
        """
        super().__init__()
        self._call = call
        self._over = False
        self._problem: BaseException | None = None
        self._request = request
        self._settle = settle
        self._status = MPI.Status()
        self._tensors = tensors
        self._timeout = timeout
        self._lock = threading.Lock()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the tensor may be used again.

        Args:
            timeout: of this wait; none, or none above 0, for the group's.

        Raises:
            RuntimeError: it failed, or is not over in time.
        """
        given = timeout.total_seconds() if timeout is not None else 0
        seconds = given if given > 0 else self._timeout
        state = self._request._inner  # noqa: SLF001 - requests of MPI know no timeout
        waits = not self._over and state is not None and not state.operation.complete
        if waits and not state.engine.wait(state.operation, int(seconds * _NS_PER_S)):
            raise dist.DistBackendError(f"{self._call}: not over after {seconds:g} s")
        self._end(wait=True)
        if self._problem is not None:
            raise self._problem
        return True

    def _end(self, *, wait: bool) -> None:
        """Take up that it is over, once."""
        with self._lock:
            if self._over:
                return
            try:
                if wait:
                    self._request.Wait(self._status)
                elif not self._request.Test(self._status):
                    return
                if self._settle is not None:
                    self._settle()
            except MPI.Exception as problem:
                self._problem = as_torch_says(problem, self._call)
            self._over = True

    def is_completed(self) -> bool:
        """Whether it is over."""
        self._end(wait=False)
        return self._over

    def is_success(self) -> bool:
        """Whether it is over, and well."""
        return self.is_completed() and self._problem is None

    def exception(self) -> BaseException | None:
        """Its error, if it is over and failed."""
        return self._problem

    def source_rank(self) -> int:
        """The rank in the group that a message came from, once it is over."""
        return int(self._status.Get_source())

    _source_rank = source_rank

    def result(self) -> list[Tensor]:
        """The tensors; they are complete when this is."""
        return self._tensors

    def synchronize(self) -> None:
        """Wait for its end."""
        self.wait()

    def get_future(self) -> Future[list[Tensor]]:
        """A future of the tensors, for which a thread waits."""
        future: Future[list[Tensor]] = Future()

        def tell() -> None:
            try:
                self.wait()
            except Exception as problem:
                future.set_exception(problem)  # type: ignore[arg-type]
            else:
                future.set_result(self._tensors)

        threading.Thread(target=tell, name="ompy_torch future", daemon=True).start()
        return future
