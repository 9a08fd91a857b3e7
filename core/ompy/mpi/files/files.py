"""`MPI.File`: files that several processes read and write together.

What is below is imported when the first file is opened.
"""

# ruff: noqa: SLF001 - states are private to users only; no hint is of use to `Delete`

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any, AnyStr, ClassVar, Final, Self

from ompy.data.errors import MPIError
from ompy.mpi.collectives.refusals import told_to_all
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.group_state import group_of
from ompy.mpi.constants import MODE_RDONLY, SEEK_SET
from ompy.mpi.datatypes.datatype import Datatype, handle_of, state_of
from ompy.mpi.datatypes.predefined import BYTE
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.errhandler import Errhandler, handler_for
from ompy.mpi.errors import MPIException
from ompy.mpi.files.file_access import FileAccess, offset_of, state_of_file
from ompy.mpi.handles import Handle, handle_for, plain_handle
from ompy.mpi.info import INFO_NULL, Info, info_of, pairs_of
from ompy.mpi.integers import c_int, whole_number
from ompy.mpi.kinds import check_kind
from ompy.mpi.processes.life import current
from ompy.mpi.strings import c_string

if TYPE_CHECKING:
    from ompy.mpi.communicators.intracomm import Intracomm
    from ompy.mpi.files.file_state import FileState
    from ompy.mpi.state import World


