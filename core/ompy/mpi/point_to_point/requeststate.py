"""What a request handle refers to: the PML's request, and what must live as long as it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ompy.compiled import ccall, cclass, recycled
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_REQUEST, MPIError
from ompy.data.request import Request
from ompy.engine.base import Engine
from ompy.frameworks.pml import MatchedMessage
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import State
from ompy.mpi.point_to_point.status import Described, Status
from ompy.mpi.state import CommState, World


@recycled
@cclass
class RequestState(State):
    """An operation under way.

    Attributes:
        world: the rank; None when it was complete from the beginning.
        comm: the communicator it is in, or None.
        operation: what completes.
        keep: whatever must stay alive until then: the user's buffer.
        receives: its status describes a message; a send's is empty.
        watched: threads that wait for any of several requests are told when it completes.
    """

    comm: CommState | None
    keep: object
    operation: Request
    receives: bool
    watched: bool
    world: World | None
    __slots__ = tuple(__annotations__)

    def __init__(
        self, comm: CommState | None, operation: Request, keep: object, *, receives: bool = False
    ) -> None:
        self.number = 0
        self.comm = comm
        self.world = None if comm is None else comm.world
        self.operation = operation
        self.keep = keep
        self.receives = receives
        self.watched = False

    def __dealloc__(self) -> None:
        # compiled; why: `LentConvertor.__dealloc__`
        self.keep = None
        self.operation = None  # type: ignore[assignment]

    @property
    def engine(self) -> Engine:
        """What drives the rank."""
        assert self.world is not None, "a request without a rank is complete"
        return self.world.engine

    @property
    def active(self) -> bool:
        """There is something to wait for."""
        return True

    @ccall
    def successor(self) -> RequestState | None:
        """What the handle refers to when this is over."""
        return None

    @ccall
    def result(self, status: Status | None) -> Any:
        """The operation is complete and over: what it received.

        Raises:
            MPIException: it failed.
        """
        if status is not None:
            self.fill(status)
        operation = self.operation
        if operation.error:
            problem = MPIError(operation.error, operation.detail)
            raise MPIException(*_said(problem)) if self.comm is None else self.comm.raised(problem)
        return self.value()

    @ccall
    def value(self) -> Any:
        """The object received, for receives of objects."""
        return None

    @ccall
    def fill(self, status: Status) -> None:
        """Describe the completed operation."""
        operation: Request = self.operation
        described: Described = status
        if self.receives and operation.source != PROC_NULL:
            described._fill(operation)  # noqa: SLF001 - ours
        elif self.receives:
            described._no_process()  # noqa: SLF001 - ours
        else:
            described._set(  # noqa: SLF001 - ours
                ANY_SOURCE, ANY_TAG, operation.error, 0, operation.cancelled
            )

    def cancel(self) -> None:
        """Cancel it, if it is a receive that no message has matched."""
        if self.comm is not None:
            self.comm.pml.cancel(self.operation)

    def freed(self) -> None:
        """A handle lets go of it."""

    async def completed(self) -> None:
        """Return when it is complete, while the running asyncio loop goes on."""
        waiting = getattr(self.engine, "completed", None)
        if waiting is None:
            raise NotImplementedError("requests cannot be awaited in the virtual world")
        await waiting(self.operation)


@ccall
def request_state(
    comm: CommState, operation: Request, keep: object, receives: bool
) -> RequestState:
    """A state of one message. Made without `__init__`, as every such message needs one."""
    made: RequestState = RequestState.__new__(RequestState)
    made.number = 0
    made.comm = comm
    made.world = comm.world
    made.operation = operation
    made.keep = keep
    made.receives = receives
    made.watched = False
    return made


@ccall
def complete_state() -> RequestState:
    """A state of an operation that was complete from the beginning, and has no message."""
    made: RequestState = RequestState.__new__(RequestState)
    made.number = 0
    made.comm = None
    made.world = None
    made.operation = _COMPLETE
    made.keep = None
    made.receives = False
    made.watched = False
    return made


@ccall
def complete_operation() -> Request:
    """The operation with PROC_NULL that is shared: nobody changes what is complete."""
    return _COMPLETE


@recycled
@cclass
class MessageState(State):
    """A message that was taken and is still to be received.

    Attributes:
        comm: its communicator; None for MESSAGE_NO_PROC.
        matched: what the PML took.
    """

    comm: CommState | None
    matched: MatchedMessage | None
    __slots__ = tuple(__annotations__)

    def __init__(self, comm: CommState | None, matched: MatchedMessage | None) -> None:
        self.number = 0
        self.comm = comm
        self.matched = matched

    @ccall
    def receive(self, convertor: Convertor) -> Request:
        """Begin to receive it.

        Raises:
            MPIException: it failed.
        """
        comm = self.comm
        if comm is None or self.matched is None:
            return nothing()
        try:
            return comm.pml.imrecv(self.matched, convertor)
        except MPIError as problem:
            raise comm.raised(problem) from problem.__cause__


@ccall
def message_state(comm: CommState, matched: MatchedMessage) -> MessageState:
    """What a matched probe has taken. Made without `__init__`."""
    made: MessageState = MessageState.__new__(MessageState)
    made.number = 0
    made.comm = comm
    made.matched = matched
    return made


@cclass
class PersistentState(RequestState):
    """An operation that can be started again and again.

    Attributes:
        running: it was started and has not been waited for.
    """

    running: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, comm: CommState, keep: object, *, receives: bool) -> None:
        RequestState.__init__(self, comm, nothing(), keep, receives=receives)
        self.running = False

    @property
    def active(self) -> bool:
        """It was started and has not been waited for."""
        return self.running

    @ccall
    def start(self) -> None:
        """Start it.

        Raises:
            MPIException: it is running, or it cannot begin.
        """
        if self.running:
            raise self.communicator_state.fail(
                ERR_REQUEST, "the request is active: wait for it before starting it"
            )
        self.watched = False
        self.operation = self.begin_operation()
        self.running = True

    @ccall
    def begin_operation(self) -> Request:
        """Begin the operation once more.

        Raises:
            MPIException: it cannot begin.
        """
        raise NotImplementedError

    def make_ready(self, partitions: Iterable[int]) -> None:
        """Say that partitions of the message may be sent.

        Raises:
            MPIException: ERR_REQUEST, it is no partitioned send.
        """
        raise self.communicator_state.fail(ERR_REQUEST, "the request is of no partitioned send")

    def has_arrived(self, partition: int) -> bool:
        """Whether a partition of the message has come.

        Raises:
            MPIException: ERR_REQUEST, it is no partitioned receive.
        """
        raise self.communicator_state.fail(ERR_REQUEST, "the request is of no partitioned receive")

    @property
    def communicator_state(self) -> CommState:
        """The communicator it is in."""
        assert self.comm is not None, "a persistent request is made by a communicator"
        return self.comm

    @ccall
    def successor(self) -> RequestState | None:
        """Itself: it can be started again."""
        self.running = False
        return self

    @ccall
    def fill(self, status: Status) -> None:
        """Describe the completed operation; nothing when it was not started."""
        if self.running:
            RequestState.fill(self, status)
        else:
            status._clear()  # noqa: SLF001 - ours


@cclass
class PersistentMessageState(PersistentState):
    """A message that can be sent or received again and again.

    Attributes:
        target: the peer.
        tag: of the message.
        mode: of sending.
        convertor: the message.
    """

    convertor: Convertor
    mode: int
    tag: int
    target: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        comm: CommState,
        convertor: Convertor,
        keep: object,
        target: int,
        tag: int,
        mode: int,
        *,
        receives: bool,
    ) -> None:
        PersistentState.__init__(self, comm, keep, receives=receives)
        self.convertor = convertor
        self.target = target
        self.tag = tag
        self.mode = mode

    @ccall
    def begin_operation(self) -> Request:
        """Begin to send or to receive.

        Raises:
            MPIException: the peer cannot be reached.
        """
        if self.target == PROC_NULL:
            return nothing()
        comm = self.comm
        assert comm is not None, "a persistent request is made by a communicator"
        what, peer, tag = self.convertor, self.target, self.tag
        try:
            if self.receives:
                return comm.pml.irecv(comm.communicator, what, peer, tag)
            return comm.pml.isend(comm.communicator, what, peer, tag, self.mode)
        except MPIError as problem:
            raise comm.raised(problem) from problem.__cause__


@ccall
def prepared_message(
    comm: CommState,
    convertor: Convertor,
    keep: Any,
    target: int,
    tag: int,
    mode: int,
    receives: bool,
) -> PersistentMessageState:
    """A message that can be sent or received again and again, as `__init__` makes it."""
    made: PersistentMessageState = PersistentMessageState.__new__(PersistentMessageState)
    made.number = 0
    made.comm = comm
    made.world = comm.world
    made.operation = nothing()
    made.keep = keep
    made.receives = receives
    made.watched = False
    made.running = False
    made.convertor = convertor
    made.target = target
    made.tag = tag
    made.mode = mode
    return made


def _said(problem: MPIError) -> tuple[int, str]:
    return problem.code, problem.detail


@ccall
def nothing() -> Request:
    """A completed operation with PROC_NULL."""
    done = Request()
    done.source = PROC_NULL
    done.tag = ANY_TAG
    done.complete = True
    return done


_COMPLETE: Final = nothing()  # of all such states: nobody changes what is complete
