"""Put and get over one connection, by frames of their own.

    PUT (operation, identity, offset, size, bytes)  ->  DONE (operation, status)
    PUT with PART, ..., PUT (the last one)          ->  DONE, once
    GET (operation, identity, offset, size)         ->  GOT (operation, bytes), or DONE

An operation is one frame and its answer; a long put, over a connection that fails over, is
several, so that what is said meanwhile need not wait for its end. The bytes go from the asker's
memory into the frame as they lie, and are received into the registered memory itself; the answer
to a get goes out of the registered memory. The target looks the registration up before it takes a
byte, and once more whenever a registration is given back while bytes for it are still coming: what
has no place is read and dropped, and the connection goes on. A put is complete when DONE is here,
so it is in the peer's memory then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ompy.frameworks.btl import (
    BAD_PARAM,
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
    FrameReader,
    frame_word,
)

if TYPE_CHECKING:
    from ompy_components.btl.tcp.endpoint import TcpEndpoint
    from ompy_components.btl.tcp.pacing import Pacing


class _Landing(NamedTuple):
    """Bytes that are being received into their place."""

    number: int
    into: Registration | Descriptor | None  # of a put, of a get, or nowhere
    put: bool
    part: bool = False  # of a put: more follows, and is answered


class RemoteMemory:
    """Puts and gets over one connection, as asker and as target.

    Attributes:
        pacing: says in which parts long puts go; None: each is one frame.
    """

    __slots__ = ("_endpoint", "_landing", "_next", "_operations", "_reader", "_table", "pacing")

    def __init__(self, endpoint: TcpEndpoint, table: RegistrationTable) -> None:
        self._endpoint = endpoint
        self._table = table
        self._operations: dict[int, Descriptor] = {}
        self._next = 1
        self._landing: _Landing | None = None
        self._reader: FrameReader | None = None
        self.pacing: Pacing | None = None

    @property
    def idle(self) -> bool:
        """No operation waits for its answer."""
        return not self._operations

    # -- asking

    def put(self, identity: int, offset: int, descriptor: Descriptor) -> int:
        """Send a put, or queue it. Returns as the contract says."""
        local = descriptor.segment
        chunk = self.pacing.chunk_for(self._endpoint.proc) if self.pacing is not None else 0
        if 0 < chunk < len(local):
            return self._put_in_parts(identity, offset, descriptor, chunk)
        return self._ask(PUT, identity, offset, descriptor, [local])

    def _put_in_parts(self, identity: int, offset: int, descriptor: Descriptor, chunk: int) -> int:
        endpoint, number, local = self._endpoint, self._next, descriptor.segment
        if endpoint.lost():
            return UNREACHABLE
        if not endpoint.has_room():
            return OUT_OF_RESOURCE
        self._next += 1
        frames = []
        taken = endpoint.carry(None, 0)
        for begin in range(0, len(local), chunk):
            part = local[begin : begin + chunk]
            more = PART if begin + chunk < len(local) else 0
            place = offset + begin
            frames.append(_frame(PUT, number, identity, place, len(part), [part], more, taken))
            taken = 0
        endpoint.trickle(frames)
        return self._begun(number, descriptor)

    def get(self, identity: int, offset: int, descriptor: Descriptor) -> int:
        """Ask for bytes, or queue the question."""
        return self._ask(GET, identity, offset, descriptor, [])

    def _ask(
        self,
        kind: int,
        identity: int,
        offset: int,
        descriptor: Descriptor,
        payload: list[memoryview],
    ) -> int:
        endpoint, number = self._endpoint, self._next
        if endpoint.lost():
            return UNREACHABLE
        if not endpoint.has_room():
            return OUT_OF_RESOURCE
        self._next += 1
        self._send(kind, number, identity, offset, len(descriptor.segment), payload)
        return self._begun(number, descriptor)

    def _begun(self, number: int, descriptor: Descriptor) -> int:
        if self._endpoint.lost():
            return UNREACHABLE  # it broke within the call
        self._operations[number] = descriptor
        self._endpoint.expect()
        return QUEUED

    def _send(
        self,
        kind: int,
        number: int,
        identity: int,
        offset: int,
        size: int,
        payload: list[memoryview],
        status: int = 0,
    ) -> None:
        endpoint = self._endpoint
        taken = endpoint.carry(None, 0)
        endpoint.transmit(_frame(kind, number, identity, offset, size, payload, status, taken))

    # -- being asked, and answered

    def arrived(self, reader: FrameReader) -> None:
        """A frame of one of our kinds is here, or the bytes that one brought."""
        self._reader = reader
        if reader.kind == LANDED:
            self._landed()
            return
        number, identity, offset, size, status = REMOTE.unpack(reader.fragment)
        if reader.kind == PUT:
            self._asked_to_put(reader, number, identity, offset, part=status == PART)
        elif reader.kind == GET:
            self._asked_to_get(number, identity, offset, size)
        elif reader.kind == GOT:
            descriptor = self._operations.get(number)
            if descriptor is not None and len(descriptor.segment) != reader.left:
                descriptor = None
            target = descriptor.segment if descriptor is not None else None
            self._land(reader, _Landing(number, descriptor, False), target)
        else:
            assert reader.kind == DONE
            self._complete(number, status)

    def _asked_to_put(
        self, reader: FrameReader, number: int, identity: int, offset: int, *, part: bool
    ) -> None:
        there = self._table.find(identity, offset, reader.left, REMOTE_WRITE)
        into = self._table.get(identity) if there is not None else None
        self._land(reader, _Landing(number, into, True, part), there)

    def _asked_to_get(self, number: int, identity: int, offset: int, size: int) -> None:
        there = self._table.find(identity, offset, size, REMOTE_READ)
        if there is None:
            self._send(DONE, number, 0, 0, 0, [], BAD_PARAM)
        else:
            self._send(GOT, number, 0, 0, size, [there])

    def _land(self, reader: FrameReader, landing: _Landing, target: memoryview | None) -> None:
        self._landing = landing
        if reader.land(target):
            self._landed()
        else:
            self._endpoint.landing.add(self)

    def _landed(self) -> None:
        landing, self._landing = self._landing, None
        self._endpoint.landing.discard(self)
        assert landing is not None
        status = 0 if landing.into is not None else BAD_PARAM
        if landing.part:
            return
        if landing.put:
            self._send(DONE, landing.number, 0, 0, 0, [], status)
        else:
            self._complete(landing.number, status)

    def _complete(self, number: int, status: int) -> None:
        descriptor = self._operations.pop(number, None)
        if descriptor is not None and descriptor.callback is not None:
            endpoint = self._endpoint
            descriptor.callback.completed(endpoint.module, endpoint, descriptor, status)

    # -- ends

    def withdraw(self, registration: Registration) -> None:
        """A registration is given back: what still comes for it is dropped."""
        landing = self._landing
        if landing is not None and landing.into is registration:
            assert self._reader is not None
            self._reader.drop()
            self._landing = landing._replace(into=None)

    def fail(self) -> None:
        """The connection is gone: complete everything badly, oldest first."""
        self._landing = None
        self._endpoint.landing.discard(self)
        while self._operations:
            self._complete(next(iter(self._operations)), UNREACHABLE)


def _frame(
    kind: int,
    number: int,
    identity: int,
    offset: int,
    size: int,
    payload: list[memoryview],
    status: int,
    taken: int,
) -> list[memoryview]:
    """A frame in pieces: its header, then bytes from where they lie.

    `taken` is how many fragments it acknowledges.
    """
    length = REMOTE_SIZE + sum(len(piece) for piece in payload)
    header = frame_word(0, kind, taken, length)
    header += REMOTE.pack(number, identity, offset, size, status)
    return [memoryview(header), *payload]
