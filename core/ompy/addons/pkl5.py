"""Communicators with a pickle of their own: `mpi4py.util.pkl5`.

`MPI.Comm` keeps large buffers out of the pickle as well (`ompy.mpi.buffers.objects`). These
communicators differ in that they go by this module's `pickle`, whatever `MPI.pickle` has been told:
its threshold is theirs alone, and functions that a program has given to `MPI.pickle` see none of
their objects.
An object is one message, so threads that receive at once need no lock.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any, Final, Never, Self, TypeVar

from ompy import MPI
from ompy.MPI import ANY_SOURCE, ANY_TAG, PROC_NULL, ROOT, Pickle, Status

__all__ = [
    "ANY_SOURCE",
    "ANY_TAG",
    "PROC_NULL",
    "ROOT",
    "Comm",
    "Intercomm",
    "Intracomm",
    "Message",
    "Pickle",
    "Request",
    "Status",
    "pickle",
]

pickle: Pickle = Pickle()  # may be replaced, so that it is looked up at each call

_Handle = TypeVar("_Handle", MPI.Request, MPI.Message)


class _BigMPI:
    """What mpi4py splits messages by. No count is too large here: it says so, and does nothing."""

    def __init__(self) -> None:
        self.blocksize = sys.maxsize


_bigmpi = _BigMPI()


def _framed(obj: Any) -> Any:
    """An object as this module's pickle has it."""
    return pickle.framed(obj)


def _all_framed(objects: Iterable[Any] | None) -> Any:
    """The items of a sequence, each by itself; a wrong number of them is the call's to find."""
    return None if objects is None else [_framed(each) for each in objects]


