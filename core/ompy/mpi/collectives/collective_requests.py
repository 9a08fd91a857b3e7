"""Collective calls on their way: waited for, as a request, or as one to start again and again."""

from __future__ import annotations

from typing import Any, Final, NoReturn

from ompy.compiled import U64, ccall, cclass, cfunc, recycled
from ompy.data.errors import ERR_REQUEST, MPIError
from ompy.data.request import Request as Operation
from ompy.frameworks.coll import PreparedCall
from ompy.frameworks.collectives.call_order import KeptCall
from ompy.frameworks.collectives.coll_selection import UnderWay
from ompy.mpi.collectives.collective_calls import Call
from ompy.mpi.collectives.reduction_calls import raised_in_operation
from ompy.mpi.handles import plain_handle
from ompy.mpi.point_to_point.request import Prequest, Request
from ompy.mpi.point_to_point.requeststate import PersistentState, RequestState
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.state import CommState

# operations that call the user's functions
COMBINING: Final = frozenset({"reduce", "allreduce", "scan", "exscan", "reduce_scatter"})


def completed(call: Call) -> None:
    """Make a call and wait for its end.

    Raises:
        MPIException: it failed.
    """
    comm: CommState = call.comm
    operation = call.operation
    try:
        getattr(comm.coll, operation)(*call.arguments)
    except MPIError as problem:
        raise comm.raised(problem) from problem.__cause__
    except Exception as problem:
        if operation not in COMBINING:
            raise  # a coll component's own
        raised_in_operation(comm, problem)


@ccall
def begun(call: Call) -> Request:
    """Begin a call."""
    comm: CommState = call.comm
    arguments: tuple[Any, ...] = call.arguments
    started: Operation = _start(comm, call.operation, comm.communicator.order.tag(), arguments)
    found: Request = plain_handle(Request, collective_state(comm, started, arguments))
    return found


@cfunc
def _start(comm: CommState, operation: str, tag: int, arguments: tuple[Any, ...]) -> Operation:
    """Begin the operation of a call.

    Raises:
        MPIException: it failed.
    """
    try:
        started: Operation = comm.collectives().begin_operation(operation, tag, arguments)
    except MPIError as problem:
        raise comm.raised(problem) from problem.__cause__
    return started


def prepared(call: Call) -> Prequest:
    """A request to start a call with."""
    return Prequest._adopt(PersistentCollectiveState(call))  # noqa: SLF001 - ours


@recycled
@cclass
class CollectiveState(RequestState):
    """A collective operation under way."""

    __slots__ = ()

    def cancel(self) -> None:
        """Collective operations cannot be cancelled."""
        _refuse_to_cancel(self)

    @ccall
    def result(self, status: Status | None) -> Any:
        """Nothing.

        Raises:
            MPIException: it failed.
        """
        if self.operation.error:
            _check_operation(self)
        return RequestState.result(self, status)


@ccall
def collective_state(comm: CommState, operation: Operation, keep: object) -> CollectiveState:
    """A state of one call. Made without `__init__`, as `request_state`."""
    made: CollectiveState = CollectiveState.__new__(CollectiveState)
    made.number = 0
    made.comm = comm
    made.world = comm.world
    made.operation = operation
    made.keep = keep
    made.receives = False
    made.watched = False
    return made


@cclass
class PersistentCollectiveState(PersistentState):
    """A collective operation that can be started again and again.

    All its starts have one tag, taken when it was made: members may start several in any order.
    """

    _arguments: tuple[Any, ...]
    _call: KeptCall
    _kept: int
    _operation_name: str
    _prepared: PreparedCall | None
    _tag: int
    _under_way: UnderWay
    _word: U64
    __slots__ = tuple(__annotations__)

    def __init__(self, call: Call) -> None:
        PersistentState.__init__(self, call.comm, call.arguments, receives=False)
        self._arguments = call.arguments
        self._operation_name = call.operation
        order = call.comm.communicator.order
        self._tag = order.tag()
        self._call = order.keep()
        self._word = self._call.word
        coll = call.comm.coll
        self._kept = coll.keep_call(call.operation)
        self._prepared = coll.prepare_call(
            call.operation, call.arguments, self._tag, self._word, self._kept
        )
        self._under_way = coll.under_way

    @ccall
    def begin_operation(self) -> Operation:
        """Begin the operation.

        Raises:
            MPIException: it failed.
        """
        comm = self.comm
        assert comm is not None, "a collective operation is in a communicator"
        started: Operation | None = None
        self._call.starts += 1
        try:
            if self._prepared is not None and not comm.communicator.revoked:
                started = self._prepared.start()
            if started is not None:
                return self._under_way.until(started)
            started = comm.collectives().begin_operation(
                self._operation_name, self._tag, self._arguments, self._word, self._kept
            )
        except MPIError as problem:
            raise comm.raised(problem) from problem.__cause__
        assert started is not None, "an operation has begun"
        return started

    def cancel(self) -> None:
        """Collective operations cannot be cancelled."""
        _refuse_to_cancel(self)

    @ccall
    def result(self, status: Status | None) -> Any:
        """Nothing.

        Raises:
            MPIException: it failed.
        """
        if self.operation.error:
            _check_operation(self)
        return PersistentState.result(self, status)


def _refuse_to_cancel(state: RequestState) -> NoReturn:
    assert state.comm is not None, "a collective operation is in a communicator"
    raise state.comm.fail(ERR_REQUEST, "a collective operation cannot be cancelled")


def _check_operation(state: RequestState) -> None:
    operation = state.operation
    problem: Exception | None = getattr(operation, "problem", None)
    if problem is not None:
        assert state.comm is not None, "a collective operation is in a communicator"
        raised_in_operation(state.comm, problem)
