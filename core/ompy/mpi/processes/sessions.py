"""`MPI.Session`: MPI in parts, each of which begins and ends by itself.

A session has a branch of what MPI keeps for the rank (`World.branch`), and so has whatever is made
of its groups. Process sets are found by name: those of Open MPI.
"""

# ruff: noqa: SLF001 - states are private to users only; hints are of no effect

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NoReturn, Self

from ompy import outputs
from ompy.compiled import ccall, cclass
from ompy.data.errors import CLASS_TEXT, ERR_ARG, ERR_OTHER, ERR_SESSION, MPIError
from ompy.frameworks.proc import Proc
from ompy.mpi.callbacks import guarded
from ompy.mpi.communicators.communicators import WORLD_ID
from ompy.mpi.communicators.group import Group
from ompy.mpi.communicators.group_state import EMPTY_GROUP, GroupState, new_group
from ompy.mpi.errhandler import (
    ARE_FATAL,
    Errhandler,
    ErrhandlerState,
    call_errhandler,
    set_errhandler,
)
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State, handle_for, made_plainly, plain_handle
from ompy.mpi.info import INFO_NULL, Info, info_of
from ompy.mpi.integers import takes_c_ints, whole_number
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point import buffering
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.state import World
from ompy.mpi.strings import c_string

# Open MPI 5.0, ompi/instance: its built-in sets; case is of no matter in them
WORLD: Final = "mpi://WORLD"
SELF: Final = "mpi://SELF"
SHARED: Final = "mpix://SHARED"
PSETS: Final = (WORLD, SELF, SHARED)
_KNOWN: Final = {name.casefold(): name for name in PSETS}
THREAD_LEVEL: Final = "MPI_THREAD_MULTIPLE"  # what a session has, whatever it asks for


_OPENERS: Final[list[Callable[[], World]]] = []


def _opened() -> World:
    """The rank, as `life.open_session` brings it up: that imports this module."""
    if not _OPENERS:
        from ompy.mpi.processes.life import open_session

        _OPENERS.append(open_session)
    return _OPENERS[0]()


@cclass
class SessionState(State):
    """What MPI keeps for a session.

    Attributes:
        rank: what MPI keeps for the rank.
        errhandler: what happens when a call fails.
        finalized: it is over.
    """

    _branch: World | None
    errhandler: ErrhandlerState
    finalized: bool
    rank: World
    __slots__ = tuple(__annotations__)

    def __init__(self, rank: World) -> None:
        self.number = 0
        self.rank = rank
        self._branch = None
        self.errhandler = rank.errors
        self.finalized = False

    @property
    def world(self) -> World:
        """The session's branch of it, for what is made of its groups."""
        return self.branch()

    @ccall
    def branch(self) -> World:
        """The same as `world`, which compiled callers find faster."""
        found: World | None = self._branch
        if found is None:
            found = self.rank.branch()
            self._branch = found
        return found

    def release_buffers(self) -> None:
        """Wait for what is in memory that was lent to it, and give that back."""
        if self._branch is not None:
            buffering.detach_buffer(self._branch, self._branch)

    def fail(self, code: int, detail: str) -> MPIException:
        """The exception for a call that failed, after the error handler had its say."""
        return self.raised(MPIException(code, detail))

    def raised(self, problem: MPIError) -> MPIException:
        """As `fail`, for an error that came from below."""
        handler = self.errhandler
        if handler.ends_job:
            self._fatal(problem, "the session" if handler is ARE_FATAL else "this process")
        if handler.function is not None:
            guarded(handler.function, Session._adopt(self), problem.code)
        if isinstance(problem, MPIException):
            return problem
        return MPIException(problem.code, problem.detail)

    def _fatal(self, problem: MPIError, whose: str) -> NoReturn:
        rank = self.world.context.rank
        code = problem.code if problem.code in CLASS_TEXT else ERR_OTHER
        text = f"rank {rank}, in a session: {problem} (errors end the job here)"
        outputs.tell(f"*** {text}; the error handler of {whose} is fatal\n", "fatal error", "error")
        self.world.abort(code, text)

    @ccall
    def processes(self, name: str) -> Sequence[Proc]:
        """Those of a process set.

        Raises:
            MPIException: ERR_ARG, there is no such set.
            TypeError: it is no text.
        """
        name = c_string(name)
        known = name if name in PSETS else _KNOWN.get(name.casefold())
        me = self.rank.context.me
        if known == SELF:
            return (me,)
        # without those that it has spawned or met, which have a set of their own
        started = self.rank.process.communicators[WORLD_ID].procs
        if known == WORLD:
            return started
        if known == SHARED:
            return [proc for proc in started if proc.node == me.node]
        raise self.fail(ERR_ARG, f"there is no process set {name!r}, but {', '.join(PSETS)}")


