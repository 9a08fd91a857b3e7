"""Put and get over one connection, by frames of their own.

    PUT with IN_ORDER                               ->  nothing
    PUT (operation, identity, offset, size, bytes)  ->  DONE (operation, status)
    PUT with PART, ..., PUT (the last one)          ->  DONE, once
    GET (operation, identity, offset, size)         ->  GOT (operation, bytes), or DONE

The bytes go from the asker's memory into the frame as they lie, and are received into the
registered memory itself; the answer to a get goes out of the registered memory. The target looks
the registration up before it takes a byte, and once more whenever a registration is given back
while bytes for it are still coming: what has no place is read and dropped, and the connection goes
on.

A put is complete when DONE is here, so it is in the peer's memory then. One whose asker needs no
more than that what it sends next comes later (`IN_ORDER` of the contract) is complete when the
kernel has taken it, as nothing overtakes it in its connection. A connection that fails over keeps
no copy of a put, so there each is answered. A long put is several frames there, so that what is
said meanwhile need not wait for its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ompy import raw
from ompy.compiled import DECLARING, U64, ccall, cclass, cfunc
from ompy.frameworks.btl import (
    BAD_PARAM,
    IN_ORDER,
    OUT_OF_RESOURCE,
    QUEUED,
    REMOTE_READ,
    REMOTE_WRITE,
    UNREACHABLE,
    Descriptor,
)
from ompy.frameworks.btl_base.registration import Registration, RegistrationTable

from ompy_components.btl.tcp.framing import (
    DONE,
    GET,
    GOT,
    LANDED,
    PART,
    PUT,
    REMOTE,
    REMOTE_SIZE,
    UNANSWERED,
    FrameReader,
    frame_word,
)

if TYPE_CHECKING:
    from ompy_components.btl.tcp.pacing import Pacing

if DECLARING:
    from ompy_components.btl.tcp.endpoint import TcpEndpoint


@cclass
class RemoteMemory:
    """Puts and gets over one connection, as asker and as target.

    Attributes:
        answered: every put is.
        pacing: says in which parts long puts go; None: each is one frame.
    """

    _endpoint: TcpEndpoint
    _into: object | None  # the registration of a put, the descriptor of a get, or nowhere
    _landing: bool
    _next: int
    _number: int
    _operations: dict[int, Descriptor]
    _put: bool  # that lands
    _reader: FrameReader | None
    _status: int  # of the put that lands
    _table: RegistrationTable
    answered: bool
    pacing: Pacing | None
    __slots__ = tuple(__annotations__)

    def __init__(self, endpoint: TcpEndpoint, table: RegistrationTable) -> None:
        self._endpoint = endpoint
        self._table = table
        self._operations = {}
        self._next = 1
        self._landing = self._put = False
        self._number = self._status = 0
        self._into = None
        self._reader = None
        self.answered = False
        self.pacing = None

    @property
    def idle(self) -> bool:
        """No operation waits for its answer."""
        return not self._operations

    # -- asking

    @ccall
    def put(self, identity: U64, offset: U64, descriptor: Descriptor) -> int:
        """Send a put, or queue it. Returns as the contract says."""
        refused: int = self._refusal()
        if refused:
            return refused
        local = descriptor.segment
        if descriptor.flags & IN_ORDER and not self.answered:
            frame = _frame(PUT, 0, identity, offset, len(local), local, UNANSWERED, 0)
            return self._endpoint.send_put(frame, descriptor)
        chunk: int = self.pacing.chunk_for(self._endpoint.proc) if self.pacing is not None else 0
        if 0 < chunk < len(local):
            return self._put_in_parts(identity, offset, descriptor, chunk)
        return self._ask(PUT, identity, offset, descriptor, local)

    @cfunc
    def _refusal(self) -> int:
        """What is returned of an operation that cannot begin now; 0 if it can."""
        endpoint: TcpEndpoint = self._endpoint
        if endpoint.lost():
            return UNREACHABLE
        return 0 if endpoint.has_room() else OUT_OF_RESOURCE

    @cfunc
    def _put_in_parts(self, identity: U64, offset: U64, descriptor: Descriptor, chunk: int) -> int:
        endpoint: TcpEndpoint = self._endpoint
        local = descriptor.segment
        number: int = self._next
        self._next += 1
        frames: list[list[memoryview]] = []
        taken: int = endpoint.carry(None, 0)
        begin: int
        for begin in range(0, len(local), chunk):
            part = local[begin : begin + chunk]
            more: int = PART if begin + chunk < len(local) else 0
            place: U64 = offset + begin
            frames.append(_frame(PUT, number, identity, place, len(part), part, more, taken))
            taken = 0
        endpoint.trickle(frames)
        return self._begun(number, descriptor)

    @ccall
    def get(self, identity: U64, offset: U64, descriptor: Descriptor) -> int:
        """Ask for bytes, or queue the question."""
        refused: int = self._refusal()
        return refused if refused else self._ask(GET, identity, offset, descriptor, None)

    @cfunc
    def _ask(
        self,
        kind: int,
        identity: U64,
        offset: U64,
        descriptor: Descriptor,
        payload: memoryview | None,
    ) -> int:
        number: int = self._next
        self._next += 1
        self._send(kind, number, identity, offset, len(descriptor.segment), payload, 0)
        return self._begun(number, descriptor)

    @cfunc
    def _begun(self, number: int, descriptor: Descriptor) -> int:
        if self._endpoint.lost():
            return UNREACHABLE  # it broke within the call
        self._operations[number] = descriptor
        self._endpoint.expect()
        return QUEUED

    @cfunc
    def _send(
        self,
        kind: int,
        number: int,
        identity: U64,
        offset: U64,
        size: int,
        payload: memoryview | None,
        status: int,
    ) -> None:
        endpoint: TcpEndpoint = self._endpoint
        taken: int = endpoint.carry(None, 0)
        endpoint.transmit(_frame(kind, number, identity, offset, size, payload, status, taken))

    # -- being asked, and answered

    @ccall
    def arrived(self, reader: FrameReader) -> None:
        """A frame of one of our kinds is here, or the bytes that one brought."""
        self._reader = reader
        kind: int = reader.kind
        if kind == LANDED:
            self._landed()
            return
        fragment = reader.fragment
        number: int = raw.word(fragment, 0)  # the fields of REMOTE
        identity: U64 = raw.word(fragment, 8)
        offset: U64 = raw.word(fragment, 16)
        size: int = raw.word(fragment, 24)
        status: int = raw.signed_word(fragment, 32)
        if kind == PUT:
            self._asked_to_put(reader, number, identity, offset, status)
        elif kind == GET:
            self._asked_to_get(number, identity, offset, size)
        elif kind == GOT:
            self._answered(reader, number)
        else:
            assert kind == DONE
            self._complete(number, status)

    @cfunc
    def _answered(self, reader: FrameReader, number: int) -> None:
        descriptor: Descriptor | None = self._operations.get(number)
        if descriptor is not None and len(descriptor.segment) != reader.left:
            descriptor = None
        self._number = number
        self._into = descriptor
        self._put = False
        self._status = 0
        self._land(reader, descriptor.segment if descriptor is not None else None)

    @cfunc
    def _asked_to_put(
        self, reader: FrameReader, number: int, identity: U64, offset: int, status: int
    ) -> None:
        there = self._table.find(identity, offset, reader.left, REMOTE_WRITE)
        self._number = number
        self._into = self._table.get(identity) if there is not None else None
        self._put = True
        self._status = status
        self._land(reader, there)

    @cfunc
    def _asked_to_get(self, number: int, identity: U64, offset: int, size: int) -> None:
        there = self._table.find(identity, offset, size, REMOTE_READ)
        if there is None:
            self._send(DONE, number, 0, 0, 0, None, BAD_PARAM)
        else:
            self._send(GOT, number, 0, 0, size, there, 0)

    @cfunc
    def _land(self, reader: FrameReader, target: memoryview | None) -> None:
        self._landing = True
        if reader.land(target):
            self._landed()
        else:
            self._endpoint.landing.add(self)

    @cfunc
    def _landed(self) -> None:
        self._landing = False
        self._endpoint.landing.discard(self)
        status: int = 0 if self._into is not None else BAD_PARAM
        self._into = None
        if not self._put:
            self._complete(self._number, status)
        elif not self._status:  # the last part of it, and somebody waits
            self._send(DONE, self._number, 0, 0, 0, None, status)

    @cfunc
    def _complete(self, number: int, status: int) -> None:
        descriptor: Descriptor | None = self._operations.pop(number, None)
        if descriptor is not None and descriptor.callback is not None:
            endpoint: TcpEndpoint = self._endpoint
            descriptor.callback.completed(endpoint.module, endpoint, descriptor, status)

    # -- ends

    @ccall
    def withdraw(self, registration: Registration) -> None:
        """A registration is given back: what still comes for it is dropped."""
        if self._landing and self._into is registration:
            reader: FrameReader | None = self._reader
            assert reader is not None
            reader.drop()
            self._into = None

    @ccall
    def fail(self) -> None:
        """The connection is gone: complete everything badly, oldest first."""
        self._landing = False
        self._into = None
        self._endpoint.landing.discard(self)
        while self._operations:
            self._complete(next(iter(self._operations)), UNREACHABLE)


@cfunc
def _frame(
    kind: int,
    number: int,
    identity: U64,
    offset: U64,
    size: int,
    payload: memoryview | None,
    status: int,
    taken: int,
) -> list[memoryview]:
    """A frame in pieces: its header, then bytes from where they lie.

    `taken` is how many fragments it acknowledges.
    """
    length: int = REMOTE_SIZE + (len(payload) if payload is not None else 0)
    header: bytes = frame_word(0, kind, taken, length)
    header += REMOTE.pack(number, identity, offset, size, status)
    return [memoryview(header)] if payload is None else [memoryview(header), payload]
