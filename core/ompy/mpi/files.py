"""`MPI.File`: the names are there, files are not."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import ClassVar, Final, Self

from ompy.mpi.handles import Handle
from ompy.mpi.unsupported import absent


class File(Handle):
    """A file that several processes share. Not available: only null handles exist."""

    __slots__ = ()
    _kind: ClassVar[str] = "File"

    def __new__(cls, file: File | None = None) -> Self:
        """A null handle."""
        return cls._make(file)


_ACCESSES: Final = " ".join(
    f"{verb}{way} I{verb.lower()}{way}"
    for verb in ("Read", "Write")
    for way in ("", "_at", "_at_all", "_all", "_shared")
)
absent(
    File,
    f"{_ACCESSES} Close Set_size Preallocate Get_size Get_amode Get_group Set_info Get_info "
    "Set_view Get_view Seek Get_position Get_byte_offset Read_ordered Write_ordered Seek_shared "
    "Get_position_shared Read_at_all_begin Read_at_all_end Write_at_all_begin Write_at_all_end "
    "Read_all_begin Read_all_end Write_all_begin Write_all_end Read_ordered_begin "
    "Read_ordered_end Write_ordered_begin Write_ordered_end Get_type_extent Set_atomicity "
    "Get_atomicity Sync Get_errhandler Set_errhandler Call_errhandler",
    "files",
    on_class="Open Delete Create_errhandler",
)

FILE_NULL: Final = File()._constant("FILE_NULL")
