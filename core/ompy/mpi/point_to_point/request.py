"""`MPI.Request` and `MPI.Prequest`: operations under way.

A request refers to a `RequestState`, which holds the PML's request and whatever must stay alive
until it completes.
"""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, ClassVar, Final, Literal, Self

from ompy.compiled import DECLARING, ccall, recycled
from ompy.data.constants import UNDEFINED
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_IN_STATUS, ERR_PROC_FAILED_PENDING, ERR_REQUEST, MPIError
from ompy.data.request import Request as Operation
from ompy.mpi.buffers.message_convertors import recv_convertor
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, handle_for, made_plainly, plain_handle
from ompy.mpi.integers import whole_number, whole_numbers
from ompy.mpi.point_to_point.completion import (
    NONE_YET,
    NOTHING,
    all_complete,
    end_plain_requests,
    first_complete,
    no_request,
    poll_operation,
    some_complete,
    wait_any,
    wait_for,
    wait_for_each,
    wait_plain_requests,
)
from ompy.mpi.point_to_point.requeststate import (
    MessageState,
    PersistentState,
    RequestState,
    complete_state,
    prepared_message,
    request_state,
)
from ompy.mpi.point_to_point.status import (
    Described,
    Status,
    check_status,
    clear_status,
    room_for,
)
from ompy.mpi.state import CommState

if DECLARING:
    from ompy.data.request import Request as Operation


