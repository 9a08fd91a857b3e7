"""`MPI.Session`: the names are there, sessions are not."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import ClassVar, Final, Self

from ompy.mpi.handles import Handle
from ompy.mpi.unsupported import absent


class Session(Handle):
    """A way to start MPI in parts. Not available: only null handles exist."""

    __slots__ = ()
    _kind: ClassVar[str] = "Session"

    def __new__(cls, session: Session | None = None) -> Self:
        """A null handle."""
        return cls._make(session)


absent(
    Session,
    "Finalize Get_num_psets Get_nth_pset Get_info Get_pset_info Create_group Attach_buffer "
    "Detach_buffer Flush_buffer Iflush_buffer Get_errhandler Set_errhandler Call_errhandler",
    "sessions",
    on_class="Init Create_errhandler",
)

SESSION_NULL: Final = Session()._constant("SESSION_NULL")