@made_plainly
class Session(Handle):
    """A part of the program that uses MPI by itself, with communicators of its own."""

    __slots__ = ()
    _kind: ClassVar[str] = "Session"

    def __new__(cls, session: Session | None = None) -> Self:
        """A null handle, or another one for the same session."""
        made: Self = handle_for(cls, session)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, SessionState)

    def _state(self) -> SessionState:
        """What the handle refers to.

        Raises:
            MPIException: ERR_SESSION, it is null, or over.
        """
        return state_of_session(self)

    @classmethod
    def Init(cls, info: Info = INFO_NULL, errhandler: Errhandler | None = None) -> Self:
        """A new session. The process becomes a rank with the first, if `MPI.Init` was not called.

        Args:
            info: hints, of no effect: every session has the highest thread level.
            errhandler: of the session; else as for communicators.

        Raises:
            MPIException: ERR_OTHER, this process has left its job with `MPI.Finalize`.
        """
        if type(info) is not Info:
            check_kind(info, "Info", "info")
        if errhandler is not None:
            check_kind(errhandler, "Errhandler", "errhandler")
        before = vars(Session)["Init"]
        rank = _opened()
        if vars(Session)["Init"] is not before:
            # what stands in front of calls has begun with the rank: it sees this one, too
            return cls.Init(info, errhandler)
        state = SessionState(rank)
        if errhandler:
            state.errhandler = errhandler._state()
        made: Self = plain_handle(cls, state) if cls is Session else cls._adopt(state)
        return made

    def Finalize(self) -> None:
        """End it. Communicators that were made of its groups stay until they are freed."""
        state: SessionState = state_of_session(self)
        if state._branch is not None:
            state.release_buffers()
        state.finalized = True
        handle: Handle = self
        handle._inner = None

    def _release(self) -> None:
        state: SessionState = self._inner
        if not state.finalized:
            Session.Finalize(self)

    # --- process sets

    def Get_num_psets(self, info: Info = INFO_NULL) -> int:
        """How many process sets there are."""
        if type(info) is not Info:
            check_kind(info, "Info", "info")
        state_of_session(self)
        return len(PSETS)

    def Get_nth_pset(self, n: int, info: Info = INFO_NULL) -> str:
        """The name of a process set.

        Raises:
            MPIException: ERR_ARG, there is no such number.
        """
        if type(n) is not int:
            n = whole_number(n)
        if type(info) is not Info:
            check_kind(info, "Info", "info")
        state: SessionState = state_of_session(self)
        if not 0 <= n < len(PSETS):
            raise state.fail(ERR_ARG, f"process set {n}: there are {len(PSETS)}, from 0 on")
        return PSETS[n]

    def Get_info(self) -> Info:
        """Its hints."""
        state_of_session(self)
        made: Info = info_of({"thread_level": THREAD_LEVEL})
        return made

    def Get_pset_info(self, pset_name: str) -> Info:
        """What is known of a process set: how many processes it has, as `mpi_size`."""
        procs = state_of_session(self).processes(pset_name)
        made: Info = info_of({"mpi_size": str(len(procs))})
        return made

    def Create_group(self, pset_name: str) -> Group:
        """The processes of a set."""
        state: SessionState = state_of_session(self)
        procs = state.processes(pset_name)
        world = state.branch()
        found: GroupState = new_group(procs, world.context.me, world) if procs else EMPTY_GROUP
        made: Group = plain_handle(Group, found)
        return made

    # --- memory for buffered sends

    def Attach_buffer(self, buf: Any) -> None:
        """Lend memory for buffered sends in communicators of the session."""
        buffering.attach_buffer(self._state().world, buf)

    def Detach_buffer(self) -> Any:
        """Take back the memory when the messages in it have been sent."""
        world = self._state().world
        return buffering.detach_buffer(world, world)

    def Flush_buffer(self) -> None:
        """Return when the buffered messages have been sent."""
        world = self._state().world
        buffering.flush_buffer(world, world)

    def Iflush_buffer(self) -> Request:
        """Begin `Flush_buffer`: complete when the messages buffered so far have been sent."""
        world = self._state().world
        state = RequestState(None, buffering.begin_flush(world, world), None)
        state.world = world
        return Request._adopt(state)

    # --- errors

    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[[Session, int], None]) -> Errhandler:
        """A new error handler that calls `f(session, errorcode)`."""
        return Errhandler._create(cls._kind, errhandler_fn)

    def Get_errhandler(self) -> Errhandler:
        """Its error handler."""
        made: Errhandler = plain_handle(Errhandler, state_of_session(self).errhandler)
        return made

    def Set_errhandler(self, errhandler: Errhandler) -> None:
        """Set its error handler."""
        if type(errhandler) is not Errhandler:
            check_kind(errhandler, "Errhandler", "errhandler")
        set_errhandler(state_of_session(self), "Session", errhandler)

    @takes_c_ints("errorcode")
    def Call_errhandler(self, errorcode: int) -> None:
        """Call its error handler."""
        call_errhandler(self._state(), errorcode)


@ccall
def state_of_session(session: Handle) -> SessionState:
    """What a handle refers to.

    Raises:
        MPIException: ERR_SESSION, it is null, or over.
    """
    state: SessionState | None = session._inner
    if state is None or state.finalized:
        raise MPIException(ERR_SESSION, "the session is null (SESSION_NULL), or over")
    return state


def begin_session(world: World) -> Session:
    """A new session of a rank."""
    return Session._adopt(SessionState(world))


SESSION_NULL: Final = Session()._constant("SESSION_NULL")
