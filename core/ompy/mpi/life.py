"""The life of MPI in this interpreter: its one real rank, from Init to Finalize.

Only here are there handles of COMM_WORLD and COMM_SELF that belong to the interpreter; all else
works for any rank.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import _thread
import os
import sys
from functools import partial
from typing import Any, Final

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.frameworks.pml import Pml
from ompy.mpi.attributes import delete_all
from ompy.mpi.constants import THREAD_MULTIPLE, THREAD_SINGLE
from ompy.mpi.errhandler import ABORT, ARE_FATAL, RETURN
from ompy.mpi.errors import MPIException
from ompy.mpi.intracomm import Intracomm
from ompy.mpi.options import ERROR_KINDS, THREAD_LEVELS, rc, settle_options
from ompy.mpi.state import World

COMM_WORLD: Final = Intracomm()._constant("COMM_WORLD")
COMM_SELF: Final = Intracomm()._constant("COMM_SELF")

DISPLAY_COMM: Final = "bml_base_display_comm"  # the parameter behind --display-comm
_HANDLERS: Final = dict(zip(ERROR_KINDS, (ARE_FATAL, RETURN, ABORT, ARE_FATAL), strict=True))


class FinishedPml(Pml):
    """What a communicator has after Finalize: every call says that MPI is over."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        raise MPIError(ERR_OTHER, "MPI has been finalised: no messages any more")


class _Life:
    """What there is of MPI here.

    Attributes:
        world: the rank, once initialised.
        finalized: MPI is over.
        level: thread level.
        process: id of the process that was initialised; a forked child is another.
        thread: that was initialised.
        exit_status: of an abort at the end of the interpreter; 0 for none.
    """

    def __init__(self) -> None:
        self.world: World | None = None
        self.finalized = False
        self.level = THREAD_SINGLE
        self.process = 0
        self.thread = 0
        self.exit_status = 0


_life: Final = _Life()


def current() -> World:
    """This interpreter's rank.

    Raises:
        MPIException: ERR_OTHER, MPI is not initialised or over.
    """
    if _life.world is None or _life.finalized:
        raise MPIException(ERR_OTHER, "MPI is not initialised, or finalised already")
    return _life.world


def Init() -> None:
    """Initialise MPI, with the thread level `mpi4py.rc` asks for."""
    Init_thread(_wanted_level())


def Init_thread(required: int = THREAD_MULTIPLE) -> int:
    """Initialise MPI. Returns the thread level provided: the one asked for."""
    if _life.world is not None:
        raise MPIException(ERR_OTHER, "MPI has been initialised already")
    from ompy.mpi.world import communicators
    from ompy.runtime.world import bring_up

    errors, fast_reduce = _HANDLERS[rc.errors], bool(rc.fast_reduce)
    world, own = bring_up(partial(communicators, errors=errors, fast_reduce=fast_reduce))
    COMM_WORLD._inner = world
    COMM_SELF._inner = own
    _life.world = world.world
    _life.level = max(THREAD_SINGLE, min(required, THREAD_MULTIPLE))
    _life.process = os.getpid()
    _life.thread = _thread.get_ident()
    if world.world.process.registry.value(DISPLAY_COMM):
        from ompy.mpi.display_comm import display

        display(COMM_WORLD, world.world.process)
    return _life.level


def _wanted_level() -> int:
    if not rc.threads:
        return THREAD_SINGLE
    return THREAD_LEVELS.index(rc.thread_level)


def start_up() -> None:
    """Importing `MPI`: initialise, and finalise at the end, as `mpi4py.rc` says."""
    import atexit

    settle_options()
    finalize = rc.finalize
    if rc.initialize:
        Init()
        if finalize is None:
            finalize = True
    if finalize:
        atexit.register(_at_exit)
    _guard()


def _guard() -> None:
    """Have an uncaught exception end the whole job at once, and lines written when they are said.

    After the exit hook was registered: see `install_excepthook`.
    """
    if _life.world is not None:
        from ompy.runtime.uncaught import end_job_on_exception

        end_job_on_exception(_life.world.process)


def _at_exit() -> None:
    """The interpreter ends: finalise, unless it was an error that ended it."""
    if _life.world is None or _life.finalized or _life.process != os.getpid():
        return
    if _life.exit_status:
        _life.world.abort(_life.exit_status, "the program ended with an error")
    uncaught = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    if not uncaught:
        from ompy.runtime import ending

        # a rank that fails does not leave: whoever waits for it is ended with the job, and what
        # failed first has to be what the job ends with
        context = _life.world.process.context
        context.leaves = ending.code == 0
        context.fails = bool(ending.code)
        Finalize()


def Finalize() -> None:
    """Finalise MPI: what was sent is delivered, then nothing works any more."""
    from ompy.runtime.world import leave

    world = current()
    delete_all(COMM_SELF)
    leave(world.process)
    _life.finalized = True
    _close_communicators(world)


def _close_communicators(world: World) -> None:
    """Ranks and sizes can still be asked for; messages are errors."""
    over = FinishedPml()
    for communicator in world.process.communicators.values():
        communicator.pml = over
    COMM_WORLD._inner.pml = COMM_SELF._inner.pml = over


def Is_initialized() -> bool:
    """Whether MPI has been initialised."""
    return _life.world is not None


def Is_finalized() -> bool:
    """Whether MPI is over."""
    return _life.finalized


def Query_thread() -> int:
    """The thread level provided."""
    current()
    return _life.level


def Is_thread_main() -> bool:
    """Whether this thread initialised MPI."""
    current()
    return _life.thread == _thread.get_ident()


def _set_expendable(on: bool) -> None:
    """Whether the job goes on if this rank dies; who waits for it then gets ERR_PROC_FAILED."""
    assert _life.world is not None, "MPI is in use"
    _life.world.context.wireup.set_expendable(on)


def _set_abort_status(status: object) -> None:
    """Have the end of the interpreter end the whole job with an exit code."""
    if isinstance(status, int):
        _life.exit_status = status
    else:
        _life.exit_status = 0 if status is None else 1
