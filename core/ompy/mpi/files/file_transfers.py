"""Reads and writes of files: where they begin, what they move, what becomes of pointers."""

from __future__ import annotations

from collections.abc import Callable, Generator
from struct import Struct
from typing import Any, Final

from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.data.errors import ERR_ACCESS, ERR_ARG, ERR_OTHER, MPIError
from ompy.data.packed import in_place
from ompy.data.request import Request as Operation
from ompy.frameworks.collectives.schedule import Progression, Schedule, complete_schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.io import Access, Outcome
from ompy.mpi.buffers.spec import Typed, message
from ompy.mpi.files.file_access import INDIVIDUAL, SHARED
from ompy.mpi.files.file_state import FileState
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.point_to_point.status import Status

_COUNT: Final = Struct("<q")


class Transfer:
    """What one call moves.

    Attributes:
        writes: it goes into the file.
        size: bytes in the file.
        convertor: of these.
    """

    __slots__ = ("_room", "_state", "_typed", "convertor", "size", "writes")

    def __init__(self, state: FileState, buffer: Any, *, writes: bool) -> None:
        """Look at a buffer.

        Raises:
            MPIError: the file is not open for this, or the bytes are no whole etypes.
        """
        self._state = state
        self._room: bytearray | None = None
        self.writes = writes
        self._check_mode()
        self._typed: Typed = message(buffer, not writes)
        said = self._typed.message
        form = state.view.representation
        if form is None:
            view = in_place(said)
            plain = ContiguousConvertor(view) if view is not None else None
            self.convertor: Convertor = plain or said.convertor()
        elif writes:
            stored = form.to_file(self._typed.datatype, said.packed())
            self.convertor = ContiguousConvertor(stored)
        else:
            self._room = bytearray(form.size(self._typed.datatype, said.count))
            self.convertor = ContiguousConvertor(memoryview(self._room))
        self.size = self.convertor.size
        unit = state.view.unit
        if self.size % unit:
            text = f"{self.size} bytes are no whole number of etypes of {unit} bytes"
            raise MPIError(ERR_ARG, text)
        if self.size and not state.view.seen.size:
            raise MPIError(ERR_ARG, "the view's filetype has no bytes")

    def _check_mode(self) -> None:
        opening = self._state.module.opening
        if self.writes:
            self._state.check_writing()
        elif not opening.reads:
            raise MPIError(ERR_ACCESS, f"{opening.path} is open for writing only")

    def first_position(self, place: int) -> int:
        """The position where it begins; the pointer of all goes on behind it.

        Args:
            place: etypes from the view's beginning; or INDIVIDUAL or SHARED.

        Raises:
            MPIError: ERR_ARG, that is no place.
        """
        state = self._state
        if place == SHARED:
            return state.shared.add_number(self.size // state.view.unit) * state.view.unit
        state.check_seekable()
        return state.position if place == INDIVIDUAL else place * state.view.unit

    def claimed_position(self, place: int) -> int:
        """The same; the rank's own pointer goes on behind it, too."""
        if place != INDIVIDUAL:
            return self.first_position(place)
        with self._state.pointer_lock:
            begin = self.first_position(place)
            self._state.position = begin + self.size
            return begin

    def stored(self, size: int) -> int:
        """So many bytes were moved: give the user what was read.

        Returns:
            Bytes of that in memory.
        """
        form = self._state.view.representation
        if form is None:
            return size
        said, datatype = self._typed.message, self._typed.datatype
        each = form.size(datatype, 1)
        count = size // each if each else 0
        if self._room is not None:
            elements = form.from_file(datatype, memoryview(self._room)[: count * each])
            said.convertor().unpack(0, memoryview(elements))
        return count * said.layout.size

    def access(self, position: int) -> Access:
        """What io components are told."""
        plain = self._state.view.representation is None
        return Access(position, self.convertor, self._typed.message if plain else None)

    def move_bytes(self, position: int) -> int:
        """Do it now, at this rank.

        Returns:
            Bytes of the file that were moved.
        """
        access = self.access(position)
        if not self.size:
            return 0
        if not self.writes:
            return self._state.module.read(access)
        self._state.module.write(access)
        return self.size


class FileRequestState(RequestState):
    """A read or write of a file under way; what fails is the file's error."""

    __slots__ = ("_file",)

    def __init__(self, file: FileState, operation: Operation, keep: object) -> None:
        super().__init__(file.comm, operation, keep)
        self._file = file

    def fill(self, status: Status) -> None:
        """Say how many bytes of memory were read or written."""
        describe_transfer(status, self.operation.received)
        status.Set_error(self.operation.error)

    def result(self, status: Status | None) -> Any:
        """The operation is complete.

        Raises:
            MPIException: it failed.
        """
        if status is not None:
            self.fill(status)
        if self.operation.error:
            raise self._file.raised(MPIError(self.operation.error, self.operation.detail))

    def cancel(self) -> None:
        """Nothing: what is read or written cannot be taken back."""


def describe_transfer(status: Status, size: int) -> None:
    """Have a status say how many bytes of memory were read or written."""
    status._clear()  # noqa: SLF001 - ours
    status.count = size


def checked_offset(offset: int) -> int:
    """An offset that the user gave.

    Raises:
        MPIError: ERR_ARG, it is negative.
    """
    if offset < 0:
        raise MPIError(ERR_ARG, f"an offset of {offset}")
    return offset


# --- one rank


def transfer_now(
    state: FileState, buffer: Any, place: int, status: Status | None, *, writes: bool
) -> None:
    """Read or write, and return when it is done.

    Raises:
        MPIError: it failed.
    """
    transfer = Transfer(state, buffer, writes=writes)
    if place == INDIVIDUAL:
        with state.pointer_lock:
            begin = transfer.first_position(place)
            moved = transfer.move_bytes(begin)
            state.position = begin + moved
    else:
        moved = transfer.move_bytes(transfer.first_position(place))
    size = transfer.stored(moved)
    if status is not None:
        describe_transfer(status, size)


def begin_transfer(state: FileState, buffer: Any, place: int, *, writes: bool) -> Request:
    """Read or write; the request tells what became of it.

    The system's calls for files do not wait for anybody, so it is done at once.

    Raises:
        MPIError: the arguments are wrong.
    """
    transfer = Transfer(state, buffer, writes=writes)
    begin = transfer.claimed_position(place)
    operation = Operation()
    try:
        operation.received = transfer.stored(transfer.move_bytes(begin))
    except MPIError as problem:
        operation.error, operation.detail = problem.code, problem.detail
    operation.complete = True
    return Request._adopt(FileRequestState(state, operation, buffer))  # noqa: SLF001 - ours


# --- all ranks


def _schedule(state: FileState, transfer: Transfer) -> Callable[..., Schedule]:
    module = state.module
    return module.schedule_write if transfer.writes else module.schedule_read


def transfer_together(
    state: FileState, buffer: Any, place: int, status: Status | None, *, writes: bool
) -> None:
    """Read or write, all members together, and return when it is done.

    Raises:
        MPIError: it failed at a member.
    """
    transfer = Transfer(state, buffer, writes=writes)
    begin = transfer.first_position(place)
    state.enter("Write_all" if writes else "Read_all")
    moved = state.complete(_schedule(state, transfer), transfer.access(begin)).size
    if place == INDIVIDUAL:
        state.position = begin + moved
    size = transfer.stored(moved)
    if status is not None:
        describe_transfer(status, size)


def begin_together(state: FileState, buffer: Any, place: int, *, writes: bool) -> FileRequestState:
    """Begin to read or write, all members together.

    Raises:
        MPIError: the arguments are wrong.
    """
    transfer = Transfer(state, buffer, writes=writes)
    begin = transfer.claimed_position(place)
    state.enter("Write_all" if writes else "Read_all")
    return _begun(state, transfer, begin, buffer)


def _begun(state: FileState, transfer: Transfer, begin: int, buffer: Any) -> FileRequestState:
    outcome = Outcome()
    exchange = state.exchange()
    made: list[Progression] = []
    steps = _schedule(state, transfer)(exchange, outcome, transfer.access(begin))
    made.append(Progression(exchange, _told(steps, outcome, transfer, made)))
    return FileRequestState(state, made[0].begin(), (buffer, transfer))


def _told(
    steps: Schedule, outcome: Outcome, transfer: Transfer, made: list[Progression]
) -> Generator[None, None, None]:
    """The steps, and at their end the request's error or size."""
    yield from steps
    request = made[0].request
    if outcome.problem is not None:
        request.error, request.detail = outcome.problem.code, outcome.problem.detail
    else:
        request.received = transfer.stored(outcome.size)


# --- all ranks, in their order


def place_in_order(state: FileState, transfer: Transfer) -> int:
    """Where a rank's part begins, when all use the shared pointer in the order of their ranks.

    Raises:
        MPIError: a member cannot be reached.
    """
    unit = state.view.unit
    exchange = state.exchange()
    found: list[int] = []

    def steps() -> Generator[None, None, None]:
        mine = _COUNT.pack(transfer.size // unit)
        counts = [_COUNT.unpack(each)[0] for each in (yield from tell_all(exchange, mine))]
        first = b""
        if exchange.rank == 0:  # whose memory it is, so this waits for nobody
            first = _COUNT.pack(state.shared.add_number(sum(counts)))
        told = yield from tell_all(exchange, first)
        found.append(_COUNT.unpack(told[0])[0] + sum(counts[: exchange.rank]))

    complete_schedule(exchange, steps())
    return found[0] * unit


def transfer_in_order(
    state: FileState, buffer: Any, status: Status | None, *, writes: bool
) -> None:
    """Read or write at the shared pointer, in the order of the ranks.

    Raises:
        MPIError: it failed at a member.
    """
    request = begin_in_order(state, buffer, writes=writes)
    state.world.engine.wait(request.operation)
    finish_operation(request, status)


def begin_in_order(state: FileState, buffer: Any, *, writes: bool) -> FileRequestState:
    """Begin to do so; the pointer is behind it when this returns."""
    transfer = Transfer(state, buffer, writes=writes)
    state.enter("Write_ordered" if writes else "Read_ordered")
    begin = place_in_order(state, transfer)
    return _begun(state, transfer, begin, buffer)


# --- split calls


def begin_split(state: FileState, name: str, begin: Callable[[], FileRequestState]) -> None:
    """Begin a collective call that another one ends; one of a file at a time.

    Raises:
        MPIError: ERR_OTHER, there is one already.
    """
    if state.split is not None:
        raise MPIError(ERR_OTHER, f"{state.split[0]} was begun on this file: end it first")
    state.split = name, begin()


def end_split(state: FileState, name: str, status: Status | None) -> None:
    """End it.

    Raises:
        MPIError: it failed; or ERR_OTHER, it has not begun.
    """
    begun = state.split
    if begun is None or begun[0] != name:
        other = "nothing" if begun is None else begun[0]
        raise MPIError(ERR_OTHER, f"{name}_end ends what {name}_begin has begun, not {other}")
    state.split = None
    request = begun[1]
    state.world.engine.wait(request.operation)
    finish_operation(request, status)


def finish_operation(request: RequestState, status: Status | None) -> None:
    """Tell what a complete operation has done.

    Raises:
        MPIError: it failed.
    """
    operation = request.operation
    if operation.error:
        raise MPIError(operation.error, operation.detail)
    if status is not None:
        request.fill(status)
