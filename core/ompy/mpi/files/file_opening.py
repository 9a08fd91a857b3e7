"""How the members of a communicator open a file together: all of them, or none."""

from __future__ import annotations

import os
from functools import partial
from typing import Any, Final

from ompy.data.errors import ERR_AMODE, ERR_BAD_FILE, ERR_COMM, ERR_OTHER, MPIError
from ompy.frameworks.collectives.call_kinds import KINDS
from ompy.frameworks.collectives.exchange import Exchange
from ompy.frameworks.collectives.schedule import Schedule, complete_schedule
from ompy.frameworks.collectives.values import tell_all
from ompy.frameworks.io import IoModule, Opening
from ompy.mpi import constants
from ompy.mpi.communicators.making import make_communicator
from ompy.mpi.files import file_transfers
from ompy.mpi.files.file_pointer import SharedPointer
from ompy.mpi.files.file_state import FileState
from ompy.mpi.files.told_accesses import note_opened
from ompy.mpi.state import CommState
from ompy.net.storage import CREATED_MODE
from ompy.runtime.ranks.io_selection import select_io

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
    state = FileState(comm, amode, hints, file_transfers)
    try:
        path = _agreed_path(state, filename, amode)
        state.module = _module_of(comm, path, amode, hints)
        try:
            _open_everywhere(state)
            _make_pointers(state)
        except MPIError:
            state.module.close()
            raise
    except Exception:
        comm.world.process.release(comm.communicator)
        raise
    return state


def _agreed_path(state: FileState, filename: Any, amode: int) -> str:
    """The file's path, if all members name one and the same way to open it."""
    state.enter(KINDS["File.Open"])
    path, problem, wrong = "", None, None
    try:
        check_amode(amode)
        path = path_text(filename)
    except MPIError as found:
        problem = found
    except (TypeError, ValueError) as found:  # what no path can be; the others are told, too
        problem, wrong = MPIError(ERR_BAD_FILE, str(found)), found
    try:
        state.settle(problem, amode, 0, True)
    except MPIError:
        if wrong is not None:
            raise wrong from None
        raise
    return path


def _module_of(comm: CommState, path: str, amode: int, hints: dict[str, str]) -> IoModule:
    """The module of a file that is to be opened."""
    opening = Opening(
        comm.communicator,
        path,
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
    return module


def _open_everywhere(state: FileState) -> None:
    """The first rank makes the file, the others find it there; its hints are everybody's."""
    module, opening = state.module, state.module.opening
    first = state.comm.communicator.rank == 0
    if first:
        note_opened(state.comm.communicator.context, opening.path, makes=opening.exclusive)
    make = partial(module.open, create=opening.create, exclusive=opening.exclusive)
    state.settle_attempt(first, make)
    if state.comm.size == 1:
        return
    find = partial(module.open, create=False, exclusive=False)
    if not state.settle_attempt(not first, find, fine=not opening.hints):
        exchange = state.exchange()
        complete_schedule(exchange, _tell_hints(exchange, module))


def _tell_hints(exchange: Exchange, module: IoModule) -> Schedule:
    told = yield from tell_all(exchange, module.say_hints())
    module.take_hints(told[0])


def _make_pointers(state: FileState) -> None:
    """The pointers, at the beginning or the end."""
    state.shared = SharedPointer(state.comm)
    if state.amode & constants.MODE_APPEND:
        state.position = state.seen_size()
        if state.comm.communicator.rank == 0:
            state.shared.prepare_turn(state.position)
        state.settle(None, 0, 0, True)  # so that nobody uses it before
        state.shared.turn()


def _permissions(hints: dict[str, str]) -> int:
    try:
        return int(hints.get("file_perm", ""), 8)
    except ValueError:
        return CREATED_MODE
