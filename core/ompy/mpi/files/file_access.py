"""Reading and writing files: the calls that move data."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ompy import raw
from ompy.compiled import ccall, cfunc
from ompy.data.errors import ERR_ARG, ERR_FILE, MPIError
from ompy.frameworks.collectives.patience import abandon
from ompy.mpi.collectives.collective_calls import refuse
from ompy.mpi.collectives.refusals import refuse_unbegun
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point.status import check_status

if TYPE_CHECKING:
    from ompy.mpi.point_to_point.request import Request
    from ompy.mpi.point_to_point.status import Status

READ: Final = False
WRITE: Final = True
# where an access begins, beside offsets: at the rank's own pointer, or at that of all
INDIVIDUAL: Final = -1
SHARED: Final = -2
_BEYOND: Final = raw.BEYOND


@ccall
def state_of_file(file: Any) -> Any:
    """What a handle refers to.

    Raises:
        MPIException: ERR_FILE, it is null.
    """
    handle: Handle = file
    state = handle._inner
    if state is None:
        raise MPIException(ERR_FILE, "the file is null (FILE_NULL, or closed)")
    return state


@ccall
def offset_of(state: Any, offset: Any) -> Any:
    """An offset of the user.

    Raises:
        MPIException: ERR_ARG, it is negative.
    """
    number: int = raw.small(offset)
    return number if 0 <= number < _BEYOND else _unusual_offset(state, offset)


@cfunc
def _unusual_offset(state: Any, offset: Any) -> Any:
    """One that is no plain integer, or large, or wrong."""
    number = whole_number(offset)
    if number < 0:
        raise state.raised(MPIError(ERR_ARG, f"an offset of {number}"))
    return number


@ccall
def place_of_all(state: Any, name: str, offset: Any) -> Any:
    """An offset of the user, in a call that all members make.

    Raises:
        MPIException: ERR_ARG, it is negative; the others are told, here and below.
        TypeError: it is none.
    """
    number: int = raw.small(offset)
    if 0 <= number < _BEYOND:
        return number
    try:
        return _unusual_offset(state, offset)
    except Exception as problem:
        refuse_unbegun(state.comm, name, problem)
        raise


def see_status(state: Any, name: str, status: Any) -> None:
    """See that a call that all members make was given a status to fill in.

    Raises:
        TypeError: it is something else.
    """
    try:
        check_status(status)
    except TypeError as problem:
        refuse_unbegun(state.comm, name, problem)
        raise


def refuse_file_call(state: Any, problem: Exception, in_memory: bool = True) -> None:
    """A call of all members has failed here: tell the others, if nobody has.

    Args:
        state: of the file.
        problem: what it failed with.
        in_memory: they begin it in memory, where they have some.
    """
    communicator, order = state.comm.communicator, state.comm.communicator.order
    if state.comm.size < 2 or order.has_given_up(order.number):
        return
    if in_memory:
        refuse(state.comm, problem)
    else:
        abandon(communicator, order.tag(), problem)


class FileAccess:
    """Reads and writes of a file's handle.

    A buffer is whatever stands for a message; offsets count etypes of the view, pointers too. What
    is read or written, in bytes, stands in the status.
    """

    __slots__ = ()

    # --- reading

    def Read(self, buf: Any, status: Status | None = None) -> None:
        """Read at this process's pointer."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.transfer_now(state, buf, INDIVIDUAL, status, READ)

    def Iread(self, buf: Any) -> Request:
        """Begin what `Read` does; the pointer is behind all of it."""
        state = state_of_file(self)
        begun: Request = state.transfers.begin_transfer(state, buf, INDIVIDUAL, READ)
        return begun

    def Read_at(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Read at an offset."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.transfer_now(state, buf, offset_of(state, offset), status, READ)

    def Iread_at(self, offset: int, buf: Any) -> Request:
        """Begin what `Read_at` does."""
        state = state_of_file(self)
        place = offset_of(state, offset)
        begun: Request = state.transfers.begin_transfer(state, buf, place, READ)
        return begun

    def Read_at_all(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Read at an offset, all processes together."""
        state = state_of_file(self)
        if status is not None:
            see_status(state, "File.Read_all", status)
        place = place_of_all(state, "File.Read_all", offset)
        state.transfers.transfer_together(state, buf, place, status, READ)

    def Iread_at_all(self, offset: int, buf: Any) -> Request:
        """Begin what `Read_at_all` does."""
        state = state_of_file(self)
        place = place_of_all(state, "File.Iread_all", offset)
        begun: Request = state.transfers.begin_request(state, buf, place, READ)
        return begun

    def Read_all(self, buf: Any, status: Status | None = None) -> None:
        """Read at each process's pointer, all together."""
        state = state_of_file(self)
        if status is not None:
            see_status(state, "File.Read_all", status)
        state.transfers.transfer_together(state, buf, INDIVIDUAL, status, READ)

    def Iread_all(self, buf: Any) -> Request:
        """Begin what `Read_all` does."""
        state = state_of_file(self)
        begun: Request = state.transfers.begin_request(state, buf, INDIVIDUAL, READ)
        return begun

    def Read_shared(self, buf: Any, status: Status | None = None) -> None:
        """Read at the pointer all processes share."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.transfer_now(state, buf, SHARED, status, READ)

    def Iread_shared(self, buf: Any) -> Request:
        """Begin what `Read_shared` does."""
        state = state_of_file(self)
        begun: Request = state.transfers.begin_transfer(state, buf, SHARED, READ)
        return begun

    def Read_ordered(self, buf: Any, status: Status | None = None) -> None:
        """Read at the shared pointer, in the order of the ranks."""
        state = state_of_file(self)
        if status is not None:
            see_status(state, "File.Read_ordered", status)
        state.transfers.transfer_in_order(state, buf, status, READ)

    def Read_at_all_begin(self, offset: int, buf: Any) -> None:
        """Begin what `Read_at_all` does; one such a file at a time."""
        state = state_of_file(self)
        place = place_of_all(state, "File.Read_all_begin", offset)
        state.transfers.begin_split(state, "Read_at_all", buf, place, READ)

    def Read_at_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_at_all_begin` has begun."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.end_split(state, "Read_at_all", status)

    def Read_all_begin(self, buf: Any) -> None:
        """Begin what `Read_all` does; one such a file at a time."""
        state = state_of_file(self)
        state.transfers.begin_split(state, "Read_all", buf, INDIVIDUAL, READ)

    def Read_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_all_begin` has begun."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.end_split(state, "Read_all", status)

    def Read_ordered_begin(self, buf: Any) -> None:
        """Begin what `Read_ordered` does; one such a file at a time."""
        state = state_of_file(self)
        state.transfers.begin_split(state, "Read_ordered", buf, SHARED, READ)

    def Read_ordered_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_ordered_begin` has begun."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.end_split(state, "Read_ordered", status)

    # --- writing

    def Write(self, buf: Any, status: Status | None = None) -> None:
        """Write at this process's pointer."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.transfer_now(state, buf, INDIVIDUAL, status, WRITE)

    def Iwrite(self, buf: Any) -> Request:
        """Begin what `Write` does; the pointer is behind all of it."""
        state = state_of_file(self)
        begun: Request = state.transfers.begin_transfer(state, buf, INDIVIDUAL, WRITE)
        return begun

    def Write_at(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Write at an offset."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.transfer_now(state, buf, offset_of(state, offset), status, WRITE)

    def Iwrite_at(self, offset: int, buf: Any) -> Request:
        """Begin what `Write_at` does."""
        state = state_of_file(self)
        place = offset_of(state, offset)
        begun: Request = state.transfers.begin_transfer(state, buf, place, WRITE)
        return begun

    def Write_at_all(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Write at an offset, all processes together."""
        state = state_of_file(self)
        if status is not None:
            see_status(state, "File.Write_all", status)
        place = place_of_all(state, "File.Write_all", offset)
        state.transfers.transfer_together(state, buf, place, status, WRITE)

    def Iwrite_at_all(self, offset: int, buf: Any) -> Request:
        """Begin what `Write_at_all` does."""
        state = state_of_file(self)
        place = place_of_all(state, "File.Iwrite_all", offset)
        begun: Request = state.transfers.begin_request(state, buf, place, WRITE)
        return begun

    def Write_all(self, buf: Any, status: Status | None = None) -> None:
        """Write at each process's pointer, all together."""
        state = state_of_file(self)
        if status is not None:
            see_status(state, "File.Write_all", status)
        state.transfers.transfer_together(state, buf, INDIVIDUAL, status, WRITE)

    def Iwrite_all(self, buf: Any) -> Request:
        """Begin what `Write_all` does."""
        state = state_of_file(self)
        begun: Request = state.transfers.begin_request(state, buf, INDIVIDUAL, WRITE)
        return begun

    def Write_shared(self, buf: Any, status: Status | None = None) -> None:
        """Write at the pointer all processes share."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.transfer_now(state, buf, SHARED, status, WRITE)

    def Iwrite_shared(self, buf: Any) -> Request:
        """Begin what `Write_shared` does."""
        state = state_of_file(self)
        begun: Request = state.transfers.begin_transfer(state, buf, SHARED, WRITE)
        return begun

    def Write_ordered(self, buf: Any, status: Status | None = None) -> None:
        """Write at the shared pointer, in the order of the ranks."""
        state = state_of_file(self)
        if status is not None:
            see_status(state, "File.Write_ordered", status)
        state.transfers.transfer_in_order(state, buf, status, WRITE)

    def Write_at_all_begin(self, offset: int, buf: Any) -> None:
        """Begin what `Write_at_all` does; one such a file at a time."""
        state = state_of_file(self)
        place = place_of_all(state, "File.Write_all_begin", offset)
        state.transfers.begin_split(state, "Write_at_all", buf, place, WRITE)

    def Write_at_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_at_all_begin` has begun."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.end_split(state, "Write_at_all", status)

    def Write_all_begin(self, buf: Any) -> None:
        """Begin what `Write_all` does; one such a file at a time."""
        state = state_of_file(self)
        state.transfers.begin_split(state, "Write_all", buf, INDIVIDUAL, WRITE)

    def Write_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_all_begin` has begun."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.end_split(state, "Write_all", status)

    def Write_ordered_begin(self, buf: Any) -> None:
        """Begin what `Write_ordered` does; one such a file at a time."""
        state = state_of_file(self)
        state.transfers.begin_split(state, "Write_ordered", buf, SHARED, WRITE)

    def Write_ordered_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_ordered_begin` has begun."""
        check_status(status)
        state = state_of_file(self)
        state.transfers.end_split(state, "Write_ordered", status)
