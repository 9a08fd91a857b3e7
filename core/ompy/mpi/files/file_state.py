"""What a file handle refers to, and how the members come to an agreement.

Most calls that all members make together are agreements and a local part. Where the members share
memory for collective calls, each shows a word of what it says there; only if these differ they send
messages, which say who differs and why. Elsewhere they always do.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import _thread
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from ompy import outputs
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.data.errors import (
    CLASS_TEXT,
    ERR_ARG,
    ERR_OTHER,
    ERR_READ_ONLY,
    ERR_UNSUPPORTED_OPERATION,
    MPIError,
)
from ompy.frameworks.coll import ALIKE
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import complete_schedule
from ompy.frameworks.io import IoModule, Outcome, attempt
from ompy.mpi import constants
from ompy.mpi.callbacks import guarded
from ompy.mpi.datatypes.datatype import state_of
from ompy.mpi.datatypes.typestate import TypeState
from ompy.mpi.errhandler import ErrhandlerState
from ompy.mpi.errors import MPIException
from ompy.mpi.files.file_pointer import SharedPointer
from ompy.mpi.files.file_settling import SAID, settle_by_messages
from ompy.mpi.files.file_view import TypedView, beyond, view_of_bytes
from ompy.mpi.files.told_accesses import note_resized, note_size, remove_noted
from ompy.mpi.handles import State
from ompy.mpi.state import CommState, World

if DECLARING:
    from ompy.frameworks.collectives.call_order import CallOrder
    from ompy.frameworks.collectives.coll_selection import SelectedColl
    from ompy.frameworks.communicator import Communicator

_RDONLY: Final = constants.MODE_RDONLY
_SEQUENTIAL: Final = constants.MODE_SEQUENTIAL
_CURRENT: Final = constants.DISPLACEMENT_CURRENT
_VIEWS: Final = 8  # arbitrary: as many are kept of a file
_SEEK_CUR: Final = constants.SEEK_CUR
_SEEK_END: Final = constants.SEEK_END
_SEEK_SET: Final = constants.SEEK_SET
_ALIKE: Final = ALIKE
_CLOSE: Final[int] = KINDS["File.Close"]
_PREALLOCATE: Final[int] = KINDS["File.Preallocate"]
_SEEK_SHARED: Final[int] = KINDS["File.Seek_shared"]
_SET_ATOMICITY: Final[int] = KINDS["File.Set_atomicity"]
_SET_INFO: Final[int] = KINDS["File.Set_info"]
_SET_SIZE: Final[int] = KINDS["File.Set_size"]
_SET_VIEW: Final[int] = KINDS["File.Set_view"]
_SYNC: Final[int] = KINDS["File.Sync"]
# places in a word of 63 bits; arbitrary: offsets and sizes have room, and what else is said
VALUE_SHIFT: Final = 4
VALUES: Final = 1 << 56
MORE_SHIFT: Final = 1
MORES: Final = 8
# a word that no other rank says: what there is to say takes messages
OWN: Final = 1 << 62


@cclass
class FileState(State):
    """A file.

    Attributes:
        api: class of its handles.
        comm: communicator of its own.
        world: the rank.
        module: who serves it.
        amode: how it was opened.
        view: what this rank sees.
        position: of this rank's pointer, in bytes that it sees.
        pointer_lock: held by the thread of the rank that uses that.
        shared: the pointer of all.
        split: the split collective call that has begun, its name and what it gives; or None.
        errhandler: what happens when a call fails.
        info: hints of the user.
        room: bytes that were allocated, and not cut off since.
        transfers: the module that reads and writes, which is above this one.
    """

    _views: dict[Any, TypedView]
    amode: int
    api: Any
    comm: CommState
    errhandler: ErrhandlerState
    info: Any
    module: IoModule
    pointer_lock: Any
    position: int
    room: int
    shared: SharedPointer
    split: Any
    transfers: Any
    view: TypedView
    world: World
    __slots__ = tuple(__annotations__)

    def __init__(self, comm: CommState, amode: int, info: dict[str, str], transfers: Any) -> None:
        """A file that is being opened: it has no module yet, and no pointer of all."""
        self.number = 0
        self.api = None
        self.comm = comm
        self.world = comm.world
        self.module = None  # type: ignore[assignment]
        self.amode = amode
        self._views = {}
        self.view = view_of_bytes()
        self.position = 0
        self.pointer_lock = _thread.allocate_lock()
        self.shared = None  # type: ignore[assignment]
        self.split = None
        self.errhandler = comm.world.file_errors
        self.info = info
        self.room = 0
        self.transfers = transfers

    # --- calls and errors

    def call(self, function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        """Call something below.

        Raises:
            MPIException: it failed; the error handler had its say.
        """
        try:
            return function(*arguments, **more)
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__

    def raised(self, problem: MPIError) -> MPIException:
        """The exception for a call that failed, after the error handler had its say."""
        self.comm.give_up_after(problem)
        return raised_for(self.world, self.errhandler, self._handle, problem)

    def _handle(self) -> Any:
        return self.api._adopt(self)

    @ccall
    def enter(self, kind: U64) -> None:
        """This rank makes a call that all make together, by the number of its name."""
        order: CallOrder = self.comm.communicator.order
        order.begin(kind, 0)

    @ccall
    def exchange(self) -> Exchange:
        """For the messages of the call that was entered last."""
        communicator = self.comm.communicator
        return Exchange(communicator, communicator.order.tag())

    @ccall
    def compare(self, word: U64) -> int:
        """Whether all members say the same: `compare_words` of `coll`."""
        if self.comm.size == 1:
            return _ALIKE
        coll: SelectedColl = self.comm.collectives()
        return coll.compare_words(word)

    # --- agreement

    @ccall
    def settle(self, problem: MPIError | None, value: int, more: int, fine: bool) -> bool:
        """See that no member has a problem, and that all say the same.

        Args:
            problem: this rank's, or None.
            value: what all have to say alike.
            more: the same, of few bits.
            fine: what they need not say alike.

        Returns:
            Whether all are fine.

        Raises:
            MPIError: the first member's problem, by rank; or ERR_NOT_SAME.
        """
        communicator: Communicator = self.comm.communicator
        common: bool = problem is None and 0 <= value < VALUES and 0 <= more < MORES
        word: U64 = OWN + communicator.rank
        if common:
            word = value << VALUE_SHIFT | more << MORE_SHIFT | fine
        if self.comm.size == 1 and problem is None:
            return fine
        if self.compare(word) == _ALIKE and common:
            return fine
        found = self._settle_by_messages(problem, SAID.pack(value, more, fine))
        if found.problem is not None:
            raise found.problem
        return found.size != 0

    def common_problem(self, problem: MPIError | None) -> MPIError | None:
        """The problem of the first member, by rank, that has one; or None.

        Raises:
            MPIError: a member cannot be reached.
        """
        rank: int = self.comm.communicator.rank
        word: U64 = 0 if problem is None else OWN + rank
        if self.compare(word) == _ALIKE and (problem is None or self.comm.size == 1):
            return problem
        return self._settle_by_messages(problem, SAID.pack(0, 0, True)).problem

    @cfunc
    def _settle_by_messages(self, problem: MPIError | None, said: bytes) -> Outcome:
        """What comes of it; its size says whether all are fine."""
        outcome = Outcome()
        outcome.problem = problem
        exchange = self.exchange()
        word: U64 = self.comm.communicator.order.word
        complete_schedule(exchange, settle_by_messages(exchange, outcome, said, word))
        return outcome

    def settle_attempt(self, mine: bool, call: Callable[[], object], fine: bool = True) -> bool:
        """Have this rank, or not, do something, and all hear whether that went well.

        Returns:
            Whether all say that they are fine.

        Raises:
            MPIError: the first problem, by rank.
        """
        outcome = Outcome()
        if mine:
            attempt(outcome, call)
        return self.settle(outcome.problem, 0, 0, fine)

    # --- what is set collectively

    @ccall
    def set_atomicity(self, flag: bool) -> None:
        """Say whether accesses are atomic; all members say the same.

        Raises:
            MPIException: they do not.
        """
        self.enter(_SET_ATOMICITY)
        try:
            self.settle(None, flag, 0, True)
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__
        self.module.atomic = flag

    def set_info(self, info: dict[str, str]) -> None:
        """Have more hints; all members have some.

        Raises:
            MPIError: a member cannot be reached.
        """
        self.enter(_SET_INFO)
        self.settle(None, 0, 0, True)
        self.info.update(info)

    def set_view(self, displacement: int, etype: Any, filetype: Any, datarep: str) -> None:
        """Have another view; the pointers are at its beginning.

        Args:
            displacement: byte where it begins, or DISPLACEMENT_CURRENT.
            etype: handle of what offsets count.
            filetype: of what is repeated; None for the etype.
            datarep: name of the representation.

        Raises:
            MPIException: some member's view is wrong; all have what they had.
        """
        self.enter(_SET_VIEW)
        problem: MPIError | None = None
        view: TypedView | None = None
        shared: SharedPointer = self.shared
        try:
            view = self._view_of(displacement, etype, filetype, datarep)
        except MPIError as found:
            problem = found
        try:
            if self.comm.communicator.rank == 0:
                shared.prepare_turn(0)
            self.settle(problem, 0 if view is None else view.mark, 0, True)
        except MPIError as common:
            raise self.raised(common) from common.__cause__
        assert view is not None, "no member had a problem"
        shared.turn()
        module: IoModule = self.module
        module.set_view(view.seen)
        self.view = view
        self.position = 0

    @cfunc
    def _view_of(self, displacement: int, etype: Any, filetype: Any, datarep: str) -> TypedView:
        """A view, which is kept, as some programs go to and fro between a few."""
        elementary: TypeState = state_of(etype)
        repeated: TypeState = elementary if filetype is None else state_of(filetype)
        if displacement == _CURRENT:
            displacement = self.view.byte_at(self.shared.value())
        key = displacement, elementary, repeated, datarep
        found: TypedView | None = self._views.get(key)
        if found is None:
            found = TypedView(displacement, elementary, repeated, datarep)
            if len(self._views) >= _VIEWS:
                self._views.clear()
            self._views[key] = found
        return found

    @ccall
    def check_writing(self) -> None:
        """See that it may be written.

        Raises:
            MPIError: ERR_READ_ONLY, it is open for reading only.
        """
        if self.amode & _RDONLY:
            raise MPIError(ERR_READ_ONLY, f"{self.module.opening.path} is open for reading only")

    @ccall
    def check_seekable(self) -> None:
        """See that there are pointers and offsets.

        Raises:
            MPIError: ERR_UNSUPPORTED_OPERATION, it was opened with MODE_SEQUENTIAL.
        """
        if self.amode & _SEQUENTIAL:
            raise MPIError(ERR_UNSUPPORTED_OPERATION, "the file was opened with MODE_SEQUENTIAL")

    def resize(self, size: int) -> None:
        """Set the file's size; all members give the same.

        Raises:
            MPIError: it cannot be done.
        """
        self.enter(_SET_SIZE)
        self.settle(self._wrong_size(size), size, 0, True)
        self.room = min(self.room, size)
        self.settle_attempt(self.comm.communicator.rank == 0, partial(self._resize, size))

    def _resize(self, size: int) -> None:
        if self.comm.communicator.context.direct is not None:
            note_resized(self, size)
        self.module.resize(size)

    @ccall
    def allocate(self, size: int) -> None:
        """Have room for so many bytes; all members give the same.

        What was allocated before is not asked for again, unless the first rank sees that the file
        was cut off since.

        Raises:
            MPIException: there is not so much.
        """
        try:
            self._allocate(size)
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__

    @cfunc
    def _allocate(self, size: int) -> None:
        first: bool = self.comm.communicator.rank == 0
        self.enter(_PREALLOCATE)
        problem: MPIError | None = self._wrong_size(size)
        there: bool = size <= self.room
        if there and first and problem is None:
            try:
                there = self.module.size() >= size
            except MPIError as found:
                problem = found
        if not self.settle(problem, size, 0, there):
            if first and self.comm.communicator.context.direct is not None:
                note_resized(self, size)
            self.settle_attempt(first, partial(self.module.allocate, size))
            self.room = max(self.room, size)

    @cfunc
    def _wrong_size(self, size: int) -> MPIError | None:
        """What is wrong with setting a size."""
        try:
            self.check_writing()
            self.check_seekable()
        except MPIError as found:
            return found
        return None if size >= 0 else MPIError(ERR_ARG, f"a size of {size} bytes")

    def flush(self) -> None:
        """Have what all wrote on the device.

        Where the members are on one host, and a flush of one member stores what all wrote, that of
        the first is enough: when all have come, all have written.

        Raises:
            MPIError: the first problem, by rank.
        """
        self.enter(_SYNC)
        module: IoModule = self.module
        mine: bool = module.opening.writes
        if self.comm.size == 1 or self.compare(0) != _ALIKE or not module.flushes_for_host():
            self.settle_attempt(mine, module.flush)
            module.refresh()
        else:
            self.settle_attempt(mine and self.comm.communicator.rank == 0, module.flush)

    @ccall
    def seek_shared(self, offset: int, whence: int) -> None:
        """Move the pointer of all; all say the same.

        Raises:
            MPIException: ERR_NOT_SAME; or ERR_ARG, there is no such place.
        """
        try:
            self._seek_shared(offset, whence)
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__

    @cfunc
    def _seek_shared(self, offset: int, whence: int) -> None:
        self.enter(_SEEK_SHARED)
        shared: SharedPointer = self.shared
        first: bool = self.comm.communicator.rank == 0
        problem: MPIError | None = None
        try:
            self.check_seekable()
            if whence == _SEEK_SET:
                moved_by(self.view, 0, offset)
                if first:
                    shared.prepare_turn(offset)
        except MPIError as found:
            problem = found
        self.settle(problem, offset, whence - _SEEK_SET, True)
        if whence != _SEEK_SET:
            self.settle_attempt(first, partial(self._prepare_from, offset, whence))
        shared.turn()

    def _prepare_from(self, offset: int, whence: int) -> None:
        """Say where the pointer is to be, from where it is or from the end."""
        here = self.shared.value() if whence == _SEEK_CUR else 0
        self.shared.prepare_turn(self.target(offset, whence, here))

    @ccall
    def seek(self, offset: int, whence: int) -> None:
        """Move this rank's pointer.

        Raises:
            MPIException: ERR_ARG, there is no such place; or there are no pointers.
        """
        unit: int = self.view.unit
        try:
            self.check_seekable()
            self.position = self.target(offset, whence, self.position // unit) * unit
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__

    @ccall
    def here(self) -> int:
        """Where this rank's pointer is, in etypes."""
        return self.position // self.view.unit

    @ccall
    def shared_value(self) -> int:
        """Where the pointer of all is, in etypes.

        Raises:
            MPIException: its owner cannot be reached.
        """
        shared: SharedPointer = self.shared
        try:
            return shared.value()
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__

    @ccall
    def size(self) -> int:
        """Bytes in the file.

        Raises:
            MPIException: the system says something else.
        """
        try:
            return self.seen_size()
        except MPIError as problem:
            raise self.raised(problem) from problem.__cause__

    @ccall
    def target(self, offset: int, whence: int, here: int) -> int:
        """Where a pointer is moved to, from the place where it is.

        Raises:
            MPIError: ERR_ARG, there is no such place.
        """
        if whence == _SEEK_SET:
            here = 0
        elif whence == _SEEK_END:
            here = self.end_of_view()
        elif whence != _SEEK_CUR:
            raise MPIError(ERR_ARG, f"whence is {whence}, none of the SEEK constants")
        return moved_by(self.view, here, offset)

    def end_of_view(self) -> int:
        """Etypes that the file has in this rank's view."""
        return self.view.etypes_in(self.seen_size())

    def seen_size(self) -> int:
        """Bytes in the file, as this rank sees it now.

        Raises:
            MPIError: the system says something else.
        """
        if self.comm.communicator.context.direct is not None:
            note_size(self)
        return self.module.size()

    def close(self) -> None:
        """Close it; collective.

        Raises:
            MPIError: a split call has not ended; or what the disk says.
        """
        if self.split is not None:
            raise MPIError(ERR_OTHER, f"{self.split[0]} was begun on this file: end it first")
        try:
            self.enter(_CLOSE)
            outcome = Outcome()
            attempt(outcome, self.module.close)
            problem = self.common_problem(outcome.problem)
            if self.module.opening.delete:
                outcome = Outcome()
                if self.comm.communicator.rank == 0:
                    attempt(outcome, remove_noted, self.world.context, self.module.opening.path)
                problem = self.common_problem(outcome.problem) or problem
            self.shared.free()  # now that all have come: who has not is waited for by its own name
        except MPIError:
            self._close_alone()
            raise
        finally:
            self.world.process.release(self.comm.communicator)
        if problem is not None:
            raise problem

    def _close_alone(self) -> None:
        """Close it at this member, as others cannot be reached: some have died.

        Whoever is left removes a file that is to go: nobody knows who of them is the first.
        """
        attempt(Outcome(), self.module.close)
        if self.module.opening.delete:
            attempt(Outcome(), remove_noted, self.world.context, self.module.opening.path)


@ccall
def moved_by(view: TypedView, here: int, offset: int) -> int:
    """Where a pointer is that is moved by so many etypes.

    Raises:
        MPIError: ERR_ARG, there is no such place.
    """
    if offset > view.most - here:
        raise beyond(offset, view.most)
    if here + offset < 0:
        raise MPIError(ERR_ARG, f"a pointer at {here + offset}")
    return here + offset


def raised_for(
    world: World,
    handler: ErrhandlerState,
    handle: Callable[[], Any],
    problem: MPIError,
) -> MPIException:
    """The exception for a call on a file, after its error handler had its say."""
    if handler.ends_job:
        code = problem.code if problem.code in CLASS_TEXT else ERR_OTHER
        text = f"rank {world.context.rank}: {problem} (errors of files end the job)"
        outputs.tell(f"*** {text}; the error handler is fatal\n", "fatal error", "error")
        world.abort(code, text)
    if handler.function is not None:
        guarded(handler.function, handle(), problem.code)
    if isinstance(problem, MPIException):
        return problem
    made = MPIException(problem.code, problem.detail)
    made.__cause__ = problem.__cause__
    return made
