"""Communicators: messages in buffers, one at a time."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from typing import Any, Literal

from ompy import raw
from ompy.compiled import DECLARING, ccall, cclass, cfunc
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, TAG_UB
from ompy.data.convertor import ContiguousConvertor, Convertor, copied
from ompy.data.errors import MPIError
from ompy.data.receive_memory import POOLED_FROM
from ompy.data.request import Request as Operation
from ompy.frameworks.pml import BUFFERED, READY, STANDARD, SYNCHRONOUS, MatchedMessage
from ompy.mpi.buffers.message_convertors import recv_convertor, send_convertor
from ompy.mpi.handles import Handle
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point.buffering import SendBuffer, attached
from ompy.mpi.point_to_point.matched import Message, no_process_message, taken_message
from ompy.mpi.point_to_point.peers import wrong_source, wrong_target
from ompy.mpi.point_to_point.prepared_calls import PreparedCalls
from ompy.mpi.point_to_point.request import Prequest, Request, prepared_request, request_of
from ompy.mpi.point_to_point.requeststate import PersistentMessageState, complete_operation, nothing
from ompy.mpi.point_to_point.status import Described, Status, check_status
from ompy.mpi.state import CommState, null_communicator

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
            lent: SendBuffer = attached(state)
            lent.send(state, convertor, target, tag)
            return complete_operation()
        if type(target) is not int or type(tag) is not int:
            target, tag = whole_number(target), whole_number(tag)
        return state.pml.isend(state.communicator, convertor, target, tag, mode)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def begin_receive(state: CommState, convertor: Convertor, source: Any, tag: Any) -> Operation:
    """Begin to receive."""
    try:
        if type(source) is not int or type(tag) is not int:
            source, tag = whole_number(source), whole_number(tag)
        return state.pml.irecv(state.communicator, convertor, source, tag)
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
    if not both_ints(target, tag):
        return has_target(state, whole_number(target), whole_number(tag))
    if target == PROC_NULL and 0 <= raw.small(tag) <= TAG_UB:
        state.check_not_revoked()
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
    if not both_ints(source, tag):
        return has_source(state, whole_number(source), whole_number(tag))
    if source == PROC_NULL and ANY_TAG <= raw.small(tag) <= TAG_UB:
        state.check_not_revoked()
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
    elif target == PROC_NULL and 0 <= label <= TAG_UB:
        state.check_not_revoked()
    else:
        raise wrong_target(state, dest, tag)


@ccall
def send_in_mode(comm: Handle, buf: Any, dest: Any, tag: Any, mode: int) -> None:
    """Send a buffer and wait: `Comm.Ssend` and its like.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    if not has_target(state, dest, tag):
        return
    convertor: Convertor = send_convertor(buf)
    if mode == BUFFERED:
        begin_send(state, convertor, dest, tag, mode)
        return
    if not both_ints(dest, tag):
        dest, tag = whole_number(dest), whole_number(tag)
    try:
        state.pml.send(state.communicator, convertor, dest, tag, mode)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def wait_for_sent(state: CommState, done: Operation) -> None:
    """Wait for a message on its way out."""
    try:
        state.pml.wait(state.communicator, done)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__


@ccall
def both_ints(one: Any, other: Any) -> bool:
    """Whether a rank and a tag are of class int, and not other things that stand for one."""
    return one.__class__ is int and other.__class__ is int


@ccall
def receive_buffer(comm: Handle, buf: Any, source: Any, tag: Any, status: Described | None) -> None:
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
    elif origin == PROC_NULL and ANY_TAG <= label <= TAG_UB:
        state.check_not_revoked()
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
    done = begin_send(state, send_convertor(buf), dest, tag, mode)
    return request_of(state, state.watched(done) if mode == BUFFERED else done, buf, False)


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


@ccall
def look_for(comm: Handle, source: Any, tag: Any, status: Described | None, waits: bool) -> bool:
    """Look for a message that stays to be received: `Comm.Probe` and `Comm.Iprobe`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    if not both_ints(source, tag):
        source, tag = whole_number(source), whole_number(tag)
    if not has_source(state, source, tag):
        if status is not None:
            status._no_process()
        return True
    found: Operation | None = None
    try:
        if waits:
            found = state.pml.probe(state.communicator, source, tag)
        else:
            found = state.pml.iprobe(state.communicator, source, tag)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    if found is None:
        if status is not None:
            status._clear()
        return False
    if status is not None:
        status._fill(found)
    return True


@ccall
def take_message(comm: Handle, source: Any, tag: Any, status: Described | None, waits: bool) -> Any:
    """Take a message: `Comm.Mprobe`, or `Comm.Improbe`, which is None if there is none.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    if not both_ints(source, tag):
        source, tag = whole_number(source), whole_number(tag)
    if not has_source(state, source, tag):
        return no_process_message(status)
    found: MatchedMessage | None = None
    try:
        if waits:
            found = state.pml.mprobe(state.communicator, source, tag)
        else:
            found = state.pml.improbe(state.communicator, source, tag)
    except MPIError as problem:
        raise state.raised(problem) from problem.__cause__
    if found is not None:
        return taken_message(state, found, status)
    if status is not None:
        status._clear()
    return None


