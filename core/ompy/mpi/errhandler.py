"""`MPI.Errhandler`: what happens when a call fails."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final, Self

from ompy.data.errors import ERR_ARG, ERR_ERRHANDLER, MPIError
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, State, made_plainly
from ompy.mpi.kinds import check_kind
from ompy.mpi.limits import Limited


class ErrhandlerState(State):
    """An error handler.

    Attributes:
        kind: of handles it is for; empty for predefined ones.
        function: `f(handle, errorcode)`, or None.
        ends_job: an error ends the job.
    """

    __slots__ = ("ends_job", "function", "kind")

    def __init__(
        self, kind: str, function: Callable[..., Any] | None, *, ends_job: bool = False
    ) -> None:
        super().__init__()
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
        return cls._make(errhandler)

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

    def _for(self, kind: str) -> ErrhandlerState:
        """What it refers to, for an object of a kind.

        Raises:
            MPIError: ERR_ARG, it is null, or for objects of another kind.
        """
        state: ErrhandlerState | None = self._inner
        if state is None:
            raise MPIError(ERR_ARG, "the error handler is null")
        if state.kind not in {"", kind}:
            raise MPIError(ERR_ARG, f"the error handler is for a {state.kind}, not a {kind}")
        return state

    def _release(self) -> None:
        state = self._state()
        if state.kind:
            _users[state.kind].remove(state)

    def Free(self) -> None:
        """Free it; objects that have it keep it."""
        self._state()
        if not self._name:
            self._release()
            self._inner = None


def set_errhandler(owner: Any, errhandler: Errhandler) -> None:
    """Give a communicator, window or session another error handler."""
    check_kind(errhandler, "Errhandler", "errhandler")
    state = owner._state()
    try:
        state.errhandler = errhandler._for(owner._kind)
    except MPIError as problem:
        raise state.raised(problem) from None


def call_errhandler(owner: Any, errorcode: int) -> None:
    """Call the one that it has."""
    state = owner._state()
    if errorcode != 0:
        state.raised(MPIException(errorcode))


ERRHANDLER_NULL: Final = Errhandler()._constant("ERRHANDLER_NULL")
ERRORS_RETURN: Final = Errhandler._adopt(RETURN)._constant("ERRORS_RETURN")
ERRORS_ABORT: Final = Errhandler._adopt(ABORT)._constant("ERRORS_ABORT")
ERRORS_ARE_FATAL: Final = Errhandler._adopt(ARE_FATAL)._constant("ERRORS_ARE_FATAL")
