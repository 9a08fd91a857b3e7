"""Reads and writes of files: where they begin, what they move, what becomes of pointers."""

from __future__ import annotations

from collections.abc import Generator
from struct import Struct
from typing import Any, Final

from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.data.errors import ERR_ACCESS, ERR_ARG, ERR_IO, ERR_OTHER, MPIError
from ompy.data.message import Message
from ompy.data.request import Request as Operation
from ompy.frameworks.coll import ALIKE
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Progression, Schedule, complete_schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.io import Access, IoModule, Outcome
from ompy.frameworks.io_base.view import FileView
from ompy.mpi import constants
from ompy.mpi.buffers.common_forms import plain
from ompy.mpi.buffers.spec import message
from ompy.mpi.files.file_access import INDIVIDUAL, SHARED, refuse_file_call
from ompy.mpi.files.file_pointer import SharedPointer
from ompy.mpi.files.file_requests import FileRequestState, describe_transfer
from ompy.mpi.files.file_state import FileState
from ompy.mpi.files.file_view import TypedView
from ompy.mpi.files.told_accesses import note_request, note_transfer
from ompy.mpi.handles import plain_handle
from ompy.mpi.point_to_point.request import Request

if DECLARING:
    from ompy.frameworks.collectives.coll_selection import SelectedColl

_COUNT: Final = Struct("<q")
_READ_ALL: Final[int] = KINDS["File.Read_all"]
_READ_ORDERED: Final[int] = KINDS["File.Read_ordered"]
_WRITE_ALL: Final[int] = KINDS["File.Write_all"]
_WRITE_ORDERED: Final[int] = KINDS["File.Write_ordered"]
_ALIKE: Final = ALIKE
_INDIVIDUAL: Final = INDIVIDUAL
_SHARED: Final = SHARED
_WRONLY: Final = constants.MODE_WRONLY
# words of a collective access: what this rank has done before any message
_MOVED: Final = 0
_WAITS: Final = 1
_FAILED: Final = 2