class PointToPoint(PreparedCalls):
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
        check_status(status)
        receive_buffer(self, buf, source, tag, status)

    def Bsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send a copy, for which there must be room in the attached buffer."""
        send_in_mode(self, buf, dest, tag, BUFFERED)

    def Ssend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send, and return when the receive has begun."""
        send_in_mode(self, buf, dest, tag, SYNCHRONOUS)

    def Rsend(self, buf: Any, dest: int, tag: int = 0) -> None:
        """Send to a receive that has been posted."""
        send_in_mode(self, buf, dest, tag, READY)

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
        check_status(status)
        state = self._state()
        sends, receives = has_target(state, dest, sendtag), has_source(state, source, recvtag)
        outgoing = send_convertor(sendbuf) if sends else None
        incoming = recv_convertor(recvbuf) if receives else None
        exchange_waited(state, outgoing, dest, sendtag, incoming, source, recvtag, status)

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
        check_status(status)
        state = self._state()
        sends, receives = has_target(state, dest, sendtag), has_source(state, source, recvtag)
        incoming = recv_convertor(buf) if receives else None
        outgoing = copy_of(state, buf, incoming) if sends else None
        exchange_waited(state, outgoing, dest, sendtag, incoming, source, recvtag, status)

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
        return request_of(state, done, (sendbuf, recvbuf), True)

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
        incoming = recv_convertor(buf) if receives else None
        outgoing = copy_of(state, buf, incoming) if sends else None
        done = _exchange(state, outgoing, dest, sendtag, incoming, source, recvtag)
        return request_of(state, done, buf, True)

    # --- persistent

    def _send_init(self, buf: Any, dest: int, tag: int, mode: int) -> Prequest:
        dest, tag = whole_number(dest), whole_number(tag)
        state = self._state()
        there = has_target(state, dest, tag)
        convertor = send_convertor(buf) if there else ContiguousConvertor(NONE)
        if mode == BUFFERED:
            copied = BufferedState(state, convertor, buf, dest, tag, mode, receives=False)
            return Prequest._adopt(copied)
        return prepared_request(state, convertor, buf, dest, tag, mode, False)

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
        source, tag = whole_number(source), whole_number(tag)
        state = self._state()
        there = has_source(state, source, tag)
        convertor = recv_convertor(buf) if there else ContiguousConvertor(NONE)
        return prepared_request(state, convertor, buf, source, tag, STANDARD, True)

    # --- looking

    def Probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Literal[True]:
        """Wait for a message; it stays to be received."""
        check_status(status)
        look_for(self, source, tag, status, True)
        return True

    def Iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Whether there is a message; it stays to be received."""
        check_status(status)
        return look_for(self, source, tag, status, False)

    def Mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Wait for a message and take it; only `Message.Recv` receives it."""
        check_status(status)
        taken: Message = take_message(self, source, tag, status, True)
        return taken

    def Improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """A message, taken so that only `Message.Recv` receives it; or None."""
        check_status(status)
        taken: Message | None = take_message(self, source, tag, status, False)
        return taken


NONE = memoryview(bytearray())


@cclass
class BufferedState(PersistentMessageState):
    """A buffered send that can be started again and again."""

    __slots__ = ()

    @ccall
    def begin_operation(self) -> Operation:
        """Begin to send a copy, for which there must be room in the attached buffer."""
        if self.target == PROC_NULL:
            return nothing()
        state: CommState | None = self.comm
        assert state is not None, "a persistent request is made by a communicator"
        return state.watched(begin_send(state, self.convertor, self.target, self.tag, BUFFERED))


@ccall
def copy_of(state: CommState, buf: Any, incoming: Convertor | None) -> Convertor:
    """A copy of a message to be sent; `incoming` is its buffer as room, if it is received into."""
    source: Convertor = incoming if incoming is not None else send_convertor(buf)
    if source.size < POOLED_FROM:
        return copied(source)
    with state.world.engine.lock:  # of the memory that large messages take in turn
        return copied(source)


@ccall
def exchange_waited(
    state: CommState,
    outgoing: Convertor | None,
    dest: Any,
    sendtag: Any,
    incoming: Convertor | None,
    source: Any,
    recvtag: Any,
    status: Described | None,
) -> None:
    """Receive and send, and wait for both; either may be None for PROC_NULL.

    Raises:
        MPIException: one of them failed; both are over.
    """
    received: Operation = nothing()
    sent: Operation | None = None
    if incoming is not None:
        received = begin_receive(state, incoming, source, recvtag)
    if outgoing is not None:
        sent = _begin_other(state, outgoing, dest, sendtag, received)
    if not received.complete:
        state.world.engine.wait_only(received)
    if sent is not None and not sent.complete:
        state.world.engine.wait(sent)
    if status is not None and incoming is not None:
        status._fill(received)
    elif status is not None:
        status._no_process()
    if received.error:
        raise state.raised(MPIError(received.error, received.detail))
    if sent is not None and sent.error:
        raise state.raised(MPIError(sent.error, sent.detail))


@cfunc
def _begin_other(
    state: CommState, outgoing: Convertor, dest: Any, tag: Any, received: Operation
) -> Operation:
    """Begin to send; if that fails nothing is received either."""
    try:
        return begin_send(state, outgoing, dest, tag, STANDARD)
    except MPIError:
        state.pml.cancel(received)
        raise


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
    sent = _begin_other(state, outgoing, dest, sendtag, received)
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
