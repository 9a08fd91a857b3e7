"""Reading and writing files: the calls that move data."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any, Final

from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.status import Status

if TYPE_CHECKING:
    from ompy.mpi.files.file_state import FileState

READ: Final = False
WRITE: Final = True
# where an access begins, beside offsets: at the rank's own pointer, or at that of all
INDIVIDUAL: Final = -1
SHARED: Final = -2


class FileAccess:
    """Reads and writes of a file's handle.

    A buffer is whatever stands for a message; offsets count etypes of the view, pointers too. What
    is read or written, in bytes, stands in the status.
    """

    __slots__ = ()

    def _state(self) -> FileState:
        raise NotImplementedError

    def _now(
        self,
        buffer: Any,
        place: int,
        status: Status | None,
        *,
        writes: bool,
        together: bool = False,
    ) -> None:
        """Move data at a place, and return when it is done."""
        from ompy.mpi.files import file_transfers as transfers

        state = self._state()
        move = transfers.transfer_together if together else transfers.transfer_now
        state.call(move, state, buffer, place, status, writes=writes)

    def _begun(self, buffer: Any, place: int, *, writes: bool, together: bool = False) -> Request:
        """Begin to move data at a place."""
        from ompy.mpi.files import file_transfers as transfers

        state = self._state()
        if not together:
            begun: Request = state.call(
                transfers.begin_transfer, state, buffer, place, writes=writes
            )
            return begun
        request = state.call(transfers.begin_together, state, buffer, place, writes=writes)
        return Request._adopt(request)  # noqa: SLF001 - ours

    def _offset(self, offset: int) -> int:
        """An offset of the user."""
        from ompy.mpi.files.file_transfers import checked_offset

        place: int = self._state().call(checked_offset, index(offset))
        return place

    def _in_order(self, buffer: Any, status: Status | None, *, writes: bool) -> None:
        from ompy.mpi.files.file_transfers import transfer_in_order

        state = self._state()
        state.call(transfer_in_order, state, buffer, status, writes=writes)

    def _split(self, name: str, buffer: Any, place: int | None, *, writes: bool) -> None:
        """Begin a split call; without a place in the order of the ranks."""
        from ompy.mpi.files import file_transfers as transfers

        state = self._state()

        def begin() -> transfers.FileRequestState:
            if place is None:
                return transfers.begin_in_order(state, buffer, writes=writes)
            return transfers.begin_together(state, buffer, place, writes=writes)

        state.call(transfers.begin_split, state, name, begin)

    def _end(self, name: str, status: Status | None) -> None:
        """End a split call."""
        from ompy.mpi.files.file_transfers import end_split

        state = self._state()
        state.call(end_split, state, name, status)

    # --- reading

    def Read(self, buf: Any, status: Status | None = None) -> None:
        """Read at this process's pointer."""
        self._now(buf, INDIVIDUAL, status, writes=READ)

    def Iread(self, buf: Any) -> Request:
        """Begin what `Read` does; the pointer is behind all of it."""
        return self._begun(buf, INDIVIDUAL, writes=READ)

    def Read_at(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Read at an offset."""
        self._now(buf, self._offset(offset), status, writes=READ)

    def Iread_at(self, offset: int, buf: Any) -> Request:
        """Begin what `Read_at` does."""
        return self._begun(buf, self._offset(offset), writes=READ)

    def Read_at_all(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Read at an offset, all processes together."""
        self._now(buf, self._offset(offset), status, writes=READ, together=True)

    def Iread_at_all(self, offset: int, buf: Any) -> Request:
        """Begin what `Read_at_all` does."""
        return self._begun(buf, self._offset(offset), writes=READ, together=True)

    def Read_all(self, buf: Any, status: Status | None = None) -> None:
        """Read at each process's pointer, all together."""
        self._now(buf, INDIVIDUAL, status, writes=READ, together=True)

    def Iread_all(self, buf: Any) -> Request:
        """Begin what `Read_all` does."""
        return self._begun(buf, INDIVIDUAL, writes=READ, together=True)

    def Read_shared(self, buf: Any, status: Status | None = None) -> None:
        """Read at the pointer all processes share."""
        self._now(buf, SHARED, status, writes=READ)

    def Iread_shared(self, buf: Any) -> Request:
        """Begin what `Read_shared` does."""
        return self._begun(buf, SHARED, writes=READ)

    def Read_ordered(self, buf: Any, status: Status | None = None) -> None:
        """Read at the shared pointer, in the order of the ranks."""
        self._in_order(buf, status, writes=READ)

    def Read_at_all_begin(self, offset: int, buf: Any) -> None:
        """Begin what `Read_at_all` does; one such a file at a time."""
        self._split("Read_at_all", buf, self._offset(offset), writes=READ)

    def Read_at_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_at_all_begin` has begun."""
        self._end("Read_at_all", status)

    def Read_all_begin(self, buf: Any) -> None:
        """Begin what `Read_all` does; one such a file at a time."""
        self._split("Read_all", buf, INDIVIDUAL, writes=READ)

    def Read_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_all_begin` has begun."""
        self._end("Read_all", status)

    def Read_ordered_begin(self, buf: Any) -> None:
        """Begin what `Read_ordered` does; one such a file at a time."""
        self._split("Read_ordered", buf, None, writes=READ)

    def Read_ordered_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Read_ordered_begin` has begun."""
        self._end("Read_ordered", status)

    # --- writing

    def Write(self, buf: Any, status: Status | None = None) -> None:
        """Write at this process's pointer."""
        self._now(buf, INDIVIDUAL, status, writes=WRITE)

    def Iwrite(self, buf: Any) -> Request:
        """Begin what `Write` does; the pointer is behind all of it."""
        return self._begun(buf, INDIVIDUAL, writes=WRITE)

    def Write_at(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Write at an offset."""
        self._now(buf, self._offset(offset), status, writes=WRITE)

    def Iwrite_at(self, offset: int, buf: Any) -> Request:
        """Begin what `Write_at` does."""
        return self._begun(buf, self._offset(offset), writes=WRITE)

    def Write_at_all(self, offset: int, buf: Any, status: Status | None = None) -> None:
        """Write at an offset, all processes together."""
        self._now(buf, self._offset(offset), status, writes=WRITE, together=True)

    def Iwrite_at_all(self, offset: int, buf: Any) -> Request:
        """Begin what `Write_at_all` does."""
        return self._begun(buf, self._offset(offset), writes=WRITE, together=True)

    def Write_all(self, buf: Any, status: Status | None = None) -> None:
        """Write at each process's pointer, all together."""
        self._now(buf, INDIVIDUAL, status, writes=WRITE, together=True)

    def Iwrite_all(self, buf: Any) -> Request:
        """Begin what `Write_all` does."""
        return self._begun(buf, INDIVIDUAL, writes=WRITE, together=True)

    def Write_shared(self, buf: Any, status: Status | None = None) -> None:
        """Write at the pointer all processes share."""
        self._now(buf, SHARED, status, writes=WRITE)

    def Iwrite_shared(self, buf: Any) -> Request:
        """Begin what `Write_shared` does."""
        return self._begun(buf, SHARED, writes=WRITE)

    def Write_ordered(self, buf: Any, status: Status | None = None) -> None:
        """Write at the shared pointer, in the order of the ranks."""
        self._in_order(buf, status, writes=WRITE)

    def Write_at_all_begin(self, offset: int, buf: Any) -> None:
        """Begin what `Write_at_all` does; one such a file at a time."""
        self._split("Write_at_all", buf, self._offset(offset), writes=WRITE)

    def Write_at_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_at_all_begin` has begun."""
        self._end("Write_at_all", status)

    def Write_all_begin(self, buf: Any) -> None:
        """Begin what `Write_all` does; one such a file at a time."""
        self._split("Write_all", buf, INDIVIDUAL, writes=WRITE)

    def Write_all_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_all_begin` has begun."""
        self._end("Write_all", status)

    def Write_ordered_begin(self, buf: Any) -> None:
        """Begin what `Write_ordered` does; one such a file at a time."""
        self._split("Write_ordered", buf, None, writes=WRITE)

    def Write_ordered_end(self, buf: Any, status: Status | None = None) -> None:
        """End what `Write_ordered_begin` has begun."""
        self._end("Write_ordered", status)
