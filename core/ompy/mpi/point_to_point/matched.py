"""`MPI.Message`: a message that was taken and is still to be received."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import GrowingConvertor
from ompy.data.errors import ERR_REQUEST
from ompy.frameworks.pml import MatchedMessage
from ompy.mpi.buffers.spec import recv_convertor
from ompy.mpi.errors import MPIException
from ompy.mpi.handles import Handle, made_plainly, plain_handle
from ompy.mpi.point_to_point.objectrequest import ObjectState
from ompy.mpi.point_to_point.request import Request, receive_message, request_of
from ompy.mpi.point_to_point.requeststate import MessageState, RequestState, message_state
from ompy.mpi.point_to_point.status import Status
from ompy.mpi.state import CommState

if TYPE_CHECKING:
    from ompy.mpi.communicators.comm import Comm


@made_plainly
class Message(Handle):
    """A message taken by a matched probe; null when it has been received."""

    __slots__ = ()
    _kind: ClassVar[str] = "Message"

    def __new__(cls, message: Message | None = None) -> Self:
        """A null handle, or another one for the same message."""
        return cls._make(message)

    @classmethod
    def _takes(cls, state: Any) -> bool:
        return isinstance(state, MessageState)

    def _consume(self) -> MessageState:
        """What is to be received; the handle becomes null."""
        state: MessageState | None = self._inner
        if state is None:
            raise MPIException(ERR_REQUEST, "the message is null, or has been received already")
        if not self._name:
            self._inner = None
        return state

    @classmethod
    def Probe(
        cls,
        comm: Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self:
        """Wait for a message and take it."""
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
        found = comm.Improbe(source, tag, status)
        return None if found is None else cls._make(found)

    probe = Probe
    iprobe = Iprobe

    def Recv(self, buf: Any, status: Status | None = None) -> None:
        """Receive it."""
        if not receive_message(self, buf, status):
            Message.Irecv(self, buf)._wait(status)

    def Irecv(self, buf: Any) -> Request:
        """Begin to receive it."""
        none = self._inner is not None and self._inner.comm is None
        convertor = GrowingConvertor() if none or self._inner is None else recv_convertor(buf)
        state = self._consume()
        operation = state.receive(convertor)
        if state.comm is not None:
            return request_of(state.comm, operation, buf, True)
        return Request._adopt(RequestState(state.comm, operation, buf, receives=True))

    def recv(self, status: Status | None = None) -> Any:
        """Receive it as an object."""
        return Message.irecv(self)._wait(status)

    def irecv(self) -> Request:
        """Begin to receive it as an object."""
        state = self._consume()
        convertor = GrowingConvertor()
        return Request._adopt(ObjectState(state.comm, state.receive(convertor), convertor))


MESSAGE_NULL: Final = Message()._constant("MESSAGE_NULL")
MESSAGE_NO_PROC: Final = Message._adopt(MessageState(None, None))._constant("MESSAGE_NO_PROC")


def taken_message(comm: CommState, matched: MatchedMessage, status: Status | None) -> Message:
    """What a matched probe has taken."""
    if status is not None:
        status._set(matched.source, matched.tag, 0, matched.length, False)
    made: Message = plain_handle(Message, message_state(comm, matched))
    return made


def no_process_message(status: Status | None) -> Message:
    """What a matched probe of PROC_NULL takes."""
    if status is not None:
        status._no_process()
    return Message(MESSAGE_NO_PROC)
