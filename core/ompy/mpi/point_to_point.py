"""Communicators: messages in buffers, one at a time."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Literal

from ompy import raw
from ompy.compiled import DECLARING, ccall
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, TAG_UB
from ompy.data.convertor import ContiguousConvertor, Convertor
from ompy.data.errors import MPIError
from ompy.data.request import Request as Operation
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS
from ompy.mpi import buffering
from ompy.mpi.base import CommBase
from ompy.mpi.handles import Handle
from ompy.mpi.info import INFO_NULL, Info
from ompy.mpi.matched import Message, no_process_message
from ompy.mpi.peers import whole_number, wrong_source, wrong_target
from ompy.mpi.request import Prequest, Request, request_of
from ompy.mpi.requeststate import PersistentMessageState, RequestState, nothing
from ompy.mpi.spec import message, recv_convertor, send_convertor
from ompy.mpi.state import CommState, null_communicator
from ompy.mpi.status import Status
from ompy.mpi.unsupported import not_available

if DECLARING:
    from ompy.data.request import Request as Operation


@ccall
def begin_send(
    state: CommState, convertor: Convertor, target: Any, tag: Any, mode: int
) -> Operation:
    """Begin to send to a rank that exists.

    Raises:
        MPIException: it failed.
    """
    try:
        if mode == BUFFERED:
            buffering.attached(state).send(state, convertor, target, tag)
            return nothing()
        rank = target if type(target) is int else whole_number(target)
        return state.pml.isend(state.communicator, convertor, rank, tag, mode)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def begin_receive(state: CommState, convertor: Convertor, source: Any, tag: Any) -> Operation:
    """Begin to receive.

    Raises:
        MPIException: it failed.
    """
    try:
        rank = source if type(source) is int else whole_number(source)
        return state.pml.irecv(state.communicator, convertor, rank, tag)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def has_target(state: CommState, target: Any, tag: Any) -> bool:
    """Whether there is a rank to send to; false for PROC_NULL.

    Raises:
        MPIException: there is no such rank, or no such tag.
    """
    if 0 <= raw.small(target) < state.size and 0 <= raw.small(tag) <= TAG_UB:
        return True
    if 0 <= target < state.size and 0 <= tag <= TAG_UB:  # whole numbers of other classes
        return True
    if target == PROC_NULL:
        return False
    raise wrong_target(state, target, tag)


@ccall
def has_source(state: CommState, source: Any, tag: Any) -> bool:
    """Whether there is a rank to receive from; false for PROC_NULL.

    Raises:
        MPIException: there is no such rank, or no such tag.
    """
    if ANY_SOURCE <= raw.small(source) < state.size and ANY_TAG <= raw.small(tag) <= TAG_UB:
        return True
    if ANY_SOURCE <= source < state.size and ANY_TAG <= tag <= TAG_UB:
        return True
    if source == PROC_NULL:
        return False
    raise wrong_source(state, source, tag)


@ccall
def send_buffer(comm: Handle, buf: Any, dest: Any, tag: Any) -> None:
    """Send a buffer and wait: `Comm.Send`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    target: int = raw.small(dest)
    label: int = raw.small(tag)
    if 0 <= target < state.size and 0 <= label <= TAG_UB:
        try:
            state.pml.send(state.communicator, send_convertor(buf), target, label, STANDARD)
        except MPIError as problem:
            raise state.raised(problem) from problem.__cause__
    elif not both_ints(dest, tag):
        send_buffer(comm, buf, int(whole_number(dest)), int(whole_number(tag)))
    elif target != PROC_NULL:
        raise wrong_target(state, dest, tag)


@ccall
def both_ints(one: Any, other: Any) -> bool:
    """Whether a rank and a tag are of class int, and not other things that stand for one."""
    return one.__class__ is int and other.__class__ is int


@ccall
def receive_buffer(comm: Handle, buf: Any, source: Any, tag: Any, status: Status | None) -> None:
    """Receive into a buffer: `Comm.Recv`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    origin: int = raw.small(source)
    label: int = raw.small(tag)
    if ANY_SOURCE <= origin < state.size and ANY_TAG <= label <= TAG_UB:
        try:
            done: Operation = state.pml.recv(state.communicator, recv_convertor(buf), origin, label)
        except MPIError as problem:
            raise state.raised(problem) from problem.__cause__
        if status is not None:
            status._fill(done)
    elif not both_ints(source, tag):
        receive_buffer(comm, buf, int(whole_number(source)), int(whole_number(tag)), status)
    elif origin == PROC_NULL:
        if status is not None:
            status._no_process()
    else:
        raise wrong_source(state, source, tag)


@ccall
def begin_send_buffer(comm: Handle, buf: Any, dest: Any, tag: Any, mode: int) -> Request:
    """Begin to send a buffer: `Comm.Isend` and its like.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    if not has_target(state, dest, tag):
        return request_of(state, nothing(), None, False)
    return request_of(state, begin_send(state, send_convertor(buf), dest, tag, mode), buf, False)


