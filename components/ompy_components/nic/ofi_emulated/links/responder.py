"""What one peer asks of this domain, and what it is answered."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ompy.frameworks.nic.fabric import AtomicCall, Caps, Datatype, Op
from ompy.net.base import WOULD_BLOCK, DeviceGone, LinkError, Stream

from ompy_components.nic.ofi_emulated import words
from ompy_components.nic.ofi_emulated.errors import ENOKEY
from ompy_components.nic.ofi_emulated.headers import (
    ANSWER,
    ATOMIC,
    ATOMICS,
    BYE,
    COMPARE,
    FETCH,
    LEAVES,
    READ,
    REQUEST,
    SEND,
    WANTS_ANSWER,
    BadFrame,
    Request,
    parse_request,
)
from ompy_components.nic.ofi_emulated.links.intake import Intake
from ompy_components.nic.ofi_emulated.links.link import READS
from ompy_components.nic.ofi_emulated.links.outgoing import Outgoing, OutgoingQueue
from ompy_components.nic.ofi_emulated.memory import EmulatedRegion
from ompy_components.nic.ofi_emulated.receives import Arrival, Receives

if TYPE_CHECKING:
    from ompy_components.nic.ofi_emulated.resources import Resources

_WRITES: Final = int(Caps.REMOTE_WRITE)
_READS: Final = int(Caps.REMOTE_READ)
_NEEDED: Final = {ATOMIC: _WRITES, FETCH: _WRITES | _READS, COMPARE: _WRITES | _READS}
_CALLS: Final = {
    ATOMIC: AtomicCall.ATOMIC,
    FETCH: AtomicCall.FETCH,
    COMPARE: AtomicCall.COMPARE,
}


class Responder:
    """One proven connection that a peer has made.

    Attributes:
        rank: whose.
        epoch: of the path, as the peer had it.
    """

    def __init__(
        self,
        resources: Resources,
        stream: Stream,
        rank: int,
        epoch: int,
        receives_of: Callable[[int, int], Receives | None],
        closed: Callable[[Responder, str], None],
    ) -> None:
        """Answer what comes.

        Args:
            resources: of the domain.
            stream: the connection.
            rank: whose.
            epoch: of the path, as the peer had it.
            receives_of: of the context a request is for, by its endpoint's number and its own;
                None: it is not there, or not enabled.
            closed: hears that the connection is, and why when it broke without a word.
        """
        self.rank = rank
        self.epoch = epoch
        self._left = False
        self._resources = resources
        self._readiness = resources.readiness
        self._regions = resources.regions
        self._stations = resources.stations
        self._receives_of = receives_of
        self._tell_closed = closed
        self._stream = stream
        self._intake = Intake(REQUEST.size)
        self._queue = OutgoingQueue()
        self._request: Request | None = None
        self._status = 0
        self._into: EmulatedRegion | Arrival | bytearray | None = None
        self._stalled = False
        self._closed = False
        self._readiness.add(stream, self)

    @property
    def speaking(self) -> bool:
        """Whether the stream has not taken all answers."""
        return bool(self._queue)

    def ready(self, readable: bool, writable: bool) -> None:
        """The stream can be used."""
        if writable and not self._closed:
            self._flush()
        if readable and not self._closed:
            self._receive()

    def _receive(self) -> None:
        intake = self._intake
        try:
            for _ in range(READS):
                count = self._stream.receive_into(intake.room())
                if count == WOULD_BLOCK:
                    break
                if count == 0:
                    self._broken("the peer has closed the connection")
                    return
                if intake.received(count):
                    if intake.in_header:
                        self._asked(parse_request(intake.header))
                    else:
                        self._landed()
                if self._closed or self._stalled:
                    return
        except DeviceGone as problem:
            self._resources.lost(str(problem))
        except (LinkError, BadFrame) as problem:
            self._broken(str(problem))

    # -- being asked

    def _asked(self, request: Request) -> None:
        self._request = request
        if not request.follows:
            self._stations.arrived(REQUEST.size)
        self._status = 0
        self._into = None
        receives = self._receives_of(request.endpoint, request.context)
        if request.kind == BYE:
            self._left = True
            self._intake.next_header()
        elif receives is None:
            self._refuse(request, errno.ENOTCONN)
        elif request.kind == SEND:
            self._asked_to_take(request, receives)
        elif request.kind in ATOMICS:
            self._into = bytearray(request.follows)
            self._land(request.follows, memoryview(self._into))
        else:
            access = _READS if request.kind == READ else _WRITES
            found = self._reach(request, access)
            if isinstance(found, int):
                self._refuse(request, found)
            elif request.kind == READ:
                view = self._regions.view(found, request.address, request.size)
                self._intake.next_header()
                self._answer(0, view, found)
            else:
                self._queue.withdraw(found)  # what was asked for before is as it was
                self._into = found
                view = self._regions.view(found, request.address, request.size)
                self._land(request.size, view)

    def _reach(self, request: Request, access: int) -> EmulatedRegion | int:
        regions = self._regions
        return regions.reach(request.key, request.address, request.size, access)

    def _refuse(self, request: Request, status: int) -> None:
        """Read what follows the request, and say why it was not done."""
        self._status = status
        self._land(request.follows, None)

    def _asked_to_take(self, request: Request, receives: Receives) -> None:
        arrival = receives.place(request.size, self)
        if arrival is None:
            self._stalled = True
            self._readiness.remove(self._stream)
            return
        self._into = arrival
        self._land(len(arrival.room), arrival.room)

    def go_on(self) -> None:
        """There is a place for the message that had none."""
        if self._stalled and not self._closed:
            self._stalled = False
            self._readiness.add(self._stream, self)
            assert self._request is not None
            self._asked(self._request)

    def _land(self, size: int, target: memoryview | None) -> None:
        self._intake.land(size, target)
        if not size:
            self._landed()

    def _landed(self) -> None:
        """All that belongs to the request is here, or as much as there is a place for."""
        request, into = self._request, self._into
        assert request is not None
        if isinstance(into, Arrival) and not into.cut and len(into.room) < request.size:
            into.cut = True
            self._intake.land(request.size - len(into.room), None)
            return
        self._intake.next_header()
        if request.follows:
            self._stations.arrived(REQUEST.size + request.follows)
        self._into = None
        if isinstance(into, Arrival):
            wanted = request.flags & WANTS_ANSWER and not self._status
            number = request.number
            into.arrived((lambda: self._say(0, number)) if wanted else None)
            if not self._status:
                return  # its answer says that it has been received
        elif isinstance(into, bytearray) and not self._status:
            self._compute(request, memoryview(into))
            return
        if self._status or request.flags & WANTS_ANSWER:
            self._answer(self._status)

    def _compute(self, request: Request, operands: memoryview) -> None:
        found = self._reach(request, _NEEDED[request.kind])
        datatype, op = Datatype(request.datatype), Op(request.op)
        if isinstance(found, int):
            self._answer(found)
            return
        if (
            not self._resources.traits.atomics
            or request.address % request.size
            or not words.valid(_CALLS[request.kind], datatype, op)
        ):
            self._answer(errno.EINVAL)
            return
        self._queue.withdraw(found)
        word = self._regions.view(found, request.address, request.size)
        old = words.change(word, datatype, op, operands)
        if request.kind != ATOMIC:
            self._answer(0, memoryview(old))
        elif request.flags & WANTS_ANSWER:
            self._answer(0)

    # -- answering

    def _answer(self, status: int, data: memoryview | None = None, subject: object = None) -> None:
        assert self._request is not None
        self._say(status, self._request.number, data, subject)

    def _say(
        self,
        status: int,
        number: int,
        data: memoryview | None = None,
        subject: object = None,
    ) -> None:
        if self._closed:
            return
        if status and status != LEAVES:
            self._resources.counts["refused"] += 1
        pieces = [] if data is None else [data]
        size = sum(map(len, pieces))
        header = memoryview(ANSWER.pack(status, number, size))
        frame = Outgoing([header, *pieces], subject)
        stations = self._stations
        if stations.runs:
            frame.leaves = stations.sent(stations.taken(), len(header) + size)
            stations.at(frame.leaves, self._leave)
        self._queue.add(frame)
        self._flush()

    def _leave(self) -> None:
        """The clock says that an answer leaves the device."""
        if not self._closed:
            self._flush()

    def _flush(self) -> None:
        now = self._resources.context.engine.now()
        try:
            self._queue.flush(self._stream, now)
        except DeviceGone as problem:
            self._resources.lost(str(problem))
            return
        except LinkError as problem:
            self._broken(str(problem))
            return
        if not self._stalled:
            self._readiness.want_write(self._stream, wanted=self._queue.due(now))

    # -- ends

    def withdraw(self, subject: EmulatedRegion | Receives) -> None:
        """A region or a context is closed: its memory is not touched any more."""
        self._queue.withdraw(subject)
        into = self._into
        if into is subject or (isinstance(into, Arrival) and into.receives is subject):
            self._status = errno.ENOTCONN if isinstance(into, Arrival) else ENOKEY
            self._into = None
            self._intake.drop()
            if isinstance(into, Arrival) and not into.cut:
                # what lies behind the room has no place either
                assert self._request is not None
                self._intake.left += self._request.size - len(into.room)

    def say_bye(self) -> None:
        """Tell the peer, behind all answers, that the connection will be closed."""
        self._say(LEAVES, 0)
        if not self._closed:  # still
            self._queue.hurry()
            self._flush()

    def _broken(self, why: str) -> None:
        """The connection is gone: so is the path, unless the peer has said so before."""
        self.close("" if self._left else why)

    def close(self, why: str = "") -> None:
        """Close the connection; a message of which the rest is missing never came."""
        if self._closed:
            return
        self._closed = True
        if isinstance(self._into, Arrival):
            self._into.never_came()
        self._queue.clear()
        self._readiness.remove(self._stream)
        self._stream.close()
        self._tell_closed(self, why)
