"""Communicators: messages that are Python objects, one at a time."""

# ruff: noqa: SLF001 - states are private to users, not to this package

from __future__ import annotations

from operator import index
from typing import Any, Literal

from ompy import raw
from ompy.compiled import DECLARING, ccall
from ompy.data.constants import ANY_SOURCE, ANY_TAG, PROC_NULL, TAG_UB
from ompy.data.convertor import ContiguousConvertor, Convertor, GrowingConvertor, growing
from ompy.data.errors import MPIError
from ompy.frameworks.pml import BUFFERED, STANDARD, SYNCHRONOUS
from ompy.mpi.buffers.access import acquire
from ompy.mpi.buffers.objects import convertor_of, pickle
from ompy.mpi.handles import Handle, plain_handle
from ompy.mpi.integers import whole_number
from ompy.mpi.point_to_point.matched import Message
from ompy.mpi.point_to_point.objectrequest import object_state, received_object
from ompy.mpi.point_to_point.peers import wrong_source, wrong_target
from ompy.mpi.point_to_point.point_to_point import (
    begin_receive,
    begin_send,
    both_ints,
    has_source,
    has_target,
    look_for,
    take_message,
    wait_for_sent,
)
from ompy.mpi.point_to_point.request import Request, request_of
from ompy.mpi.point_to_point.requeststate import nothing
from ompy.mpi.point_to_point.status import Described, Status, check_status
from ompy.mpi.state import CommBase, CommState, null_communicator

if DECLARING:
    from ompy.data.request import Request as Operation
    from ompy.mpi.buffers.objects import Pickle


@ccall
def send_object(comm: Handle, obj: Any, dest: Any, tag: Any) -> None:
    """Send an object and wait: `Comm.send`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    target: int = raw.small(dest)
    label: int = raw.small(tag)
    if 0 <= target < state.size and 0 <= label <= TAG_UB:
        codec: Pickle = pickle  # under a name of this function it is typed where this is compiled
        convertor = convertor_of(codec.pieces(obj))
        try:
            state.pml.send(state.communicator, convertor, target, label, STANDARD)
        except MPIError as problem:
            raise state.raised(problem) from problem.__cause__
    elif not both_ints(dest, tag):
        send_object(comm, obj, int(whole_number(dest)), int(whole_number(tag)))
    elif target == PROC_NULL and 0 <= label <= TAG_UB:
        state.check_not_revoked()
    else:
        raise wrong_target(state, dest, tag)


@ccall
def receive_object(comm: Handle, source: Any, tag: Any, status: Described | None) -> Any:
    """Receive an object: `Comm.recv`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    origin: int = raw.small(source)
    label: int = raw.small(tag)
    if ANY_SOURCE <= origin < state.size and ANY_TAG <= label <= TAG_UB:
        convertor: GrowingConvertor = growing()
        try:
            done: Operation = state.pml.recv(state.communicator, convertor, origin, label)
        except MPIError as problem:
            raise state.raised(problem) from problem.__cause__
        if status is not None:
            status._fill(done)
        codec: Pickle = pickle
        return codec.load(convertor.owner())
    if not both_ints(source, tag):
        return receive_object(comm, int(whole_number(source)), int(whole_number(tag)), status)
    if origin != PROC_NULL or not ANY_TAG <= label <= TAG_UB:
        raise wrong_source(state, source, tag)
    state.check_not_revoked()
    if status is not None:
        status._no_process()
    return None


@ccall
def send_object_in_mode(comm: Handle, obj: Any, dest: Any, tag: Any, mode: int) -> None:
    """Send an object and wait: `Comm.ssend` and `Comm.bsend`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    if has_target(state, dest, tag):
        codec: Pickle = pickle
        done: Operation = begin_send(state, convertor_of(codec.pieces(obj)), dest, tag, mode)
        if not done.complete or done.error:
            wait_for_sent(state, done)


@ccall
def begin_send_object(comm: Handle, obj: Any, dest: Any, tag: Any, mode: int) -> Request:
    """Begin to send an object: `Comm.isend` and its like.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    if not has_target(state, dest, tag):
        return request_of(state, nothing(), None, False)
    codec: Pickle = pickle
    pieces = codec.pieces(obj)
    done = begin_send(state, convertor_of(pieces), dest, tag, mode)
    return request_of(state, state.watched(done) if mode == BUFFERED else done, pieces, False)


