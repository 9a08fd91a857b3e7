"""The life of MPI in this interpreter: its one real rank, from Init to Finalize.

Sessions (`sessions.py`) bring the rank up as `Init` does, and then keep it until the interpreter
ends, as another session may begin at any time. COMM_WORLD and COMM_SELF are there from the first of
both, for agreements; their handles are null before `Init`.

Only here are there handles of COMM_WORLD and COMM_SELF that belong to the interpreter; all else
works for any rank.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

import _thread
import os
import sys
from collections.abc import Callable
from typing import Any, Final

from ompy.data.errors import ERR_OTHER
from ompy.frameworks.collectives.coll_selection import SelectedColl
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import Pml
from ompy.mpi.communicators.attributes import delete_all
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.constants import THREAD_MULTIPLE, THREAD_SINGLE
from ompy.mpi.errhandler import ABORT, ARE_FATAL, RETURN, ErrhandlerState
from ompy.mpi.errors import MPIException
from ompy.mpi.processes.options import ERROR_KINDS, THREAD_LEVELS, rc, settle_options
from ompy.mpi.state import CommState, World
from ompy.runtime.ranks.process import RankProcess

COMM_WORLD: Final = Intracomm()._constant("COMM_WORLD")
COMM_SELF: Final = Intracomm()._constant("COMM_SELF")

DISPLAY_COMM: Final = "bml_base_display_comm"  # the parameter behind --display-comm
_HANDLERS: Final = dict(zip(ERROR_KINDS, (ARE_FATAL, RETURN, ABORT, ARE_FATAL), strict=True))


class FinishedPml(Pml):
    """What a communicator has after Finalize: every call says that MPI is over.

    But for what follows from that: nobody is told of the failure, and nothing has come.
    """

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in {"abandon", "unreceived", "pending_receives"}:
            return _nothing
        raise _over()


class FinishedColl(SelectedColl):
    """The same for collective calls."""

    def __getattribute__(self, name: str) -> Any:
        raise _over()


def _nothing(*_: object) -> tuple[()]:
    return ()


def _over() -> MPIException:
    return MPIException(ERR_OTHER, "MPI has been finalised: no messages any more")


class _Life:
    """What there is of MPI here.

    Attributes:
        states: what COMM_WORLD and COMM_SELF refer to, once the rank is up.
        world: the rank, once initialised.
        finalized: MPI was initialised and is over; sessions may go on.
        sessions: there has been one: the rank is up until the interpreter ends.
        finalizes: MPI is finalised at the end of the interpreter.
        left: so it has been, at the end of the interpreter.
        level: thread level.
        process: id of the process that was initialised; a forked child is another.
        thread: that was initialised.
        exit_status: of an abort at the end of the interpreter; 0 for none.
        when_up: called once with the rank, before the program makes its first call.
    """

    def __init__(self) -> None:
        self.states: tuple[CommState, CommState] | None = None
        self.world: World | None = None
        self.finalized = False
        self.sessions = False
        self.finalizes = False
        self.left = False
        self.level = THREAD_SINGLE
        self.process = 0
        self.thread = 0
        self.exit_status = 0
        self.when_up: Callable[[RankProcess], object] | None = None


_life: Final = _Life()


def current() -> World:
    """This interpreter's rank.

    Raises:
        MPIException: ERR_OTHER, MPI is not initialised or over.
    """
    if not _life.sessions and (_life.world is None or _life.finalized):
        raise MPIException(ERR_OTHER, "MPI is not initialised, or finalised already")
    assert _life.states is not None, "it is up"
    return _life.states[0].world


def predefined_states() -> tuple[CommState, ...]:
    """What COMM_WORLD and COMM_SELF refer to, once the rank is up."""
    return _life.states or ()


def is_up() -> bool:
    """Whether there is a rank: MPI is initialised and not over, or there has been a session."""
    return _life.sessions or (_life.world is not None and not _life.finalized)


def _bring_up() -> tuple[CommState, CommState]:
    """Bring the rank up, or use the one there is: for `Init`, and for the first session."""
    from ompy.runtime.ranks.rank_start import bring_up

    errors, fast_reduce = _HANDLERS[rc.errors], bool(rc.fast_reduce)

    def make(process: RankProcess) -> tuple[CommState, CommState]:
        return _life.states or _begin(process, errors, fast_reduce=fast_reduce)

    fresh = _life.states is None
    _life.states = bring_up(make)
    _life.process = os.getpid()
    _life.thread = _thread.get_ident()
    if fresh and _life.when_up is not None:
        _life.when_up(_life.states[0].world.process)
    return _life.states


def open_session() -> World:
    """The rank, for a new session. It is brought up for the first one, if MPI has not been.

    Raises:
        MPIException: ERR_OTHER, MPI was initialised and is over: this process has left the job.
    """
    if not _life.sessions:
        if _life.finalized:
            raise MPIException(
                ERR_OTHER,
                "this process has left its job with MPI_Finalize: begin a session before that",
            )
        import atexit

        _bring_up()
        _life.sessions = True
        atexit.register(_at_exit)
        _guard()
    return current()


def Init() -> None:
    """Initialise MPI, with the thread level `mpi4py.rc` asks for."""
    Init_thread(_wanted_level())


def Init_thread(required: int = THREAD_MULTIPLE) -> int:
    """Initialise MPI. Returns the thread level provided: the one asked for."""
    if _life.world is not None:
        raise MPIException(ERR_OTHER, "MPI has been initialised already")
    world, own = _bring_up()
    COMM_WORLD._inner = world
    COMM_SELF._inner = own
    _life.world = world.world
    _life.level = max(THREAD_SINGLE, min(required, THREAD_MULTIPLE))
    if world.world.process.registry.value(DISPLAY_COMM):
        from ompy.mpi.communicators.display_comm import display

        display(COMM_WORLD, world.world.process)
    return _life.level


def _begin(
    process: RankProcess, errors: ErrhandlerState, *, fast_reduce: bool
) -> tuple[CommState, CommState]:
    """COMM_WORLD and COMM_SELF; in a process that was spawned, the parents too."""
    from ompy.mpi.communicators.predefined_comms import communicators

    world, own = communicators(process, errors, fast_reduce=fast_reduce)
    if process.context.me.world:
        from ompy.mpi.processes.spawning import meet_parents

        meet_parents(world)
    return world, own


def _wanted_level() -> int:
    if not rc.threads:
        return THREAD_SINGLE
    return THREAD_LEVELS.index(rc.thread_level)


def tell_when_up(what: Callable[[RankProcess], object]) -> None:
    """Have a function called with the rank, before the program makes its first call."""
    _life.when_up = what


def start_up() -> None:
    """Importing `MPI`: initialise, and finalise at the end, as `mpi4py.rc` says."""
    import atexit

    settle_options()
    finalize = rc.finalize
    if rc.initialize:
        Init()
        if finalize is None:
            finalize = True
    _life.finalizes = bool(finalize)
    if finalize:
        atexit.register(_at_exit)
    _guard()


def _guard() -> None:
    """Have an uncaught exception end the whole job at once, and lines written when they are said.

    After the exit hook was registered: see `install_excepthook`.
    """
    if _life.states is not None:
        from ompy.runtime.diagnosis.uncaught import end_job_on_exception

        end_job_on_exception(_life.states[0].world.process)


def _at_exit() -> None:
    """The interpreter ends: finalise, unless it was an error that ended it."""
    from ompy.runtime.ranks import ending

    own = os.getpid() in {_life.process, ending.twin}
    if not is_up() or _life.left or not own:
        return
    _life.left = True
    world = current()
    if _life.exit_status:
        world.abort(_life.exit_status, "the program ended with an error")
    uncaught = getattr(sys, "last_value", None) is not None and not hasattr(sys, "ps1")
    if not uncaught:
        # a rank that fails does not leave: whoever waits for it is ended with the job, and what
        # failed first has to be what the job ends with
        context = world.process.context
        context.leaves = ending.code == 0
        context.fails = bool(ending.code)
        if _life.finalizes and _life.world is not None and not _life.finalized:
            Finalize()
        if _life.sessions:
            _leave_sessions(world)


def _leave_sessions(world: World) -> None:
    from ompy.runtime.ranks.rank_start import leave

    leave(world.process)
    _life.sessions = False


def Finalize() -> None:
    """Finalise MPI: what was sent is delivered, then nothing works any more."""
    from ompy.runtime.ranks.rank_start import leave

    if _life.world is None or _life.finalized:
        raise MPIException(ERR_OTHER, "MPI is not initialised, or finalised already")
    world = _life.world
    delete_all(COMM_SELF)
    leave(world.process)
    _life.finalized = True
    _close_communicators(world)


def _close_communicators(world: World) -> None:
    """Ranks and sizes can still be asked for; messages are errors.

    What sessions have goes on, and COMM_WORLD under them: then its handle gets another one.
    """
    over = FinishedPml()
    if _life.sessions:
        for handle in (COMM_WORLD, COMM_SELF):
            handle._inner = _finished(handle._inner, over)
        return
    for communicator in world.process.communicators.values():
        communicator.pml = over
    for handle in (COMM_WORLD, COMM_SELF):
        handle._inner.pml = over
        handle._inner.communicator.coll = FinishedColl.__new__(FinishedColl)


def _finished(state: CommState, over: FinishedPml) -> CommState:
    was = state.communicator
    communicator = Communicator(was.context, over, was.context_id, was.procs, was.name)
    communicator.coll = FinishedColl.__new__(FinishedColl)
    made = CommState(state.world, communicator, state.api)
    made.predefined, made.errhandler = True, state.errhandler
    return made


def Is_initialized() -> bool:
    """Whether MPI has been initialised."""
    return _life.world is not None


def Is_finalized() -> bool:
    """Whether MPI is over."""
    return _life.finalized


def Query_thread() -> int:
    """The thread level provided."""
    if _life.world is None or _life.finalized:
        current()
    return _life.level


def Is_thread_main() -> bool:
    """Whether this thread initialised MPI."""
    if _life.world is None or _life.finalized:
        current()
    return _life.thread == _thread.get_ident()


def _set_expendable(on: bool) -> None:
    """Whether the job goes on if this rank dies; who waits for it then gets ERR_PROC_FAILED."""
    assert _life.world is not None, "MPI is in use"
    context = _life.world.context
    if context.recovery is None:  # else it does so with every rank
        context.wireup.set_expendable(on)


def _set_abort_status(status: object) -> None:
    """Have the end of the interpreter end the whole job with an exit code."""
    if isinstance(status, int):
        _life.exit_status = status
    else:
        _life.exit_status = 0 if status is None else 1
