"""`MPI.Message`: a message that was taken and is still to be received."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from ompy.compiled import DECLARING, ccall, cfunc, recycled
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import GrowingConvertor, growing
from ompy.data.errors import ERR_REQUEST, MPIError
from ompy.frameworks.pml import MatchedMessage
from ompy.mpi.buffers.message_convertors import recv_convertor
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, handle_for, made_plainly, plain_handle
from ompy.mpi.kinds import check_kind
from ompy.mpi.point_to_point.objectrequest import object_state, received_object
from ompy.mpi.point_to_point.request import Request, receive_message, request_of
from ompy.mpi.point_to_point.requeststate import MessageState, RequestState, message_state
from ompy.mpi.point_to_point.status import Described, Status, check_status
from ompy.mpi.state import CommState

if TYPE_CHECKING:
    from ompy.mpi.communicators.comm import Comm

if DECLARING:
    from ompy.data.request import Request as Operation


@recycled
@made_plainly
class Message(Handle):
    """A message taken by a matched probe; null when it has been received."""

    __slots__ = ()
    _kind: ClassVar[str] = "Message"

    def __new__(cls, message: Message | None = None) -> Self:
        """A null handle, or another one for the same message."""
        made: Self = handle_for(cls, message)
        return made

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, MessageState)

    @classmethod
    def Probe(
        cls,
        comm: Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self:
        """Wait for a message and take it."""
        check_kind(comm, "Comm", "comm")
        check_status(status)
        return cls._make(comm.Mprobe(source, tag, status))

    @classmethod
    def Iprobe(
        cls,
        comm: Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self | None:
        """A message that is taken, or None."""
        check_kind(comm, "Comm", "comm")
        check_status(status)
        found = comm.Improbe(source, tag, status)
        return None if found is None else cls._make(found)

    probe = Probe
    iprobe = Iprobe

    def Recv(self, buf: Any, status: Status | None = None) -> None:
        """Receive it."""
        check_status(status)
        if not receive_message(self, buf, status):
            begin_matched_receive(self, buf)._wait(status)

    def Irecv(self, buf: Any) -> Request:
        """Begin to receive it."""
        return begin_matched_receive(self, buf)

    def recv(self, status: Status | None = None) -> Any:
        """Receive it as an object."""
        check_status(status)
        return receive_matched_object(self, status)

    def irecv(self) -> Request:
        """Begin to receive it as an object."""
        state: MessageState = _consumed(self)
        convertor: GrowingConvertor = growing()
        done: Operation = state.receive(convertor)
        if state.comm is not None:
            done = state.comm.watched(done)
        found: Request = plain_handle(Request, object_state(state.comm, done, convertor))
        return found


@cfunc
def _consumed(message: Handle) -> MessageState:
    """What is to be received; the handle becomes null."""
    state: MessageState | None = message._inner
    if state is None:
        raise MPIException(ERR_REQUEST, "the message is null, or has been received already")
    if not message._name:
        message._inner = None
    return state


@ccall
def begin_matched_receive(message: Handle, buf: Any) -> Request:
    """Begin to receive a message that was taken: `Message.Irecv`.

    Raises:
        MPIException: it is null, or cannot be received.
    """
    known: MessageState | None = message._inner
    if known is None or known.comm is None:
        state: MessageState = _consumed(message)
        return Request._adopt(RequestState(None, state.receive(growing()), buf, receives=True))
    convertor = recv_convertor(buf)
    state = _consumed(message)
    comm: CommState | None = state.comm
    assert comm is not None, "it was looked at"
    return request_of(comm, comm.watched(state.receive(convertor)), buf, True)


@ccall
def receive_matched_object(message: Handle, status: Described | None) -> Any:
    """Receive an object that was taken: `Message.recv`.

    Raises:
        MPIException: it is null, or cannot be received.
    """
    state: MessageState = _consumed(message)
    convertor: GrowingConvertor = growing()
    done: Operation = state.receive(convertor)
    comm: CommState | None = state.comm
    if comm is None:
        if status is not None:
            status._no_process()
        return None
    if not done.complete:
        comm.world.engine.wait(done)
    if status is not None:
        status._fill(done)
    if done.error:
        raise comm.raised(MPIError(done.error, done.detail))
    return received_object(convertor)


MESSAGE_NULL: Final = Message()._constant("MESSAGE_NULL")
MESSAGE_NO_PROC: Final = Message._adopt(MessageState(None, None))._constant("MESSAGE_NO_PROC")


@ccall
def taken_message(comm: CommState, matched: MatchedMessage, status: Described | None) -> Message:
    """What a matched probe has taken."""
    if status is not None:
        status._set(matched.source, matched.tag, 0, matched.length, False)
    made: Message = plain_handle(Message, message_state(comm, matched))
    return made


def no_process_message(status: Described | None) -> Message:
    """What a matched probe of PROC_NULL takes."""
    if status is not None:
        status._no_process()
    return Message(MESSAGE_NO_PROC)