class Request(tuple[MPI.Request, ...]):
    """Requests that are complete together; one, where this module makes it."""

    __slots__ = ()

    def __new__(cls, request: MPI.Request | Iterable[MPI.Request] | None = None) -> Self:
        """Requests under one name; none of them is the null request."""
        return super().__new__(cls, _members(request, MPI.REQUEST_NULL))

    def __eq__(self, other: object) -> Any:
        return _are_equal(self, other, MPI.Request)

    def __ne__(self, other: object) -> Any:
        equal = _are_equal(self, other, MPI.Request)
        return equal if equal is NotImplemented else not equal

    __hash__ = None  # type: ignore[assignment]  # as no handle has

    def __bool__(self) -> bool:
        return any(self)

    def Free(self) -> None:
        """Forget them; what is under way goes on."""
        for each in self:
            each.Free()

    def free(self) -> None:
        """Forget those that are not null."""
        for each in self:
            each.free()

    def cancel(self) -> None:
        """Cancel each."""
        for each in self:
            each.Cancel()

    def get_status(self, status: Status | None = None) -> bool:
        """Whether all are complete; they stay as they are."""
        rest = [None] * (len(self) - 1)
        return all(each.Get_status(at) for each, at in zip(self, (status, *rest), strict=False))

    def test(self, status: Status | None = None) -> tuple[bool, Any | None]:
        """Whether all are complete; then the object that came, None of a send."""
        done, objects = MPI.Request.testall(list(self), _statuses(self, status))
        return done, _received(objects) if done else None

    def wait(self, status: Status | None = None) -> Any:
        """Wait for all; the object that came, None of a send."""
        return _received(MPI.Request.waitall(list(self), _statuses(self, status)))

    @classmethod
    def get_status_all(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> bool:
        """Whether all of several are complete; they stay as they are."""
        told = _one_each(requests, statuses)
        return all(each.get_status(at) for each, at in zip(requests, told, strict=False))

    @classmethod
    def testall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> tuple[bool, list[Any] | None]:
        """Whether all of several are complete; then what came, in their order."""
        told = _one_each(requests, statuses)
        if not all(MPI.Request.get_status_all(list(each)) for each in requests):
            return False, None
        return True, [each.wait(at) for each, at in zip(requests, told, strict=False)]

    @classmethod
    def waitall(
        cls, requests: Sequence[Request], statuses: list[Status] | None = None
    ) -> list[Any]:
        """Wait for all of several; what came, in their order."""
        told = _one_each(requests, statuses)
        return [each.wait(at) for each, at in zip(requests, told, strict=False)]


class Message(tuple[MPI.Message, ...]):
    """A message that was taken and is still to be received."""

    __slots__ = ()

    def __new__(cls, message: MPI.Message | Iterable[MPI.Message] | None = None) -> Self:
        """A message under this class; none of them is the null message."""
        return super().__new__(cls, _members(message, MPI.MESSAGE_NULL))

    def __eq__(self, other: object) -> Any:
        return _are_equal(self, other, MPI.Message)

    def __ne__(self, other: object) -> Any:
        equal = _are_equal(self, other, MPI.Message)
        return equal if equal is NotImplemented else not equal

    __hash__ = None  # type: ignore[assignment]  # as no handle has

    def __bool__(self) -> bool:
        return any(self)

    def free(self) -> None:
        """Of no effect, as on any message."""
        for each in self:
            each.free()

    def recv(self, status: Status | None = None) -> Any:
        """Receive the object."""
        return self[0].recv(status)

    def irecv(self) -> Request:
        """Begin to receive the object."""
        return Request(self[0].irecv())

    @classmethod
    def probe(
        cls,
        comm: MPI.Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self:
        """Wait for a message and take it."""
        return cls(MPI.Comm.Mprobe(comm, source, tag, status))

    @classmethod
    def iprobe(
        cls,
        comm: MPI.Comm,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Self | None:
        """A message that is taken, or None."""
        found = MPI.Comm.Improbe(comm, source, tag, status)
        return None if found is None else cls(found)


class Comm(MPI.Comm):
    """A communicator whose objects go by this module's `pickle`."""

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send an object."""
        MPI.Comm.send(self, _framed(obj), dest, tag)

    def bsend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send a copy, for which there must be room in the attached buffer."""
        MPI.Comm.bsend(self, _framed(obj), dest, tag)

    def ssend(self, obj: Any, dest: int, tag: int = 0) -> None:
        """Send, and return when the receive has begun."""
        MPI.Comm.ssend(self, _framed(obj), dest, tag)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Begin to send; leave large buffers in the object alone until it is complete."""
        return Request(MPI.Comm.isend(self, _framed(obj), dest, tag))

    def ibsend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Begin to send a copy, for which there must be room in the attached buffer."""
        return Request(MPI.Comm.ibsend(self, _framed(obj), dest, tag))

    def issend(self, obj: Any, dest: int, tag: int = 0) -> Request:  # type: ignore[override]
        """Begin to send; complete when the receive has begun."""
        return Request(MPI.Comm.issend(self, _framed(obj), dest, tag))

    def recv(
        self,
        buf: Any = None,
        source: int = ANY_SOURCE,
        tag: int = ANY_TAG,
        status: Status | None = None,
    ) -> Any:
        """Receive an object.

        Args:
            buf: of no use, as the object has memory of its own; mpi4py receives the pickle there.
            source: the sender's rank, or ANY_SOURCE.
            tag: of the message, or ANY_TAG.
            status: filled with what is known about the message.
        """
        return MPI.Comm.recv(self, None, source, tag, status)

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = ANY_TAG) -> Never:
        """Not available: `mprobe(...).irecv()` begins to receive.

        Raises:
            RuntimeError: always, as in mpi4py.
        """
        raise RuntimeError("pkl5 communicators have no irecv: take the message with mprobe first")

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
        """Send an object and receive one, both under way at once."""
        framed = _framed(sendobj)
        return MPI.Comm.sendrecv(self, framed, dest, sendtag, None, source, recvtag, status)

    def mprobe(  # type: ignore[override]
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message:
        """Wait for a message and take it."""
        return Message.probe(self, source, tag, status)

    def improbe(  # type: ignore[override]
        self, source: int = ANY_SOURCE, tag: int = ANY_TAG, status: Status | None = None
    ) -> Message | None:
        """A message that is taken, or None."""
        return Message.iprobe(self, source, tag, status)

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """The root's object, at every member."""
        return super().bcast(_framed(obj), root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        """Every member's object in a list at the root, None elsewhere."""
        return super().gather(_framed(sendobj), root)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """This member's item of the root's sequence."""
        return super().scatter(_all_framed(sendobj), root)

    def allgather(self, sendobj: Any) -> list[Any]:
        """Every member's object in a list."""
        return super().allgather(_framed(sendobj))

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """This member's item of every member's sequence."""
        return super().alltoall(_all_framed(sendobj))


class Intracomm(Comm, MPI.Intracomm):
    """A communicator of one group whose objects go by this module's `pickle`."""


class Intercomm(Comm, MPI.Intercomm):
    """A communicator between two groups whose objects go by this module's `pickle`."""


def _members(given: _Handle | Iterable[_Handle] | None, null: _Handle) -> tuple[_Handle, ...]:
    """The handles that a tuple of them is made of."""
    if given is None:
        return (null,)
    return tuple(given) if isinstance(given, Iterable) else (given,)


def _are_equal(mine: tuple[Any, ...], other: object, kind: type) -> Any:
    if isinstance(other, type(mine)):
        return tuple(mine) == tuple(other)
    if isinstance(other, kind):
        return all(each == other for each in mine)
    return NotImplemented


def _statuses(requests: Request, status: Status | None) -> list[Status] | None:
    """A status for each member, the last member's being what the caller gave."""
    if status is None:
        return None
    return [*(Status() for _ in requests[1:]), status]


def _one_each(
    requests: Sequence[Request], statuses: list[Status] | None
) -> Sequence[Status | None]:
    """A status for each; a list that is too short is filled up, as mpi4py does."""
    if statuses is None:
        return [None] * len(requests)
    rest = [Status() for _ in range(len(statuses), len(requests))]
    if isinstance(statuses, list):
        statuses += rest
        return statuses
    return [*statuses, *rest]


def _received(objects: Sequence[Any] | None) -> Any:
    """What came: sends have nothing."""
    found: Final = [each for each in objects or () if each is not None]
    return found[-1] if found else None
