"""What all operations under way have in common, as torch's `Work`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from ompy import MPI
from torch import Tensor
from torch.futures import Future


def as_torch_says(problem: BaseException, call: str) -> BaseException:
    """What torch's callers catch: errors of ompy are `DistBackendError`, a RuntimeError."""
    if isinstance(problem, MPI.Exception):
        said: BaseException = dist.DistBackendError(f"{call}: {problem}")
        said.__cause__ = problem
        return said
    return problem


class DoneWork(dist.Work):
    """An operation that was complete when its call returned."""

    def __init__(self, tensors: list[Tensor]) -> None:
        super().__init__()
        self._tensors = tensors

    def wait(self, timeout: timedelta | None = None) -> bool:
        """True at once."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    def is_success(self) -> bool:
        """True."""
        return True

    def exception(self) -> None:
        """None."""

    def result(self) -> list[Tensor]:
        """The tensors."""
        return self._tensors

    def synchronize(self) -> None:
        """Nothing to do."""

    def get_future(self) -> Future[list[Tensor]]:
        """A future that is complete."""
        future: Future[list[Tensor]] = Future()
        future.set_result(self._tensors)
        return future


class ManyWork(dist.Work):
    """Several operations as one."""

    def __init__(self, works: list[dist.Work]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait for the end of all."""
        for work in self._works:
            work.wait() if timeout is None else work.wait(timeout)
        return True

    def is_completed(self) -> bool:
        """Whether all are over."""
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        """Whether all are over, and well."""
        return all(work.is_success() for work in self._works)

    def get_future(self) -> Future[list[Tensor]]:
        """A future of nothing, complete when all are."""
        whole: Future[Any] = torch.futures.collect_all([work.get_future() for work in self._works])
        return whole
