"""What a file handle refers to, and how the members open a file together."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import _thread
import os
from collections.abc import Callable, Generator
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.data.errors import (
    CLASS_TEXT,
    ERR_AMODE,
    ERR_ARG,
    ERR_BAD_FILE,
    ERR_COMM,
    ERR_NOT_SAME,
    ERR_OTHER,
    ERR_READ_ONLY,
    ERR_UNSUPPORTED_OPERATION,
    MPIError,
)
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Progression, Schedule, complete_schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.io import IoModule, Opening, Outcome, agree
from ompy.mpi import constants
from ompy.mpi.callbacks import guarded
from ompy.mpi.communicators.making import make_communicator
from ompy.mpi.errhandler import ErrhandlerState
from ompy.mpi.errors import MPIException
from ompy.mpi.files.file_pointer import SharedPointer
from ompy.mpi.files.file_view import TypedView, view_of_bytes
from ompy.mpi.handles import State
from ompy.mpi.state import CommState, World
from ompy.net.storage import CREATED_MODE
from ompy.runtime.ranks.io_selection import select_io

if TYPE_CHECKING:
    from ompy.mpi.point_to_point.requeststate import RequestState

_SAME: Final = Struct("<q")
_WAYS: Final = constants.MODE_RDONLY | constants.MODE_WRONLY | constants.MODE_RDWR
_MODES: Final = (
    _WAYS
    | constants.MODE_CREATE
    | constants.MODE_EXCL
    | constants.MODE_DELETE_ON_CLOSE
    | constants.MODE_UNIQUE_OPEN
    | constants.MODE_SEQUENTIAL
    | constants.MODE_APPEND
)
Make = Callable[..., Schedule]  # of (exchange, outcome, ...)


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
    """

    __slots__ = (
        "amode",
        "api",
        "comm",
        "errhandler",
        "info",
        "module",
        "pointer_lock",
        "position",
        "shared",
        "split",
        "view",
        "world",
    )

    def __init__(self, comm: CommState, module: IoModule, amode: int, info: dict[str, str]) -> None:
        super().__init__()
        self.api: Any = None
        self.comm = comm
        self.world: World = comm.world
        self.module = module
        self.amode = amode
        self.view: TypedView = view_of_bytes()
        self.position = 0
        self.pointer_lock = _thread.allocate_lock()
        self.shared = SharedPointer(comm)
        self.split: tuple[str, RequestState] | None = None
        self.errhandler: ErrhandlerState = comm.world.file_errors
        self.info = info

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
        return raised_for(self.world, self.errhandler, lambda: self.api._adopt(self), problem)

    def enter(self, name: str) -> None:
        """This rank makes a call that all make together."""
        self.comm.communicator.order.begin(KINDS[f"File.{name}"], 0)

    def exchange(self) -> Exchange:
        """For the messages of the call that was entered last."""
        communicator = self.comm.communicator
        return Exchange(communicator, communicator.order.tag())

    def complete(self, make: Make, *arguments: Any) -> Outcome:
        """Run a schedule of the call that was entered last.

        Raises:
            MPIError: its outcome is one, or a member cannot be reached.
        """
        outcome = self._outcome(make, *arguments)
        if outcome.problem is not None:
            raise outcome.problem
        return outcome

    def _outcome(self, make: Make, *arguments: Any) -> Outcome:
        outcome = Outcome()
        exchange = self.exchange()
        complete_schedule(exchange, make(exchange, outcome, *arguments))
        return outcome

    def begin(self, make: Make, *arguments: Any) -> tuple[Progression, Outcome]:
        """Begin a schedule of the call that was entered last; its request has no error then."""
        outcome = Outcome()
        exchange = self.exchange()
        return Progression(exchange, make(exchange, outcome, *arguments)), outcome

    def agree_on(self, name: str, value: int, check: Callable[[], object] | None = None) -> None:
        """Enter a call in which all members say the same, or all fail.

        Args:
            name: of the call.
            value: that they have to agree on.
            check: what raises where this rank's arguments are wrong.

        Raises:
            MPIError: some member's check has failed; or ERR_NOT_SAME.
        """
        self.enter(name)
        self.complete(_agreeing, value, check)

    # --- what is set collectively

    def set_view(self, make: Callable[[], TypedView]) -> None:
        """Have another view; the pointers are at its beginning.

        Raises:
            MPIError: some member's view is wrong; all have what they had.
        """
        found: list[TypedView] = []
        self.agree_on("Set_view", 0, lambda: found.append(make()))
        view = found[0]
        if self.comm.communicator.rank == 0:
            self.shared.assign(0)
        self.complete(self.module.schedule_view, view.seen)
        self.view = view
        self.position = 0

    def check_writing(self) -> None:
        """See that it may be written.

        Raises:
            MPIError: ERR_READ_ONLY, it is open for reading only.
        """
        if not self.module.opening.writes:
            raise MPIError(ERR_READ_ONLY, f"{self.module.opening.path} is open for reading only")

    def check_seekable(self) -> None:
        """See that there are pointers and offsets.

        Raises:
            MPIError: ERR_UNSUPPORTED_OPERATION, it was opened with MODE_SEQUENTIAL.
        """
        if self.amode & constants.MODE_SEQUENTIAL:
            raise MPIError(ERR_UNSUPPORTED_OPERATION, "the file was opened with MODE_SEQUENTIAL")

    def resize(self, size: int) -> None:
        """Set the file's size; all members give the same.

        Raises:
            MPIError: it cannot be done.
        """
        self.agree_on("Set_size", size, lambda: self._check_size(size))
        self.complete(self.module.schedule_resize, size)

    def allocate(self, size: int) -> None:
        """Have room for so many bytes; all members give the same.

        Raises:
            MPIError: there is not so much.
        """
        self.agree_on("Preallocate", size, lambda: self._check_size(size))
        self.complete(self.module.schedule_allocate, size)

    def _check_size(self, size: int) -> None:
        self.check_writing()
        self.check_seekable()
        if size < 0:
            raise MPIError(ERR_ARG, f"a size of {size} bytes")

    def flush(self) -> None:
        """Have what all wrote on the device."""
        self.enter("Sync")
        self.complete(self.module.schedule_flush)

    def end_of_view(self) -> int:
        """Etypes that the file has in this rank's view."""
        return self.view.etypes_in(self.module.size())

    def close(self) -> None:
        """Close it; collective.

        Raises:
            MPIError: a split call has not ended; or what the disk says.
        """
        if self.split is not None:
            raise MPIError(ERR_OTHER, f"{self.split[0]} was begun on this file: end it first")
        try:
            self.enter("Close")
            outcome = self._outcome(self.module.schedule_close)
            self.shared.free()  # now that all have come: who has not is waited for by its own name
        finally:
            self.world.process.release(self.comm.communicator)
        if outcome.problem is not None:
            raise outcome.problem