class File(FileAccess, Handle):  # type: ignore[misc, unused-ignore]
    """A file that several processes have opened together."""

    __slots__ = ()
    _kind: ClassVar[str] = "File"

    def __new__(cls, file: File | None = None) -> Self:
        """A null handle, or another one for the same file."""
        made: Self = handle_for(cls, file)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return hasattr(state, "split")

    def _state(self) -> FileState:
        """What the handle refers to.

        Raises:
            MPIException: ERR_FILE, it is null.
        """
        found: FileState = state_of_file(self)
        return found

    # --- opening and closing

    @classmethod
    @told_to_all("File.Open", "comm")
    def Open(
        cls,
        comm: Intracomm,
        filename: PathLike[AnyStr] | str | bytes,
        amode: int = MODE_RDONLY,
        info: Info = INFO_NULL,
    ) -> Self:
        """Open a file; all members of the communicator call this.

        Args:
            comm: who shares it.
            filename: its path, the same file at all of them.
            amode: one of MODE_RDONLY, MODE_WRONLY and MODE_RDWR, and other MODE constants.
            info: hints: `cb_nodes`, `cb_buffer_size`, `romio_cb_write`, `romio_cb_read`,
                `file_perm`.

        Raises:
            MPIException: it cannot be opened at some member; then it is open at none.
        """
        check_kind(comm, "Comm", "comm")
        check_kind(info, "Info", "info")
        from ompy.mpi.files.file_opening import open_file

        parent = comm._enter("File.Open")
        try:
            state = open_file(parent, filename, whole_number(amode), dict(info.items()))
        except MPIError as problem:
            raise _raised_without_file(problem, parent.world) from problem.__cause__
        state.api = cls
        return cls._adopt(state)

    def Close(self) -> None:
        """Close it; all members call this."""
        state = self._state()
        if state.split is None:
            self._inner = None
        state.call(state.close)

    def _release(self) -> None:
        self.Close()

    @classmethod
    def Delete(cls, filename: PathLike[AnyStr] | str | bytes, info: Info = INFO_NULL) -> None:
        """Remove a file.

        Raises:
            MPIException: ERR_NO_SUCH_FILE and others, it cannot be removed.
        """
        check_kind(info, "Info", "info")
        from ompy.mpi.files.file_opening import path_text
        from ompy.mpi.files.told_accesses import remove_noted

        try:
            remove_noted(current().context, path_text(filename))
        except MPIError as problem:
            raise _raised_without_file(problem) from problem.__cause__

    # --- what it is

    @told_to_all("File.Set_size")
    def Set_size(self, size: int) -> None:
        """Cut the file off, or make it longer; all members call this."""
        state = state_of_file(self)
        try:
            state.resize(whole_number(size))
        except MPIError as problem:
            raise state.raised(problem) from problem.__cause__

    @told_to_all("File.Preallocate")
    def Preallocate(self, size: int) -> None:
        """Have room for its first `size` bytes; all members call this."""
        state_of_file(self).allocate(whole_number(size))

    def Get_size(self) -> int:
        """How many bytes it has."""
        size: int = state_of_file(self).size()
        return size

    def Get_amode(self) -> int:
        """How it was opened."""
        amode: int = state_of_file(self).amode
        return amode

    def Get_group(self) -> Group:
        """The processes that have opened it."""
        made: Group = plain_handle(Group, group_of(state_of_file(self).comm))
        return made

    @told_to_all("File.Set_info")
    def Set_info(self, info: Info) -> None:
        """Set hints; all members call this. What is said at `Open` has an effect."""
        if type(info) is not Info:
            check_kind(info, "Info", "info")
        state = state_of_file(self)
        try:
            state.set_info(pairs_of(info))
        except MPIError as problem:
            raise state.raised(problem) from problem.__cause__

    def Get_info(self) -> Info:
        """The hints in use."""
        state = state_of_file(self)
        made: Info = info_of({**state.info, **state.module.hints()})
        return made

    # --- views

    @told_to_all("File.Set_view")
    def Set_view(
        self,
        disp: int = 0,
        etype: Datatype = BYTE,
        filetype: Datatype | None = None,
        datarep: str | None = "native",
        info: Info = INFO_NULL,
    ) -> None:
        """Say which part of the file this process sees; all members call this.

        Args:
            disp: byte where the view begins, or DISPLACEMENT_CURRENT.
            etype: what offsets count; data are read and written in whole ones.
            filetype: made of etypes; its data bytes are what is seen, over and over. The etype
                itself when it is left out.
            datarep: `native`, which None means, `internal`, `external32`, or one of
                `Register_datarep`.
            info: more hints.
        """
        check_kind(etype, "Datatype", "etype")
        if filetype is not None:
            check_kind(filetype, "Datatype", "filetype")
        check_kind(info, "Info", "info")
        state = state_of_file(self)
        name = "native" if datarep is None else c_string(datarep)
        state.set_view(whole_number(disp), etype, filetype, name)
        if info:
            state.info.update(info.items())

    def Get_view(self) -> tuple[int, Datatype, Datatype, str]:
        """Displacement, etype, filetype and representation of the view."""
        view = state_of_file(self).view
        return view.displacement, handle_of(view.etype), handle_of(view.filetype), view.datarep

    def Get_byte_offset(self, offset: int) -> int:
        """Where an offset of the view is in the file.

        Raises:
            MPIException: ERR_ARG, no file has so many etypes.
        """
        state = state_of_file(self)
        try:
            byte: int = state.view.byte_at(offset_of(state, offset))
        except MPIError as problem:
            raise state.raised(problem) from None
        return byte

    def Get_type_extent(self, datatype: Datatype) -> int:
        """How far apart elements of a type are in the file."""
        if type(datatype) is not Datatype:
            check_kind(datatype, "Datatype", "datatype")
        state = state_of_file(self)
        form = state.view.representation
        inner: TypeState = state_of(datatype)
        if form is None:
            return inner.described().extent
        extent: int = state.call(form.layout, inner).extent
        return extent

    # --- pointers

    def Seek(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move this process's pointer.

        Args:
            offset: etypes.
            whence: from the beginning (SEEK_SET), from where it is, or from the file's end.
        """
        state_of_file(self).seek(whole_number(offset), whole_number(whence))

    def Get_position(self) -> int:
        """Where this process's pointer is, in etypes."""
        here: int = state_of_file(self).here()
        return here

    @told_to_all("File.Seek_shared")
    def Seek_shared(self, offset: int, whence: int = SEEK_SET) -> None:
        """Move the pointer all processes share; all of them say the same."""
        state_of_file(self).seek_shared(whole_number(offset), whole_number(whence))

    def Get_position_shared(self) -> int:
        """Where the pointer all processes share is, in etypes."""
        value: int = state_of_file(self).shared_value()
        return value

    # --- consistency

    def Set_atomicity(self, flag: bool) -> None:
        """Say whether accesses are atomic; all members say the same."""
        state_of_file(self).set_atomicity(bool(flag))

    def Get_atomicity(self) -> bool:
        """Whether accesses are atomic."""
        atomic: bool = state_of_file(self).module.atomic
        return atomic

    def Sync(self) -> None:
        """Have what was written on the device, and see what others wrote; all members call this."""
        state = self._state()
        state.call(state.flush)

    # --- errors

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[[File, int], None]) -> Errhandler:
        """A new error handler that calls `f(file, errorcode)`."""
        return Errhandler._create(cls._kind, errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """Its error handler; FILE_NULL has that of files opened from now on."""
        handle: Handle = self
        state = handle._inner
        handler = current().file_errors if state is None else state.errhandler
        made: Errhandler = plain_handle(Errhandler, handler)
        return made

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set its error handler; FILE_NULL's is that of files opened from now on."""
        if type(errhandler) is not Errhandler:
            check_kind(errhandler, "Errhandler", "errhandler")
        try:
            handler = handler_for(errhandler, "File")
        except MPIError as problem:
            raise self._raised(problem) from None
        handle: Handle = self
        state = handle._inner
        if state is None:
            current().file_errors = handler
        else:
            state.errhandler = handler

    def Call_errhandler(self, errorcode: int) -> None:
        """Call its error handler."""
        errorcode = c_int(errorcode)
        if errorcode != 0:
            self._raised(MPIException(errorcode))

    def _raised(self, problem: MPIError) -> MPIException:
        if self._inner is None:
            return _raised_without_file(problem)
        return self._state().raised(problem)

    # --- properties

    @property
    def size(self) -> int:
        """How many bytes it has."""
        size: int = state_of_file(self).size()
        return size

    @property
    def amode(self) -> int:
        """How it was opened."""
        amode: int = state_of_file(self).amode
        return amode

    @property
    def group(self) -> Group:
        """The processes that have opened it."""
        return self.Get_group()

    @property
    def group_size(self) -> int:
        """How many processes have opened it."""
        return self._state().comm.size

    @property
    def group_rank(self) -> int:
        """Which of these this process is."""
        return self._state().comm.communicator.rank

    @property
    def info(self) -> Info:
        """Its hints."""
        return self.Get_info()

    @info.setter
    def info(self, value: Info) -> None:
        check_kind(value, "Info", "value")
        self.Set_info(value)

    @property
    def atomicity(self) -> bool:
        """Whether accesses are atomic."""
        return self.Get_atomicity()

    @atomicity.setter
    def atomicity(self, value: bool) -> None:
        self.Set_atomicity(value)


def _raised_without_file(problem: MPIError, world: World | None = None) -> MPIException:
    """The exception for a call that has no file, after FILE_NULL's error handler had its say."""
    from ompy.mpi.files.file_state import raised_for

    world = current() if world is None else world
    return raised_for(world, world.file_errors, lambda: FILE_NULL, problem)


FILE_NULL: Final = File()._constant("FILE_NULL")