@ccall
def begin_receive_buffer(comm: Handle, buf: Any, source: Any, tag: Any) -> Request:
    """Begin to receive into a buffer: `Comm.Irecv`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    if not has_source(state, source, tag):
        return request_of(state, nothing(), None, True)
    done = begin_receive(state, recv_convertor(buf), source, tag)
    return request_of(state, done, buf, True)


class PointToPoint(CommBase):
    """Sends and receives of buffers."""

    __slots__ = ()

    # --- blocking

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send; the buffer may be used again afterwards."""
        send_buffer(self, buf, dest, tag)

    def Recv(
        self,
        buf: Any,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Receive.

        Raises:
            MPIException: ERR_TRUNCATE, the message is longer than the buffer.
        """
        receive_buffer(self, buf, source, tag, status)

    def _send(self, buf: Any, dest: int, tag: int, mode: int) -> None:
        state = self._state()
        if has_target(state, dest, tag):
            done = begin_send(state, send_convertor(buf), dest, tag, mode)
            state.call(state.pml.wait, state.communicator, done)

    def Bsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send a copy, for which there must be room in the attached buffer."""
        self._send(buf, dest, tag, BUFFERED)

    def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send, and return when the receive has begun."""
        self._send(buf, dest, tag, SYNCHRONOUS)

    def Rsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send to a receive that has been posted."""
        self._send(buf, dest, tag, READY)

    # --- not blocking

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send; leave the buffer alone until the request is complete."""
        return begin_send_buffer(self, buf, dest, tag, STANDARD)

    def Ibsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send a copy, for which there must be room in the attached buffer."""
        return begin_send_buffer(self, buf, dest, tag, BUFFERED)

    def Issend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send; complete when the receive has begun."""
        return begin_send_buffer(self, buf, dest, tag, SYNCHRONOUS)

    def Irsend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send to a receive that has been posted."""
        return begin_send_buffer(self, buf, dest, tag, READY)

    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Begin to receive; leave the buffer alone until the request is complete."""
        return begin_receive_buffer(self, buf, source, tag)

    # --- both ways

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send one message and receive another."""
        both = PointToPoint.Isendrecv(self, sendbuf, dest, sendtag, recvbuf, source, recvtag)
        both._wait(status)

    def Sendrecv_replace(
        self,
        buf: Any,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> None:
        """Send what is in a buffer and receive into it."""
        both = PointToPoint.Isendrecv_replace(self, buf, dest, sendtag, source, recvtag)
        both._wait(status)

    def Isendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
    ) -> Request:
        """Begin to send one message and to receive another."""
        state = self._state()
        sends, receives = has_target(state, dest, sendtag), has_source(state, source, recvtag)
        outgoing = send_convertor(sendbuf) if sends else None
        incoming = recv_convertor(recvbuf) if receives else None
        done = _exchange(state, outgoing, dest, sendtag, incoming, source, recvtag)
        return Request._adopt(RequestState(state, done, (sendbuf, recvbuf), receives=True))

    def Isendrecv_replace(
        self,
        buf: Any,
        dest: int,
        sendtag: int = 0,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
    ) -> Request:
        """Begin to send what is in a buffer and to receive into it."""
        state = self._state()
        sends, receives = has_target(state, dest, sendtag), has_source(state, source, recvtag)
        outgoing = incoming = None
        if sends or receives:
            both = message(buf, receives).message
            outgoing = ContiguousConvertor(memoryview(both.packed())) if sends else None
            incoming = both.convertor() if receives else None
        done = _exchange(state, outgoing, dest, sendtag, incoming, source, recvtag)
        return Request._adopt(RequestState(state, done, buf, receives=True))

    # --- persistent

    def _send_init(self, buf: Any, dest: int, tag: int, mode: int) -> Prequest:
        state = self._state()
        convertor = (
            send_convertor(buf) if has_target(state, dest, tag) else ContiguousConvertor(NONE)
        )
        kind = BufferedState if mode == BUFFERED else PersistentMessageState
        return Prequest._adopt(kind(state, convertor, buf, dest, tag, mode, receives=False))

    def Send_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A send to be started again and again."""
        return self._send_init(buf, dest, tag, STANDARD)

    def Bsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A buffered send to be started again and again."""
        return self._send_init(buf, dest, tag, BUFFERED)

    def Ssend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A synchronous send to be started again and again."""
        return self._send_init(buf, dest, tag, SYNCHRONOUS)

    def Rsend_init(self, buf: Any, dest: int, tag: int = 0) -> Prequest:
        """A ready send to be started again and again."""
        return self._send_init(buf, dest, tag, READY)

    def Recv_init(self, buf: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Prequest:
        """A receive to be started again and again."""
        state = self._state()
        there = has_source(state, source, tag)
        convertor = recv_convertor(buf) if there else ContiguousConvertor(NONE)
        made = PersistentMessageState(state, convertor, buf, source, tag, STANDARD, receives=True)
        return Prequest._adopt(made)

    # --- looking

    def Probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Literal[True]:
        """Wait for a message; it stays to be received."""
        state = self._state()
        if has_source(state, source, tag):
            found = state.call(state.pml.probe, state.communicator, source, tag)
            if status is not None:
                status._fill(found)
        elif status is not None:
            status._no_process()
        return True

    def Iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Whether there is a message; it stays to be received."""
        state = self._state()
        if not has_source(state, source, tag):
            if status is not None:
                status._no_process()
            return True
        found = state.call(state.pml.iprobe, state.communicator, source, tag)
        if status is not None:
            if found is None:
                status._clear()
            else:
                status._fill(found)
        return found is not None

    def Mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Wait for a message and take it; only `Message.Recv` receives it."""
        state = self._state()
        if not has_source(state, source, tag):
            return no_process_message(status)
        found = state.call(state.pml.mprobe, state.communicator, source, tag)
        return Message._taken(state, found, status)

    def Improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """A message, taken so that only `Message.Recv` receives it; or None."""
        state = self._state()
        if not has_source(state, source, tag):
            return no_process_message(status)
        found = state.call(state.pml.improbe, state.communicator, source, tag)
        if found is None:
            if status is not None:
                status._clear()
            return None
        return Message._taken(state, found, status)

    # --- memory for buffered sends

    def Attach_buffer(self, buf: Any) -> None:
        """Lend memory for buffered sends in this communicator."""
        buffering.attach_buffer(self._state(), buf)

    def Detach_buffer(self) -> Any:
        """Take back the memory when the messages in it have been sent."""
        state = self._state()
        return buffering.detach_buffer(state, state.world)

    def Flush_buffer(self) -> None:
        """Return when the buffered messages have been sent."""
        state = self._state()
        buffering.flush_buffer(state, state.world)

    def Iflush_buffer(self) -> Request:
        """Begin `Flush_buffer`: complete when the messages buffered so far have been sent."""
        state = self._state()
        return Request._adopt(RequestState(state, buffering.begin_flush(state, state.world), None))

    def Psend_init(
        self, buf: Any, partitions: int, dest: int, tag: int = 0, info: Info = INFO_NULL
    ) -> Prequest:
        """A request for a send in parts. Not available."""
        raise not_available("Comm.Psend_init", "partitioned messages")

    def Precv_init(
        self,
        buf: Any,
        partitions: int,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        info: Info = INFO_NULL,
    ) -> Prequest:
        """A request for a receive in parts. Not available."""
        raise not_available("Comm.Precv_init", "partitioned messages")


NONE = memoryview(bytearray())


class BufferedState(PersistentMessageState):
    """A buffered send that can be started again and again."""

    __slots__ = ()

    def _send(self) -> Operation:
        state = self.communicator_state
        return begin_send(state, self.convertor, self.target, self.tag, BUFFERED)


def _exchange(
    state: CommState,
    outgoing: Convertor | None,
    dest: int,
    sendtag: int,
    incoming: Convertor | None,
    source: int,
    recvtag: int,
) -> Operation:
    """Begin to receive and to send; one operation that completes with both of them."""
    received = nothing()
    if incoming is not None:
        received = begin_receive(state, incoming, source, recvtag)
    if outgoing is None:
        return received
    try:
        sent = begin_send(state, outgoing, dest, sendtag, STANDARD)
    except MPIError:
        state.pml.cancel(received)
        raise
    return received if sent.complete and not sent.error else _joint(state, sent, received)


def _joint(state: CommState, sent: Operation, received: Operation) -> Operation:
    """An operation that completes when both have; it describes what was received."""
    both = Operation()

    def done() -> None:
        if sent.complete and received.complete and not both.complete:
            both.source, both.tag = received.source, received.tag
            both.received, both.length = received.received, received.length
            both.error = received.error or sent.error
            both.detail = received.detail or sent.detail
            both.cancelled = received.cancelled
            both.finish()

    with state.world.engine.lock:
        sent.notify(done)
        if not both.complete:
            received.notify(done)
    return both