def _agreeing(
    exchange: Exchange, outcome: Outcome, value: int, check: Callable[[], object] | None
) -> Generator[None, None, None]:
    """Steps of a schedule: all members' checks are passed, and all say the same."""
    try:
        if check is not None:
            check()
    except MPIError as problem:
        outcome.problem = problem
    yield from agree(exchange, outcome)
    if outcome.problem is None and exchange.size > 1:
        said = {
            _SAME.unpack(each)[0] for each in (yield from tell_all(exchange, _SAME.pack(value)))
        }
        if len(said) > 1:
            text = f"the members say {', '.join(map(str, sorted(said)))}"
            outcome.problem = MPIError(ERR_NOT_SAME, text)


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


def path_text(filename: Any) -> str:
    """A file's path as the system has it.

    Raises:
        MPIError: ERR_BAD_FILE, it is none.
    """
    path = os.fsdecode(filename)
    if not path or "\0" in path:
        raise MPIError(ERR_BAD_FILE, f"{path!r} is no path")
    return path


def check_amode(amode: int) -> None:
    """See that a way to open a file makes sense.

    Raises:
        MPIError: ERR_AMODE, it does not.
    """
    ways = amode & _WAYS
    reading = ways == constants.MODE_RDONLY
    making = amode & (constants.MODE_CREATE | constants.MODE_EXCL)
    wrong = (
        (amode & ~_MODES, f"{amode} has bits that mean nothing"),
        (ways & (ways - 1) or not ways, "it has to be one of MODE_RDONLY, MODE_WRONLY, MODE_RDWR"),
        (reading and making, "MODE_RDONLY goes with neither MODE_CREATE nor MODE_EXCL"),
        (
            ways == constants.MODE_RDWR and amode & constants.MODE_SEQUENTIAL,
            "MODE_RDWR does not go with MODE_SEQUENTIAL",
        ),
    )
    for problem, text in wrong:
        if problem:
            raise MPIError(ERR_AMODE, text)


def open_file(parent: CommState, filename: Any, amode: int, hints: dict[str, str]) -> FileState:
    """Open a file; all members of `parent` call this.

    Raises:
        MPIError: it cannot be opened at some member; it is open at none.
    """
    if parent.communicator.between:
        raise MPIError(ERR_COMM, "a file is of one group: Merge the two")
    order = parent.communicator.order
    comm = make_communicator(parent, range(parent.size), order.tag(), parent.api)
    comm.communicator.name = f"file {comm.communicator.context_id}"
    comm.share_fate_of(parent)
    try:
        module = _opened(comm, filename, amode, hints)
    except MPIError:
        comm.world.process.release(comm.communicator)
        raise
    state = FileState(comm, module, amode, hints)
    if amode & constants.MODE_APPEND:
        state.position = module.size()
        if comm.communicator.rank == 0:
            state.shared.assign(state.position)
        state.agree_on("Open", 0)  # so that nobody uses it before
    return state


def _opened(comm: CommState, filename: Any, amode: int, hints: dict[str, str]) -> IoModule:
    """The module of a file that was opened."""
    communicator = comm.communicator
    communicator.order.begin(KINDS["File.Open"], 0)
    exchange = Exchange(communicator, communicator.order.tag())
    outcome = Outcome()
    found: list[str] = []

    def check() -> None:
        check_amode(amode)
        found.append(path_text(filename))

    complete_schedule(exchange, _agreeing(exchange, outcome, amode, check))
    if outcome.problem is not None:
        raise outcome.problem
    opening = Opening(
        communicator,
        found[0],
        reads=not amode & constants.MODE_WRONLY,
        writes=not amode & constants.MODE_RDONLY,
        create=bool(amode & constants.MODE_CREATE),
        exclusive=bool(amode & constants.MODE_EXCL),
        delete=bool(amode & constants.MODE_DELETE_ON_CLOSE),
        permissions=_permissions(hints),
        hints=hints,
    )
    module = select_io(comm.world.process, opening)
    if module is None:
        raise MPIError(ERR_OTHER, "no component of io can open a file: see ompy-info --plugins")
    complete_schedule(exchange, module.schedule_open(exchange, outcome))
    if outcome.problem is not None:
        module.close()
        raise outcome.problem
    return module


def _permissions(hints: dict[str, str]) -> int:
    try:
        return int(hints.get("file_perm", ""), 8)
    except ValueError:
        return CREATED_MODE
