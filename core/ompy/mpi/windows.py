"""`MPI.Win`: the names are there, windows are not."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, ClassVar, Final, NoReturn, Self

from ompy.data.errors import ERR_WIN
from ompy.mpi.attributes import Attributed
from ompy.mpi.errors import MPIException
from ompy.mpi.unsupported import absent

_WHAT: Final = "windows (one-sided communication)"


class Win(Attributed):
    """Memory that other processes can reach. Not available: only null handles exist."""

    __slots__ = ()
    _kind: ClassVar[str] = "Win"

    def __new__(cls, win: Win | None = None) -> Self:
        """A null handle."""
        return cls._make(win)

    def _attributes(self) -> NoReturn:
        raise MPIException(ERR_WIN, "the window is null (WIN_NULL)")

    def Free(self) -> None:
        """Free it."""
        self._attributes()

    def Get_errhandler(self) -> Any:
        """Its error handler."""
        self._attributes()

    def Set_errhandler(self, errhandler: Any) -> None:
        """Set its error handler."""
        self._attributes()

    def Call_errhandler(self, errorcode: int) -> None:
        """Call its error handler."""
        self._attributes()

    def Get_name(self) -> str:
        """Its name."""
        return "MPI_WIN_NULL"


absent(
    Win,
    "Attach Detach Shared_query Set_info Get_info Get_group tomemory Put Get Accumulate "
    "Get_accumulate Fetch_and_op Compare_and_swap Rput Rget Raccumulate Rget_accumulate Fence "
    "Start Complete Post Wait Test Lock Unlock Lock_all Unlock_all Flush Flush_all Flush_local "
    "Flush_local_all Sync Set_name",
    _WHAT,
    on_class="Create Allocate Allocate_shared Create_dynamic Create_errhandler",
)

WIN_NULL: Final = Win()._constant("WIN_NULL")
