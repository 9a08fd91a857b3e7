"""`MPI.Session`: the names are there, sessions are not."""

# ruff: noqa: SLF001, ARG003 - states are private to users only; arguments are for who reads them

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from ompy.mpi.handles import Handle
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.unsupported import not_available

if TYPE_CHECKING:
    from ompy.mpi.errhandler import Errhandler
    from ompy.mpi.group import Group
    from ompy.mpi.request import Request


class Session(Handle):
    """A way to start MPI in parts. Not available: only null handles exist."""

    __slots__ = ()
    _kind: ClassVar[str] = "Session"

    def __new__(cls, session: Session | None = None) -> Self:
        """A null handle."""
        return cls._make(session)

    @classmethod
    def Init(cls, info: Info = INFO_NULL, errhandler: Errhandler | None = None) -> Self:
        """A new session. Not available."""
        raise not_available("Session.Init", "sessions")

    def Finalize(self) -> None:
        """End it. Not available."""
        raise not_available("Session.Finalize", "sessions")

    def Get_num_psets(self, info: Info = INFO_NULL) -> int:
        """How many process sets there are. Not available."""
        raise not_available("Session.Get_num_psets", "sessions")

    def Get_nth_pset(self, n: int, info: Info = INFO_NULL) -> str:
        """The name of a process set. Not available."""
        raise not_available("Session.Get_nth_pset", "sessions")

    def Get_info(self) -> Info:
        """Its hints. Not available."""
        raise not_available("Session.Get_info", "sessions")

    def Get_pset_info(self, pset_name: str) -> Info:
        """What is known of a process set. Not available."""
        raise not_available("Session.Get_pset_info", "sessions")

    def Create_group(self, pset_name: str) -> Group:
        """The processes of a set. Not available."""
        raise not_available("Session.Create_group", "sessions")

    def Attach_buffer(self, buf: Any) -> None:
        """Lend memory for buffered sends. Not available."""
        raise not_available("Session.Attach_buffer", "sessions")

    def Detach_buffer(self) -> Any:
        """Take the memory for buffered sends back. Not available."""
        raise not_available("Session.Detach_buffer", "sessions")

    def Flush_buffer(self) -> None:
        """Return when the buffered messages have been sent. Not available."""
        raise not_available("Session.Flush_buffer", "sessions")

    def Iflush_buffer(self) -> Request:
        """Begin what `Flush_buffer` does. Not available."""
        raise not_available("Session.Iflush_buffer", "sessions")

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[[Session, int], None]) -> Errhandler:
        """An error handler that calls a function. Not available."""
        raise not_available("Session.Create_errhandler", "sessions")

    def Get_errhandler(self) -> Errhandler:
        """Its error handler. Not available."""
        raise not_available("Session.Get_errhandler", "sessions")

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set its error handler. Not available."""
        raise not_available("Session.Set_errhandler", "sessions")

    def Call_errhandler(self, errorcode: int) -> None:
        """Call its error handler. Not available."""
        raise not_available("Session.Call_errhandler", "sessions")


SESSION_NULL: Final = Session()._constant("SESSION_NULL")