@recycled
@made_plainly
class Request(Handle):
    """An operation under way; null when it has been waited for.

    `await request` gives what `wait` returns, beside any other code of a running asyncio loop.
    """

    __slots__ = ()
    _kind: ClassVar[str] = "Request"

    def __new__(cls, request: Request | None = None) -> Self:
        """A null handle, or another one for the same operation."""
        made: Self = handle_for(cls, request)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, RequestState)

    @classmethod
    def _wrap(cls, state: Any) -> Self:
        return cls._adopt(state)

    def __hash__(self) -> int:  # type: ignore[override]
        # asyncio.gather wants it; like equality, it changes when the request is over
        if self._name:
            raise TypeError("unhashable type: 'Request'")
        return id(self._inner)

    def _end(self, status: Status | None) -> Any:
        """The operation is complete: what it received; the handle becomes null.

        Raises:
            MPIException: it failed.
        """
        return end_request(self, status)

    def __await__(self) -> Generator[Any, None, Any]:
        return self._awaited().__await__()

    async def _awaited(self) -> Any:
        state: RequestState | None = self._inner
        if state is not None and not state.operation.complete:
            await state.completed()
        return self._wait(None)

    def _wait(self, status: Status | None) -> Any:
        return wait_request(self, status)

    def _look(self, status: Status | None) -> bool:
        state: RequestState | None = self._inner
        if state is None:
            clear_status(status)
            return True
        if not state.operation.complete and not poll_operation(state):
            return False
        if status is not None:
            state.fill(status)
        return True

    # --- one

    def Wait(self, status: Status | None = None) -> Literal[True]:
        """Wait until it is complete."""
        check_status(status)
        wait_request(self, status)
        return True

    def Test(self, status: Status | None = None) -> bool:
        """Whether it is complete; it is over then."""
        check_status(status)
        return is_over(self, status)

    def wait(self, status: Status | None = None) -> Any:
        """Wait until it is complete; the object it received, or None."""
        check_status(status)
        return wait_request(self, status)

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        """Whether it is complete, and the object it received then."""
        check_status(status)
        return test_request(self, status)

    def Get_status(self, status: Status | None = None) -> bool:
        """Whether it is complete; it stays to be waited for."""
        check_status(status)
        return self._look(status)

    get_status = Get_status

    def Cancel(self) -> None:
        """Cancel a receive that no message has matched; anything else goes on."""
        if self._inner is None:
            raise MPIException(ERR_REQUEST, "the request is null: there is nothing to cancel")
        self._inner.cancel()

    cancel = Cancel

    def Free(self) -> None:
        """Let go of it; the operation goes on."""
        if self._inner is None:
            raise MPIException(ERR_REQUEST, "the request is null: there is nothing to free")
        self._inner.freed()
        self._inner = None

    def _release(self) -> None:
        self._inner.freed()

    # --- any of several

    @classmethod
    def waitany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, Any]:
        """Wait until one is complete: its place and the object it received."""
        check_status(status)
        place = wait_any(requests)
        if place < 0:
            clear_status(status)
            return UNDEFINED, None
        return place, end_request(requests[place], status)

    @classmethod
    def testany(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool, Any]:
        """Whether one is complete: its place, and the object it received."""
        check_status(status)
        place: int = first_complete(requests)
        if place >= 0:
            return place, True, end_request(requests[place], status)
        if place == NONE_YET:
            return UNDEFINED, False, None
        clear_status(status)
        return UNDEFINED, True, None

    @classmethod
    def Waitany(cls, requests: Sequence[Request], status: Status | None = None) -> int:
        """Wait until one is complete: its place, or UNDEFINED if there is none."""
        check_status(status)
        place: int = wait_any(requests)
        if place < 0:
            clear_status(status)
            return UNDEFINED
        end_request(requests[place], status)
        return place

    @classmethod
    def Testany(cls, requests: Sequence[Request], status: Status | None = None) -> tuple[int, bool]:
        """The place of one that is complete, and whether there was one."""
        check_status(status)
        place: int = first_complete(requests)
        if place >= 0:
            end_request(requests[place], status)
            return place, True
        if place == NOTHING:
            clear_status(status)
        return UNDEFINED, place == NOTHING

    @classmethod
    def Get_status_any(
        cls, requests: Sequence[Request], status: Status | None = None
    ) -> tuple[int, bool]:
        """As `Testany`; the request stays to be waited for."""
        check_status(status)
        places = some_complete(requests)
        if not places:
            if places is None:
                clear_status(status)
            return UNDEFINED, places is None
        requests[places[0]]._look(status)
        return places[0], True

    get_status_any = Get_status_any

    # --- all of several

    @classmethod
    def waitall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[Any]:
        """Wait until all are complete: the objects they received."""
        wait_for_each(requests)
        return _end_all(requests, statuses)

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Whether all are complete, and the objects they received then."""
        if not all_complete(requests):
            return False, None
        return True, _end_all(requests, statuses)

    @classmethod
    def Waitall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> Literal[True]:
        """Wait until all are complete."""
        if statuses is not None or not wait_plain_requests(requests):
            cls.waitall(requests, statuses)
        return True

    @classmethod
    def Testall(cls, requests: Sequence[Request], statuses: list[Status] | None = None) -> bool:
        """Whether all are complete; if not, none is over."""
        if not all_complete(requests):
            return False
        if statuses is not None or not wait_plain_requests(requests):
            _end_all(requests, statuses)
        return True

    @classmethod
    def Get_status_all(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> bool:
        """As `Testall`; the requests stay to be waited for."""
        if not all_complete(requests):
            return False
        for request, status in zip(requests, room_for(statuses, len(requests)), strict=False):
            request._look(status)
        return True

    get_status_all = Get_status_all

    # --- some of several

    @classmethod
    def waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """Wait until some are complete: their places, and the objects they received."""
        if wait_any(requests) < 0:
            return None, None
        return _end_some(requests, some_complete(requests) or [], statuses)

    @classmethod
    def testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[list[int] | None, list[Any] | None]:
        """The places of those that are complete, and the objects they received."""
        places = some_complete(requests)
        if places is None:
            return None, None
        return _end_some(requests, places, statuses)

    @classmethod
    def Waitsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """Wait until some are complete: their places, or None if there is nothing to wait for."""
        if wait_any(requests) < 0:
            return None
        places = some_complete(requests) or []
        if statuses is not None or not end_plain_requests(requests, places):
            _end_some(requests, places, statuses)
        return places

    @classmethod
    def Testsome(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """The places of those that are complete, or None if there is nothing to wait for."""
        places = some_complete(requests)
        if places and (statuses is not None or not end_plain_requests(requests, places)):
            _end_some(requests, places, statuses)
        return places

    @classmethod
    def Get_status_some(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[int] | None:
        """As `Testsome`; the requests stay to be waited for."""
        places = some_complete(requests)
        if places is not None:
            for place, status in zip(places, room_for(statuses, len(places)), strict=False):
                requests[place]._look(status)
        return places

    get_status_some = Get_status_some


@ccall
def request_of(comm: CommState, operation: Operation, keep: object, receives: bool) -> Request:
    """A handle of an operation under way.

    Args:
        comm: where it is.
        operation: as the PML completes it.
        keep: what must stay alive until then.
        receives: its status describes a message.
    """
    found: Request = plain_handle(Request, request_state(comm, operation, keep, receives))
    return found


@ccall
def complete_request() -> Request:
    """A handle of an operation that is complete and has no status."""
    found: Request = plain_handle(Request, complete_state())
    return found


@ccall
def wait_request(request: Handle, status: Status | None) -> Any:
    """Wait until an operation is complete, and end it: what it received.

    Raises:
        MPIException: it failed.
    """
    state: RequestState | None = request._inner
    if state is None:
        clear_status(status)
        return None
    if not state.operation.complete:
        wait_for(state)
    return end_request(request, status)


@ccall
def is_over(request: Handle, status: Status | None) -> bool:
    """Whether an operation is complete, after letting communication advance; it ends then.

    Raises:
        MPIException: it failed.
    """
    state: RequestState | None = request._inner
    if state is None:
        clear_status(status)
        return True
    if not state.operation.complete and not poll_operation(state):
        return False
    end_request(request, status)
    return True


@ccall
def test_request(request: Handle, status: Status | None) -> tuple[bool, Any]:
    """As `is_over`, and what it received."""
    state: RequestState | None = request._inner
    if state is None:
        clear_status(status)
        return True, None
    if not state.operation.complete and not poll_operation(state):
        return False, None
    return True, end_request(request, status)


@ccall
def end_request(request: Handle, status: Status | None) -> Any:
    """The operation is complete: what it received; the handle becomes null, if it does not last.

    Raises:
        MPIException: it failed.
    """
    state: RequestState = request._inner
    if status is None and type(state) is RequestState and not state.operation.error:
        request._inner = None
        return None
    try:
        found = state.result(status)
    except BaseException as problem:
        request._inner = _after_failure(state, problem)
        raise
    request._inner = None if type(state) is RequestState else state.successor()
    return found


@ccall
def start_request(request: Handle) -> None:
    """Start the operation of a persistent request.

    Raises:
        MPIException: ERR_REQUEST, it is null or active; or the operation cannot begin.
    """
    state: PersistentState | None = request._inner
    if state is None:
        raise MPIException(ERR_REQUEST, "the request is null: there is nothing to start")
    state.start()


@ccall
def receive_message(message: Handle, buf: Any, status: Described | None) -> bool:
    """Receive a message that was taken; false for one of no process, or a null handle.

    Raises:
        MPIException: it failed.
    """
    state: MessageState | None = message._inner
    if state is None or state.comm is None:
        return False
    convertor = recv_convertor(buf)
    message._inner = None
    done: Operation = state.receive(convertor)
    if not done.complete:
        state.comm.world.engine.wait(done)
    if status is not None:
        status._fill(done)
    if done.error:
        raise state.comm.raised(MPIError(done.error, done.detail))
    return True


@ccall
def prepared_request(
    comm: CommState, convertor: Convertor, keep: Any, peer: int, tag: int, mode: int, receives: bool
) -> Prequest:
    """A handle of a message that can be sent or received again and again."""
    state = prepared_message(comm, convertor, keep, peer, tag, mode, receives)
    made: Prequest = plain_handle(Prequest, state)
    return made


@made_plainly
class Prequest(Request):
    """An operation that can be started again and again."""

    __slots__ = ()

    def __new__(cls, request: Request | None = None) -> Self:
        """A null handle, or another one for the same operation."""
        made: Self = handle_for(cls, request)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, PersistentState)

    def Start(self) -> None:
        """Start the operation."""
        start_request(self)

    @classmethod
    def Startall(cls, requests: Sequence[Prequest]) -> None:
        """Start several operations."""
        for request in requests:
            if not isinstance(request, Request):
                raise no_request(request)
            start_request(request)

    def Pready(self, partition: int) -> None:
        """Say that a partition of the message may be sent, which was started."""
        self._partitioned("Pready").make_ready((partition,))

    def Pready_range(self, partition_low: int, partition_high: int) -> None:
        """Say that the partitions from one to another, this included, may be sent."""
        low, high = whole_number(partition_low), whole_number(partition_high)
        self._partitioned("Pready_range").make_ready(range(low, high + 1))

    def Pready_list(self, partitions: Sequence[int]) -> None:
        """Say that several partitions may be sent."""
        some = partitions if type(partitions) is range else whole_numbers(partitions)
        self._partitioned("Pready_list").make_ready(some)

    def Parrived(self, partition: int) -> bool:
        """Whether a partition has come; true for a request that is not started."""
        arrived: bool = self._partitioned("Parrived").has_arrived(whole_number(partition))
        return arrived

    def _partitioned(self, call: str) -> PersistentState:
        """What the handle refers to, which may be of a partitioned message.

        Raises:
            MPIException: ERR_REQUEST, it is null.
        """
        state: PersistentState | None = self._inner
        if state is None:
            raise MPIException(ERR_REQUEST, f"the request is null: there is nothing for {call}")
        return state


def _after_failure(state: RequestState, problem: BaseException) -> RequestState | None:
    """What a handle refers to: a receive that is only in doubt may still be completed."""
    if isinstance(problem, MPIException) and problem.code == ERR_PROC_FAILED_PENDING:
        state.watched = False
        return state
    return state.successor()


def _end_all(requests: Sequence[Request], statuses: list[Status] | None) -> list[Any]:
    """All are complete: what they received.

    Raises:
        MPIException: ERR_IN_STATUS, when one of them failed; the others are over too.
    """
    results: list[Any] = []
    failures = []
    room = None if statuses is None else room_for(statuses, len(requests))
    for place, request in enumerate(requests):
        status = None if room is None else room[place]
        handle: Handle = request
        if handle._inner is None:
            clear_status(status)
            results.append(None)
            continue
        try:
            results.append(end_request(request, status))
        except MPIError as problem:
            failures.append((place, problem))
            results.append(None)
    if failures:
        raise _several_failed(failures)
    return results


def _end_some(
    requests: Sequence[Request], places: list[int], statuses: list[Status] | None
) -> tuple[list[int], list[Any]]:
    results = _end_all([requests[place] for place in places], statuses)
    if isinstance(statuses, list):
        del statuses[len(places) :]
    return places, results


def _several_failed(failures: list[tuple[int, MPIError]]) -> MPIException:
    detail = "; ".join(f"request {place}: {problem}" for place, problem in failures)
    return MPIException(ERR_IN_STATUS, detail)


REQUEST_NULL: Final = Request()._constant("REQUEST_NULL")