@cclass
class Transfer:
    """What one call moves.

    Attributes:
        noted: the access, where an explored world is told of it; else 0.
        problem: what the disk said where that is not raised, or None.
        size: bytes in the file.
        writes: it goes into the file.
    """

    _convertor: Convertor | None
    _datatype: Any
    _memory: memoryview[int] | None
    _room: bytearray | None
    _said: Message
    _state: FileState
    noted: int
    problem: MPIError | None
    size: int
    writes: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, state: FileState, buffer: Any, writes: bool) -> None:
        """Look at a buffer.

        Raises:
            MPIError: the file is not open for this, or the bytes are no whole etypes.
        """
        self._state = state
        self._convertor = None
        self._datatype = None
        self._memory = None
        self._room = None
        self.noted = 0
        self.problem = None
        self.writes = writes
        if writes:
            state.check_writing()
        elif state.amode & _WRONLY:
            raise MPIError(ERR_ACCESS, f"{state.module.opening.path} is open for writing only")
        self._look_at(buffer)
        view: TypedView = state.view
        if self.size % view.unit:
            text = f"{self.size} bytes are no whole number of etypes of {view.unit} bytes"
            raise MPIError(ERR_ARG, text)
        if self.size and not view.seen.size:
            raise MPIError(ERR_ARG, "the view's filetype has no bytes")

    @cfunc
    def _look_at(self, buffer: Any) -> None:
        """Find the bytes that are moved."""
        view: TypedView = self._state.view
        form = view.representation
        if form is not None:
            self._represent(buffer, form)
            return
        said: Message | None = None
        if not isinstance(buffer, (list, tuple)):
            said = plain(buffer, not self.writes)
        if said is None:
            said = message(buffer, not self.writes).message
        self._said = said
        self.size = said.count * said.layout.size
        start: int = said.place()
        if start >= 0:
            memory = said.memory
            if start or len(memory) != self.size:
                memory = memory[start : start + self.size]
            self._memory = memory

    @cfunc
    def _represent(self, buffer: Any, form: Any) -> None:
        """The same, of bytes that are others in the file."""
        typed = message(buffer, not self.writes)
        self._said = typed.message
        self._datatype = typed.datatype
        if self.writes:
            self._memory = form.to_file(typed.datatype, typed.message.packed())
        else:
            self._room = bytearray(form.size(typed.datatype, typed.message.count))
            self._memory = memoryview(self._room)
        self.size = len(self._memory)

    @ccall
    def note_access(self, begin: int) -> int:
        """It begins there, which an explored world is told; returns the position."""
        state: FileState = self._state
        if state.comm.communicator.context.direct is not None:
            self.noted = note_transfer(state, begin, self.size, self.writes)
        return begin

    @ccall
    def first_position(self, place: int) -> int:
        """The position where it begins; the pointer of all goes on behind it.

        Args:
            place: etypes from the view's beginning; or INDIVIDUAL or SHARED.

        Raises:
            MPIError: ERR_ARG, that is no place.
        """
        state: FileState = self._state
        view: TypedView = state.view
        if place == _SHARED:
            place = state.shared.add_number(self.size // view.unit)
        else:
            state.check_seekable()
            if place == _INDIVIDUAL:
                view.check_end(state.position, self.size)
                return self.note_access(state.position)
        view.check_room(place, self.size)
        return self.note_access(place * view.unit)

    @ccall
    def claimed_position(self, place: int) -> int:
        """The same; the rank's own pointer goes on behind it, too."""
        if place != _INDIVIDUAL:
            return self.first_position(place)
        state: FileState = self._state
        with state.pointer_lock:
            begin: int = self.first_position(place)
            state.position = begin + self.size
        return begin

    @ccall
    def stored(self, size: int) -> int:
        """So many bytes were moved: give the user what was read.

        Returns:
            Bytes of that in memory.
        """
        view: TypedView = self._state.view
        if view.representation is None:
            return size
        return self._stored_otherwise(size, view.representation)

    @cfunc
    def _stored_otherwise(self, size: int, form: Any) -> int:
        said: Message = self._said
        if self._room is None:
            each: int = form.size(self._datatype, 1)
            return size // each * said.layout.size if each else 0
        elements = form.from_file(self._datatype, memoryview(self._room)[:size])
        said.convertor().unpack(0, memoryview(elements))
        return len(elements)

    @ccall
    def access(self, position: int) -> Any:
        """What io components are told."""
        view: TypedView = self._state.view
        if self._convertor is None:
            if self._memory is not None:
                self._convertor = ContiguousConvertor(self._memory)
            else:
                self._convertor = self._said.convertor()
        plainly: bool = view.representation is None
        return Access(position, self._convertor, self._said if plainly else None)

    @ccall
    def move_bytes(self, position: int) -> int:
        """Do it now, at this rank.

        Returns:
            Bytes of the file that were moved.

        Raises:
            MPIError: it failed.
        """
        if not self.size:
            return 0
        state: FileState = self._state
        module: IoModule = state.module
        seen: FileView = state.view.seen
        at: int = -1
        memory = self._memory
        if memory is not None and not module.atomic:
            at = seen.piece_at(position, self.size)
        if self.writes:
            if memory is not None and at >= 0:
                module.write_piece(memory, at)
            else:
                module.write(self.access(position))
            return self.size
        if memory is not None and at >= 0:
            return module.read_piece(memory, at)
        return module.read(self.access(position))

    @ccall
    def try_to_move(self, position: int) -> int:
        """Do it now; what fails is the problem."""
        try:
            return self.move_bytes(position)
        except MPIError as found:
            self.problem = found
        except MemoryError as found:
            self.problem = MPIError(ERR_IO, f"out of memory: {found}")
        return 0


@cfunc
def _tell_moved(transfer: Transfer, moved: int, status: Any) -> None:
    """Bytes of the file are in the user's memory, or come from there; a status, if any, says so.

    Raises:
        MPIError: as `Transfer.stored`.
    """
    size: int = transfer.stored(moved)
    if status is not None:
        describe_transfer(status, size)


# --- one rank


@ccall
def transfer_now(state: FileState, buffer: Any, place: int, status: Any, writes: bool) -> None:
    """Read or write, and return when it is done.

    Raises:
        MPIException: it failed.
    """
    moved: int
    try:
        transfer: Transfer = Transfer(state, buffer, writes)
        if place == _INDIVIDUAL:
            with state.pointer_lock:
                begin: int = transfer.first_position(place)
                moved = transfer.move_bytes(begin)
                state.position = begin + transfer.size  # also at the end (MPI standard, 14.4.1)
        else:
            moved = transfer.move_bytes(transfer.first_position(place))
        _tell_moved(transfer, moved, status)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def begin_transfer(state: FileState, buffer: Any, place: int, writes: bool) -> Any:
    """Read or write; the request tells what became of it.

    The system's calls for files do not wait for anybody, so it is done at once.

    Raises:
        MPIException: the arguments are wrong.
    """
    operation = Operation()
    try:
        transfer: Transfer = Transfer(state, buffer, writes)
        begin: int = transfer.claimed_position(place)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    try:
        operation.received = transfer.stored(transfer.move_bytes(begin))
    except MPIError as problem:
        operation.error, operation.detail = problem.code, problem.detail
    operation.complete = True
    line = state.comm.communicator.context.direct
    if line is not None:  # it may be the world that says when the program is told
        operation = line.watch_begun(state.comm.communicator.context_id, operation)
        note_request(state, transfer.noted, operation)
    return plain_handle(Request, FileRequestState(state, operation, buffer))


# --- all ranks


@ccall
def transfer_together(state: FileState, buffer: Any, place: int, status: Any, writes: bool) -> None:
    """Read or write, all members together, and return when it is done.

    Raises:
        MPIException: it failed at a member.
    """
    state.enter(_WRITE_ALL if writes else _READ_ALL)
    try:
        transfer: Transfer = Transfer(state, buffer, writes)
        begin: int = transfer.first_position(place)
        moved: int = _move_together(state, transfer, begin)
        if place == _INDIVIDUAL:
            state.position = begin + transfer.size
        _tell_moved(transfer, moved, status)
    except MPIError as problem:
        refuse_file_call(state, problem)
        raise state.raised(problem) from problem.__cause__
    except Exception as problem:
        refuse_file_call(state, problem)
        raise


@cfunc
def _move_together(state: FileState, transfer: Transfer, begin: int) -> int:
    """Move all members' parts, in the call that was entered last: bytes of the file.

    Raises:
        MPIError: it failed at a member.
    """
    module: IoModule = state.module
    alone: bool = module.moves_alone(begin, transfer.size, transfer.writes)
    moved: int = transfer.try_to_move(begin) if alone else 0
    word: int = _WAITS
    if alone:
        word = _MOVED if transfer.problem is None else _FAILED
    if state.compare(word) == _ALIKE and word == _MOVED:
        return moved
    outcome = Outcome()
    outcome.size, outcome.problem = moved, transfer.problem
    exchange = state.exchange()
    access, writes = transfer.access(begin), transfer.writes
    steps = state.module.schedule_access(exchange, outcome, access, writes=writes, moved=alone)
    complete_schedule(exchange, steps)
    if outcome.problem is not None:
        raise outcome.problem
    return int(outcome.size)


@ccall
def begin_together(
    state: FileState, buffer: Any, place: int, writes: bool, name: str
) -> FileRequestState:
    """Begin to read or write, all members together.

    Args:
        state: of the file.
        buffer: of the user.
        place: where, as `Transfer.first_position` has it.
        writes: into the file.
        name: of the call.

    Raises:
        MPIError: the arguments are wrong.
    """
    state.enter(KINDS[name])
    try:
        transfer: Transfer = Transfer(state, buffer, writes)
        begin: int = transfer.claimed_position(place)
        return _begun(state, transfer, begin, buffer)
    except Exception as problem:
        refuse_file_call(state, problem)
        raise


@ccall
def begin_request(state: FileState, buffer: Any, place: int, writes: bool) -> Any:
    """The same with a handle, for a call that returns one.

    Raises:
        MPIException: the arguments are wrong.
    """
    name: str = "File.Iwrite_all" if writes else "File.Iread_all"
    try:
        begun = begin_together(state, buffer, place, writes, name)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    return plain_handle(Request, begun)


@cfunc
def _begun(state: FileState, transfer: Transfer, begin: int, buffer: Any) -> FileRequestState:
    outcome = Outcome()
    exchange = state.exchange()
    made: list[Progression] = []
    module: IoModule = state.module
    alone: bool = module.moves_alone(begin, transfer.size, transfer.writes)
    if alone:
        outcome.size = transfer.try_to_move(begin)
        outcome.problem = transfer.problem
    access, writes = transfer.access(begin), transfer.writes
    steps = state.module.schedule_access(exchange, outcome, access, writes=writes, moved=alone)
    made.append(Progression(exchange, _told(steps, outcome, transfer, made)))
    communicator, begin_steps = state.comm.communicator, made[0].begin
    line = communicator.context.direct
    if line is None:
        return FileRequestState(state, begin_steps(), (buffer, transfer))
    watched = line.watch(communicator, communicator.order.tag(), begin_steps)
    note_request(state, transfer.noted, watched)
    return FileRequestState(state, watched, (buffer, transfer))


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


@cfunc
def _place_in_order(state: FileState, transfer: Transfer) -> int:
    """Where a rank's part begins, when all use the shared pointer in the order of their ranks.

    The first rank has said where the pointer is to be; when all have come again they turn to it.

    Raises:
        MPIError: a member cannot be reached.
    """
    shared: SharedPointer = state.shared
    unit: int = state.view.unit
    rank: int = state.comm.communicator.rank
    mine: int = transfer.size // unit
    counts: list[int] | None = [mine]
    first: int = -1
    if state.comm.size > 1:
        coll: SelectedColl = state.comm.collectives()
        counts = coll.hear_words(mine) if shared.is_common() else None
    if counts is None:
        exchange = state.exchange()
        found: list[list[int]] = []
        complete_schedule(exchange, _telling(exchange, state, mine, found))
        counts, (first,) = found
    else:
        first = shared.value()
    before: int = 0
    total: int = 0
    place: int
    for place in range(len(counts)):
        count: int = counts[place]
        total += count
        if place < rank:
            before += count
    state.view.check_room(first, total * unit)
    if rank == 0:
        shared.prepare_turn(first + total)
    return transfer.note_access((first + before) * unit)


def _telling(
    exchange: Exchange, state: FileState, mine: int, found: list[list[int]]
) -> Generator[None, None, None]:
    """Steps of a schedule: what each member moves, and where the pointer is, as the first says."""
    told = yield from tell_all(exchange, _COUNT.pack(mine))
    found.append([_COUNT.unpack(each)[0] for each in told])
    first = b""
    if exchange.rank == 0:
        first = _COUNT.pack(state.shared.value())  # whose memory it is, so this waits for nobody
    told = yield from tell_all(exchange, first)
    found.append([_COUNT.unpack(told[0])[0]])


@ccall
def transfer_in_order(state: FileState, buffer: Any, status: Any, writes: bool) -> None:
    """Read or write at the shared pointer, in the order of the ranks.

    Raises:
        MPIException: it failed at a member.
    """
    state.enter(_WRITE_ORDERED if writes else _READ_ORDERED)
    try:
        transfer: Transfer = Transfer(state, buffer, writes)
        begin: int = _place_in_order(state, transfer)
        try:
            moved: int = _move_together(state, transfer, begin)
        finally:
            state.shared.turn()
        _tell_moved(transfer, moved, status)
    except MPIError as problem:
        refuse_file_call(state, problem, state.shared.is_common())
        raise state.raised(problem) from problem.__cause__
    except Exception as problem:
        refuse_file_call(state, problem, state.shared.is_common())
        raise


@ccall
def begin_in_order(state: FileState, buffer: Any, writes: bool) -> FileRequestState:
    """Begin to do so; the pointer is behind it when this returns.

    Raises:
        MPIError: the arguments are wrong, or a member cannot be reached.
    """
    state.enter(KINDS["File.Write_ordered_begin" if writes else "File.Read_ordered_begin"])
    try:
        transfer: Transfer = Transfer(state, buffer, writes)
        begin: int = _place_in_order(state, transfer)
        state.settle(None, 0, 0, True)
        state.shared.turn()
        return _begun(state, transfer, begin, buffer)
    except Exception as problem:
        refuse_file_call(state, problem, state.shared.is_common())
        raise


# --- split calls


@ccall
def begin_split(state: FileState, name: str, buffer: Any, place: int, writes: bool) -> None:
    """Begin a collective call that another one ends; one of a file at a time.

    Args:
        state: of the file.
        name: of the call, without `_begin`.
        buffer: of the user.
        place: as `Transfer.first_position` has it; SHARED is for the order of the ranks.
        writes: into the file.

    Raises:
        MPIException: ERR_OTHER, there is one already; or the arguments are wrong.
    """
    called: str = "File.Write_all_begin" if writes else "File.Read_all_begin"
    try:
        if state.split is not None:
            raise MPIError(ERR_OTHER, f"{state.split[0]} was begun on this file: end it first")
        if place == _SHARED:
            state.split = name, begin_in_order(state, buffer, writes)
        else:
            state.split = name, begin_together(state, buffer, place, writes, called)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def end_split(state: FileState, name: str, status: Any) -> None:
    """End it.

    Raises:
        MPIException: it failed; or ERR_OTHER, it has not begun.
    """
    begun = state.split
    if begun is None or begun[0] != name:
        other = "nothing" if begun is None else begun[0]
        text = f"{name}_end ends what {name}_begin has begun, not {other}"
        raise state.raised(MPIError(ERR_OTHER, text))
    state.split = None
    request: FileRequestState = begun[1]
    operation = request.operation
    if not operation.complete:
        state.world.engine.wait(operation)
    request.result(status)
