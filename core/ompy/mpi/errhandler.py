"""`MPI.Errhandler`: what happens when a call fails."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from ompy.compiled import ccall, cclass
from ompy.data.errors import ERR_ARG, ERR_ERRHANDLER, MPIError
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State, handle_for, made_plainly
from ompy.mpi.limits import Limited


@cclass
class ErrhandlerState(State):
    """An error handler.

    Attributes:
        kind: of handles it is for; empty for predefined ones.
        function: `f(handle, errorcode)`, or None.
        ends_job: an error ends the job.
    """

    ends_job: bool
    function: Callable[..., Any] | None
    kind: str
    __slots__ = tuple(__annotations__)

    def __init__(
        self, kind: str, function: Callable[..., Any] | None, *, ends_job: bool = False
    ) -> None:
        self.number = 0
        self.kind = kind
        self.function = function
        self.ends_job = ends_job


RETURN: Final = ErrhandlerState("", None)
ABORT: Final = ErrhandlerState("", None, ends_job=True)
ARE_FATAL: Final = ErrhandlerState("", None, ends_job=True)

_users: Final[dict[str, Limited]] = {}


@made_plainly
class Errhandler(Handle):
    """What happens when a call fails."""

    __slots__ = ()
    _kind: ClassVar[str] = "Errhandler"

    def __new__(cls, errhandler: Errhandler | None = None) -> Self:
        """A null handle, or another one for the same error handler."""
        made: Self = handle_for(cls, errhandler)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, ErrhandlerState)

    @classmethod
    def _create(cls, kind: str, function: Callable[..., Any]) -> Self:
        """A new error handler that calls a function."""
        if not callable(function):
            raise TypeError(f"expecting a function, not {type(function).__name__}")
        state = ErrhandlerState(kind, function)
        _users.setdefault(kind, Limited(f"error handlers for a {kind}")).count_new(state)
        return cls._adopt(state)

    def _state(self) -> ErrhandlerState:
        state: ErrhandlerState | None = self._inner
        if state is None:
            raise MPIException(ERR_ERRHANDLER, "the error handler is null, or freed")
        return state

    def _release(self) -> None:
        state = self._state()
        if state.kind:
            _users[state.kind].remove(state)

    def Free(self) -> None:
        """Free it; objects that have it keep it."""
        self._state()
        handle: Handle = self
        if not handle._name:
            self._release()
            handle._inner = None


@ccall
def handler_for(errhandler: Handle, kind: str) -> ErrhandlerState:
    """What an error handler refers to, for an object of a kind.

    Raises:
        MPIError: ERR_ARG, it is null, or for objects of another kind.
    """
    state: ErrhandlerState | None = errhandler._inner
    if state is None:
        raise MPIError(ERR_ARG, "the error handler is null")
    if state.kind and state.kind != kind:
        raise MPIError(ERR_ARG, f"the error handler is for a {state.kind}, not a {kind}")
    return state


@ccall
def set_errhandler(state: Any, kind: str, errhandler: Handle) -> None:
    """Give a communicator, window or session another error handler.

    Args:
        state: what its handle refers to.
        kind: of the handle.
        errhandler: which is known to be one.
    """
    try:
        state.errhandler = handler_for(errhandler, kind)
    except MPIError as problem:
        raise state.raised(problem) from None


def call_errhandler(state: Any, errorcode: int) -> None:
    """Call the one that it has, told what its handle refers to."""
    if errorcode != 0:
        state.raised(MPIException(errorcode))


ERRHANDLER_NULL: Final = Errhandler()._constant("ERRHANDLER_NULL")
ERRORS_RETURN: Final = Errhandler._adopt(RETURN)._constant("ERRORS_RETURN")
ERRORS_ABORT: Final = Errhandler._adopt(ABORT)._constant("ERRORS_ABORT")
ERRORS_ARE_FATAL: Final = Errhandler._adopt(ARE_FATAL)._constant("ERRORS_ARE_FATAL")
