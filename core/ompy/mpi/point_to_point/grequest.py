"""`MPI.Grequest`: operations of the user's own."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ompy.data.errors import ERR_REQUEST
from ompy.data.request import Request as Operation
from ompy.mpi.callbacks import guarded
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import handle_for
from ompy.mpi.point_to_point.request import Request
from ompy.mpi.point_to_point.requeststate import RequestState
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.processes.life import current
from ompy.mpi.state import World

Callback = Callable[..., None] | None


class GeneralState(RequestState):
    """An operation of the user's.

    Attributes:
        object: what it gives when it is waited for.
    """

    __slots__ = ("_arguments", "_cancel", "_free", "_keywords", "_query", "object")

    def __init__(
        self,
        world: World,
        query: Callback,
        free: Callback,
        cancel: Callback,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
    ) -> None:
        super().__init__(None, Operation(), None)
        self.world = world
        self._query = query
        self._free = free
        self._cancel = cancel
        self._arguments = arguments
        self._keywords = keywords
        self.object: Any = None

    def _call(self, function: Callback, *first: Any) -> None:
        if function is not None:
            guarded(function, *first, *self._arguments, **self._keywords)

    def fill(self, status: Status) -> None:
        """The user's function says what there is to say."""
        status._clear()
        self._call(self._query, status)

    def result(self, status: Status | None) -> Any:
        """The user's functions are asked for the status, and told that it is over.

        Raises:
            MPIException: one of them raised.
        """
        problem: MPIException | None = None
        try:
            self.fill(Status() if status is None else status)
        except MPIException as raised:
            problem = raised
        try:
            self._call(self._free)
        except MPIException as raised:
            problem = problem or raised
        if problem is not None:
            raise problem
        return self.object

    def cancel(self) -> None:
        """Tell the user's function."""
        self._call(self._cancel, self.operation.complete)

    def complete(self, obj: Any) -> None:
        """The operation is complete."""
        with self.engine.lock:
            if self.operation.complete:
                raise MPIException(ERR_REQUEST, "the request is complete already")
            self.object = obj
            self.operation.finish()


class Grequest(Request):
    """An operation of the user's own, completed by `Complete`."""

    __slots__ = ()

    def __new__(cls, request: Request | None = None) -> Self:
        """A null handle, or another one for the same operation."""
        made: Self = handle_for(cls, request)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, GeneralState)

    @classmethod
    def Start(
        cls,
        query_fn: Callback = None,
        free_fn: Callback = None,
        cancel_fn: Callback = None,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Self:
        """Begin an operation.

        Args:
            query_fn: `f(status, *args, **kwargs)` fills in the status when it is complete.
            free_fn: `f(*args, **kwargs)` is told that it is over.
            cancel_fn: `f(completed, *args, **kwargs)` is told that it is to be cancelled.
            args: for these functions.
            kwargs: for these functions.
        """
        state = GeneralState(
            current(), query_fn, free_fn, cancel_fn, tuple(args or ()), dict(kwargs or {})
        )
        return cls._adopt(state)

    def Complete(self) -> None:
        """The operation is complete; any thread may say so."""
        self._finish(None)

    def complete(self, obj: Any = None) -> None:
        """The operation is complete; `wait` gives `obj`."""
        self._finish(obj)

    def _finish(self, obj: Any) -> None:
        if self._inner is None:
            raise MPIException(ERR_REQUEST, "the request is null")
        self._inner.complete(obj)
