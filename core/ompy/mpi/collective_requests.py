"""Collective calls on their way: waited for, as a request, or as one to start again and again."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from ompy.data.errors import ERR_REQUEST, MPIError
from ompy.data.request import Request as Operation
from ompy.mpi.collective_calls import Call
from ompy.mpi.request import Prequest, Request
from ompy.mpi.requeststate import PersistentState, RequestState
from ompy.mpi.state import CommState
from ompy.mpi.status import Status

# operations that call the user's functions
COMBINING: Final = frozenset({"reduce", "allreduce", "scan", "exscan", "reduce_scatter"})


def completed(call: Call) -> None:
    """Make a call and wait for its end.

    Raises:
        MPIException: it failed.
    """
    comm, operation, arguments = call
    try:
        getattr(comm.coll, operation)(*arguments)
    except MPIError as problem:
        raise comm.raised(problem) from problem.__cause__
    except Exception as problem:
        if operation not in COMBINING:
            raise  # a coll component's own
        _raised_in_operation(comm, problem)


def begun(call: Call) -> Request:
    """Begin a call."""
    comm, operation, arguments = call
    tag = comm.communicator.order.tag()
    started = comm.call(comm.coll.begin_operation, operation, tag, *arguments)
    return Request._adopt(CollectiveState(comm, started, arguments))  # noqa: SLF001 - ours


def prepared(call: Call) -> Prequest:
    """A request to start a call with."""
    return Prequest._adopt(PersistentCollectiveState(call))  # noqa: SLF001 - ours


class CollectiveState(RequestState):
    """A collective operation under way."""

    __slots__ = ()

    def cancel(self) -> None:
        """Collective operations cannot be cancelled."""
        _refuse_to_cancel(self)

    def result(self, status: Status | None) -> Any:
        """Nothing.

        Raises:
            MPIException: it failed.
        """
        _check_operation(self)
        return super().result(status)


class PersistentCollectiveState(PersistentState):
    """A collective operation that can be started again and again.

    All its starts have one tag, taken when it was made: members may start several in any order.
    """

    __slots__ = ("_call", "_kept", "_tag", "_word")

    def __init__(self, call: Call) -> None:
        super().__init__(call.comm, call.arguments, receives=False)
        self._call = call
        order = call.comm.communicator.order
        self._tag = order.tag()
        self._word = order.keep()
        self._kept: int = call.comm.coll.keep_call(call.operation)

    def begin_operation(self) -> Operation:
        """Begin the operation."""
        comm, operation, arguments = self._call
        started: Operation = comm.call(
            comm.coll.begin_operation,
            operation,
            self._tag,
            *arguments,
            word=self._word,
            kept=self._kept,
        )
        return started

    def cancel(self) -> None:
        """Collective operations cannot be cancelled."""
        _refuse_to_cancel(self)

    def result(self, status: Status | None) -> Any:
        """Nothing.

        Raises:
            MPIException: it failed.
        """
        _check_operation(self)
        return super().result(status)


def _refuse_to_cancel(state: RequestState) -> NoReturn:
    assert state.comm is not None, "a collective operation is in a communicator"
    raise state.comm.fail(ERR_REQUEST, "a collective operation cannot be cancelled")


def _check_operation(state: RequestState) -> None:
    operation = state.operation
    problem: Exception | None = getattr(operation, "problem", None)
    if problem is not None:
        assert state.comm is not None, "a collective operation is in a communicator"
        _raised_in_operation(state.comm, problem)


def _raised_in_operation(comm: CommState, problem: Exception) -> NoReturn:
    """An exception in a user's operation ends the job: others wait for the result."""
    import traceback

    traceback.print_exception(problem)
    name = type(problem).__name__
    comm.world.abort(1, f"a user-defined operation of a reduction raised {name}")
