"""`MPI.File`: the names are there, files are not."""

# ruff: noqa: SLF001, ARG003 - states are private to users only; arguments are for who reads them

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, AnyStr, ClassVar, Final, Self

from ompy.mpi.constants import MODE_RDONLY, SEEK_SET
from ompy.mpi.handles import Handle
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.predefined import BYTE
from ompy.mpi.unsupported import not_available

if TYPE_CHECKING:
    from ompy.mpi.datatype import Datatype
    from ompy.mpi.errhandler import Errhandler
    from ompy.mpi.group import Group
    from ompy.mpi.intracomm import Intracomm
    from ompy.mpi.request import Request
    from ompy.mpi.status import Status


class File(Handle):
    """A file that several processes share. Not available: only null handles exist."""

    __slots__ = ()
    _kind: ClassVar[str] = "File"

    def __new__(cls, file: File | None = None) -> Self:
        """A null handle."""
        return cls._make(file)

    @classmethod
    def Open(
        cls,
        comm: Intracomm,
        filename: PathLike[AnyStr] | str | bytes,
        amode: int = MODE_RDONLY,
        info: Info = INFO_NULL,
    ) -> Self:
        """Open a file; all members of the communicator call this. Not available."""
        raise not_available("File.Open", "files")

    def Close(self) -> None:
        """Close it; all members call this. Not available."""
        raise not_available("File.Close", "files")

    @classmethod
    def Delete(cls, filename: PathLike[AnyStr] | str | bytes, info: Info = INFO_NULL) -> None:
        """Remove a file. Not available."""
        raise not_available("File.Delete", "files")

    def Set_size(self, size: int) -> None:
        """Cut the file off, or make it longer. Not available."""
        raise not_available("File.Set_size", "files")

    def Preallocate(self, size: int) -> None:
        """Have room for so many bytes. Not available."""
        raise not_available("File.Preallocate", "files")

    def Get_size(self) -> int:
        """How many bytes it has. Not available."""
        raise not_available("File.Get_size", "files")

    def Get_amode(self) -> int:
        """How it was opened. Not available."""
        raise not_available("File.Get_amode", "files")

    def Get_group(self) -> Group:
        """The processes that have opened it. Not available."""
        raise not_available("File.Get_group", "files")

    def Set_info(self, info: Info) -> None:
        """Set its hints. Not available."""
        raise not_available("File.Set_info", "files")

    def Get_info(self) -> Info:
        """Its hints. Not available."""
        raise not_available("File.Get_info", "files")

    def Set_view(
        self,
        disp: int = 0,
        etype: Datatype = BYTE,
        filetype: Datatype | None = None,
        datarep: str = "native",
        info: Info = INFO_NULL,
    ) -> None:
        """Say which part of the file this process sees. Not available."""
        raise not_available("File.Set_view", "files")

    def Get_view(self) -> tuple[int, Datatype, Datatype, str]:
        """Which part of the file this process sees. Not available."""
        raise not_available("File.Get_view", "files")

    def Read(self, buf: Any, status: Status | None = None) -> None:
        """Read at this process's pointer. Not available."""
        raise not_available("File.Read", "files")

    def Iread(self, buf: Any) -> Request:
        """Begin what `Read` does. Not available."""
        raise not_available("File.Iread", "files")

    def Read_at(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Read at an offset. Not available."""
        raise not_available("File.Read_at", "files")

    def Iread_at(self, offset: int, buf: Any) -> Request:
        """Begin what `Read_at` does. Not available."""
        raise not_available("File.Iread_at", "files")

    def Read_at_all(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Read at an offset, all processes together. Not available."""
        raise not_available("File.Read_at_all", "files")

    def Iread_at_all(self, offset: int, buf: Any) -> Request:
        """Begin what `Read_at_all` does. Not available."""
        raise not_available("File.Iread_at_all", "files")

    def Read_all(self, buf: Any, status: Status | None = None) -> None:
        """Read at each process's pointer, all together. Not available."""
        raise not_available("File.Read_all", "files")

    def Iread_all(self, buf: Any) -> Request:
        """Begin what `Read_all` does. Not available."""
        raise not_available("File.Iread_all", "files")

    def Read_shared(self, buf: Any, status: Status | None = None) -> None:
        """Read at the pointer all processes share. Not available."""
        raise not_available("File.Read_shared", "files")

    def Iread_shared(self, buf: Any) -> Request:
        """Begin what `Read_shared` does. Not available."""
        raise not_available("File.Iread_shared", "files")

    def Read_ordered(self, buf: Any, status: Status | None = None) -> None:
        """Read at the shared pointer, in the order of the ranks. Not available."""
        raise not_available("File.Read_ordered", "files")

    def Read_at_all_begin(self, offset: int, buf: Any) -> None:
        """Begin what `Read_at_all` does; one such a file at a time. Not available."""
        raise not_available("File.Read_at_all_begin", "files")

    def Read_at_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_at_all_begin` has begun. Not available."""
        raise not_available("File.Read_at_all_end", "files")

    def Read_all_begin(self, buf: Any) -> None:
        """Begin what `Read_all` does; one such a file at a time. Not available."""
        raise not_available("File.Read_all_begin", "files")

    def Read_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_all_begin` has begun. Not available."""
        raise not_available("File.Read_all_end", "files")

    def Read_ordered_begin(self, buf: Any) -> None:
        """Begin what `Read_ordered` does; one such a file at a time. Not available."""
        raise not_available("File.Read_ordered_begin", "files")

    def Read_ordered_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_ordered_begin` has begun. Not available."""
        raise not_available("File.Read_ordered_end", "files")

    def Write(self, buf: Any, status: Status | None = None) -> None:
        """Write at this process's pointer. Not available."""
        raise not_available("File.Write", "files")

    def Iwrite(self, buf: Any) -> Request:
        """Begin what `Write` does. Not available."""
        raise not_available("File.Iwrite", "files")

    def Write_at(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Write at an offset. Not available."""
        raise not_available("File.Write_at", "files")

    def Iwrite_at(self, offset: int, buf: Any) -> Request:
        """Begin what `Write_at` does. Not available."""
        raise not_available("File.Iwrite_at", "files")

    def Write_at_all(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Write at an offset, all processes together. Not available."""
        raise not_available("File.Write_at_all", "files")

    def Iwrite_at_all(self, offset: int, buf: Any) -> Request:
        """Begin what `Write_at_all` does. Not available."""
        raise not_available("File.Iwrite_at_all", "files")

    def Write_all(self, buf: Any, status: Status | None = None) -> None:
        """Write at each process's pointer, all together. Not available."""
        raise not_available("File.Write_all", "files")

    def Iwrite_all(self, buf: Any) -> Request:
        """Begin what `Write_all` does. Not available."""
        raise not_available("File.Iwrite_all", "files")

    def Write_shared(self, buf: Any, status: Status | None = None) -> None:
        """Write at the pointer all processes share. Not available."""
        raise not_available("File.Write_shared", "files")

    def Iwrite_shared(self, buf: Any) -> Request:
        """Begin what `Write_shared` does. Not available."""
        raise not_available("File.Iwrite_shared", "files")

    def Write_ordered(self, buf: Any, status: Status | None = None) -> None:
        """Write at the shared pointer, in the order of the ranks. Not available."""
        raise not_available("File.Write_ordered", "files")

    def Write_at_all_begin(self, offset: int, buf: Any) -> None:
        """Begin what `Write_at_all` does; one such a file at a time. Not available."""
        raise not_available("File.Write_at_all_begin", "files")

    def Write_at_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_at_all_begin` has begun. Not available."""
        raise not_available("File.Write_at_all_end", "files")

    def Write_all_begin(self, buf: Any) -> None:
        """Begin what `Write_all` does; one such a file at a time. Not available."""
        raise not_available("File.Write_all_begin", "files")

    def Write_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_all_begin` has begun. Not available."""
        raise not_available("File.Write_all_end", "files")

    def Write_ordered_begin(self, buf: Any) -> None:
        """Begin what `Write_ordered` does; one such a file at a time. Not available."""
        raise not_available("File.Write_ordered_begin", "files")

    def Write_ordered_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_ordered_begin` has begun. Not available."""
        raise not_available("File.Write_ordered_end", "files")

    def Seek(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move this process's pointer. Not available."""
        raise not_available("File.Seek", "files")

    def Get_position(self) -> int:
        """Where this process's pointer is. Not available."""
        raise not_available("File.Get_position", "files")

    def Get_byte_offset(self, offset: int) -> int:
        """Where an offset of the view is in the file. Not available."""
        raise not_available("File.Get_byte_offset", "files")

    def Seek_shared(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move the pointer all processes share. Not available."""
        raise not_available("File.Seek_shared", "files")

    def Get_position_shared(self) -> int:
        """Where the pointer all processes share is. Not available."""
        raise not_available("File.Get_position_shared", "files")

    def Get_type_extent(self, datatype: Datatype) -> int:
        """How far apart elements of a type are in the file. Not available."""
        raise not_available("File.Get_type_extent", "files")

    def Set_atomicity(self, flag: bool) -> None:
        """Say whether accesses are atomic. Not available."""
        raise not_available("File.Set_atomicity", "files")

    def Get_atomicity(self) -> bool:
        """Whether accesses are atomic. Not available."""
        raise not_available("File.Get_atomicity", "files")

    def Sync(self) -> None:
        """Have what was written on the device. Not available."""
        raise not_available("File.Sync", "files")

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[[File, int], None]) -> Errhandler:
        """An error handler that calls a function. Not available."""
        raise not_available("File.Create_errhandler", "files")

    def Get_errhandler(self) -> Errhandler:
        """Its error handler. Not available."""
        raise not_available("File.Get_errhandler", "files")

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set its error handler. Not available."""
        raise not_available("File.Set_errhandler", "files")

    def Call_errhandler(self, errorcode: int) -> None:
        """Call its error handler. Not available."""
        raise not_available("File.Call_errhandler", "files")

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.Get_size()

    @property
    def amode(self) -> int:
        """How it was opened."""
        return self.Get_amode()

    @property
    def group(self) -> Group:
        """The processes that have opened it."""
        return self.Get_group()

    @property
    def group_size(self) -> int:
        """How many processes have opened it."""
        return self.Get_group().size

    @property
    def group_rank(self) -> int:
        """Which of these this process is."""
        return self.Get_group().rank

    @property
    def info(self) -> Info:
        """Its hints."""
        return self.Get_info()

    @property
    def atomicity(self) -> bool:
        """Whether accesses are atomic."""
        return self.Get_atomicity()


FILE_NULL: Final = File()._constant("FILE_NULL")