@ccall
def begin_receive_object(comm: Handle, buf: Any, source: Any, tag: Any) -> Request:
    """Begin to receive an object: `Comm.irecv`.

    Raises:
        MPIException: it failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    convertor: Convertor
    if has_source(state, source, tag):
        convertor = growing() if buf is None else _room(buf)
        done: Operation = begin_receive(state, convertor, source, tag)
    else:
        convertor, done = growing(), nothing()
    found: Request = plain_handle(Request, object_state(state, done, convertor))
    return found


@ccall
def exchange_objects(
    comm: Handle,
    sendobj: Any,
    dest: Any,
    sendtag: Any,
    source: Any,
    recvtag: Any,
    status: Described | None,
) -> Any:
    """Send one object and receive another: `Comm.sendrecv`.

    Raises:
        MPIException: one of them failed, or there is no such rank or tag.
    """
    state: CommState | None = comm._inner
    if state is None:
        raise null_communicator()
    receives = has_source(state, source, recvtag)
    sent: Operation | None = None
    if has_target(state, dest, sendtag):
        codec: Pickle = pickle
        outgoing = convertor_of(codec.pieces(sendobj))
        sent = begin_send(state, outgoing, dest, sendtag, STANDARD)
    found = None
    if receives:
        convertor: GrowingConvertor = growing()
        received: Operation = begin_receive(state, convertor, source, recvtag)
        if not received.complete:
            state.world.engine.wait_only(received)
        if status is not None:
            status._fill(received)
        if received.error:
            raise state.raised(MPIError(received.error, received.detail))
        found = received_object(convertor)
    elif status is not None:
        status._no_process()
    if sent is not None and (not sent.complete or sent.error):
        wait_for_sent(state, sent)
    return found


class ObjectMessages(CommBase):
    """Sends and receives of objects. They are pickled: see `ompy.mpi.buffers.objects`."""

    __slots__ = ()

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object."""
        send_object(self, obj, dest, tag)

    def recv(
        self,
        buf: Any = None,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Receive an object.

        Args:
            buf: of no use; given for the sake of old programs.
            source: the sender's rank, or ANY_SOURCE.
            tag: of the message, or ANY_TAG.
            status: filled with what is known about the message.
        """
        check_status(status)
        if buf is not None:
            _warn_about_buffer()
        return receive_object(self, source, tag, status)

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send a copy, for which there must be room in the attached buffer."""
        send_object_in_mode(self, obj, dest, tag, BUFFERED)

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send, and return when the receive has begun."""
        send_object_in_mode(self, obj, dest, tag, SYNCHRONOUS)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send; leave large buffers in the object alone until the request is complete."""
        return begin_send_object(self, obj, dest, tag, STANDARD)

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send a copy, for which there must be room in the attached buffer."""
        return begin_send_object(self, obj, dest, tag, BUFFERED)

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        """Begin to send; complete when the receive has begun."""
        return begin_send_object(self, obj, dest, tag, SYNCHRONOUS)

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Request:
        """Begin to receive an object; the request's `wait` gives it.

        Args:
            buf: memory to receive into, or its size; with None there is room for any object.
            source: the sender's rank, or ANY_SOURCE.
            tag: of the message, or ANY_TAG.
        """
        return begin_receive_object(self, buf, source, tag)

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Send one object and receive another."""
        check_status(status)
        if recvbuf is not None:
            _warn_about_buffer()
        return exchange_objects(self, sendobj, dest, sendtag, source, recvtag, status)

    def probe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Literal[True]:
        """Wait for a message; it stays to be received."""
        check_status(status)
        look_for(self, source, tag, status, True)
        return True

    def iprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> bool:
        """Whether there is a message; it stays to be received."""
        check_status(status)
        return look_for(self, source, tag, status, False)

    def mprobe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Wait for a message and take it; only its `recv` receives it."""
        check_status(status)
        taken: Message = take_message(self, source, tag, status, True)
        return taken

    def improbe(
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """A message, taken so that only its `recv` receives it; or None."""
        check_status(status)
        taken: Message | None = take_message(self, source, tag, status, False)
        return taken


def _room(buf: Any) -> Convertor:
    """Where an object is received: anywhere, or in the user's memory."""
    if buf is None:
        return growing()
    if isinstance(buf, int):
        return ContiguousConvertor(memoryview(bytearray(index(buf))))
    return ContiguousConvertor(acquire(buf, True).view)


def _warn_about_buffer() -> None:
    import warnings

    warnings.warn("the 'buf' argument is not used", UserWarning, stacklevel=3)
