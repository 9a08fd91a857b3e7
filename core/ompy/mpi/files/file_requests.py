"""Requests of reads and writes of files."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any

from ompy.compiled import ccall, cclass
from ompy.data.errors import MPIError
from ompy.data.request import Request as Operation
from ompy.mpi.files.file_state import FileState
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.point_to_point.status import Status


@cclass
class FileRequestState(RequestState):
    """A read or write of a file under way; what fails is the file's error."""

    _file: FileState
    __slots__ = tuple(__annotations__)

    def __init__(self, file: FileState, operation: Operation, keep: object) -> None:
        RequestState.__init__(self, file.comm, operation, keep)
        self._file = file

    @ccall
    def fill(self, status: Status) -> None:
        """Say how many bytes of memory were read or written."""
        describe_transfer(status, self.operation.received)
        status.Set_error(self.operation.error)

    @ccall
    def result(self, status: Status | None) -> Any:
        """The operation is complete.

        Raises:
            MPIException: it failed.
        """
        if status is not None:
            self.fill(status)
        if self.operation.error:
            raise self._file.raised(MPIError(self.operation.error, self.operation.detail))
        return None

    def cancel(self) -> None:
        """Nothing: what is read or written cannot be taken back."""


@ccall
def describe_transfer(status: Any, size: int) -> None:
    """Have a status say how many bytes of memory were read or written."""
    status._clear()
    status.count = size
