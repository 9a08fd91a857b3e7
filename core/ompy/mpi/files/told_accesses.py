"""What an explored world is told of a rank's accesses to files (`ompy sim --explore`)."""

from __future__ import annotations

import os
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_NO_SUCH_FILE, MPIError
from ompy.frameworks.direct import FILE, NAME, STORED, DirectLine
from ompy.net.storage import remove_file

if TYPE_CHECKING:
    from ompy.data.request import Request
    from ompy.mpi.files.file_state import FileState

# arbitrary: a byte of no file. The size of a file counts as what is before it
END: Final = 1 << 63
RUNS_MOST: Final = 4096  # arbitrary: beyond that, what lies between counts, too

_opened: set[str] = set()  # real paths that this rank has opened in this world, and not deleted


def note_transfer(state: FileState, begin: int, size: int, writes: bool) -> int:
    """A rank reads or writes, from a position of its view on.

    Returns:
        The access, for `note_request`; 0 where nobody is told.
    """
    line = _line_of(state)
    if line is None or not size:
        return 0
    found = state.view.seen.runs(begin, begin + size)
    runs = [(at, at + length) for at, _, length in islice(found, RUNS_MOST)]
    rest = [(at, at + length) for at, _, length in found]
    if rest:
        runs.append((min(low for low, _ in rest), max(high for _, high in rest)))
    return line.note_access(FILE, _path_of(state), sorted(runs), writes=writes)


def note_request(state: FileState, access: int, request: Request) -> None:
    """An access goes on until the program is told of its end."""
    line = _line_of(state)
    if line is None or not access or request.complete:
        return
    line.extend_access(access)
    request.notify(partial(line.end_access, access))


def note_size(state: FileState) -> None:
    """A rank looks how large a file is: any write may change that."""
    line = _line_of(state)
    if line is not None:
        line.note_access(FILE, _path_of(state), [(0, END)], writes=False)


def note_resized(state: FileState, size: int) -> None:
    """A rank cuts a file off, or makes it longer."""
    line = _line_of(state)
    if line is not None:
        line.note_access(FILE, _path_of(state), [(size, END)], writes=True)


def note_opened(context: Any, path: str, *, makes: bool) -> None:
    """A rank opens a file, or makes one of that name."""
    line = context.direct
    if line is not None and line.explores:
        name = os.path.realpath(path)
        line.note_access(NAME, f"file {name}", [(0, END)], writes=makes)
        _opened.add(name)


def remove_noted(context: Any, path: str) -> None:
    """Delete a file.

    In an explored world another one may have deleted it already, as files are not the world's. So
    there that is no error, if this rank has opened it and has not deleted it since.

    Raises:
        MPIError: it cannot be deleted.
    """
    line = context.direct
    if line is None or not line.explores:
        remove_file(path)
        return
    name = os.path.realpath(path)
    line.note_access(NAME, f"file {name}", [(0, END)], writes=True)
    was_there = name in _opened
    _opened.discard(name)
    try:
        remove_file(path)
    except MPIError as problem:
        if not was_there or problem.code != ERR_NO_SUCH_FILE:
            raise
        line.note_untried(STORED)


def _line_of(state: FileState) -> DirectLine | None:
    line = state.comm.communicator.context.direct
    return line if line is not None and line.explores else None


def _path_of(state: FileState) -> str:
    path: str = state.module.opening.path
    return os.path.realpath(path)
