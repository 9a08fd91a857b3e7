"""Who connects to whom: HELLOs, and the machine that reads them. No I/O, no clock.

Each attempt of an end to connect has a number. A HELLO says the sender's number, the one of the
receiver it has heard of, and all its queue pairs. Whoever wants to send, or is told of an attempt
it does not know, makes queue pairs and announces them; an end that knows the other's connects its
own to them. So it does not matter who began, or that both did. A HELLO goes again and again until
the other end has said that it knows the number in it.

    version u8 | flags u8 | queue pairs u16 | attempt u32 | heard u32 | port u16 | length u8 | host
    for each queue pair: lid u16, number u32, first packet u32

A larger number than the one an end is connected to means that the other end has given that
connection up, so this one is broken too.

Source: reference openmpi.md 5.6 (udcm: connections are made by datagrams).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from struct import Struct, error
from typing import Final, NamedTuple

from ompy.frameworks.nic.verbs import Destination

from ompy_components.btl.openib.states import Event, State, after

VERSION: Final = 1  # arbitrary: counts changes of what goes over the wire
SETTLED: Final = 1  # flag: the sender is connected and waits for nothing
_HELLO: Final = Struct("<BBHIIHB")
_PAIR: Final = Struct("<HII")
ATTEMPT_MAX: Final = (1 << 32) - 1


class BadHello(Exception):
    """Bytes that are no HELLO of this version."""


class Hello(NamedTuple):
    """What one end says of a connection.

    Attributes:
        attempt: the sender's number for it, from 1.
        heard: the receiver's number, as far as the sender knows it; else 0.
        settled: the sender waits for no answer.
        pairs: the sender's queue pairs.
    """

    attempt: int
    heard: int
    settled: bool
    pairs: tuple[Destination, ...]


def pack(hello: Hello) -> bytes:
    """A HELLO as it is sent. All queue pairs are of one device."""
    first = hello.pairs[0]
    host = first.host.encode()
    flags = SETTLED if hello.settled else 0
    head = _HELLO.pack(
        VERSION, flags, len(hello.pairs), hello.attempt, hello.heard, first.port, len(host)
    )
    pairs = (_PAIR.pack(pair.lid, pair.number, pair.first_packet) for pair in hello.pairs)
    return b"".join((head, host, *pairs))


def unpack(data: memoryview) -> Hello:
    """Read a HELLO.

    Raises:
        BadHello: it is none.
    """
    try:
        version, flags, count, attempt, heard, port, length = _HELLO.unpack_from(data)
        if version != VERSION:
            raise BadHello(f"version {version}, not {VERSION}")
        at = _HELLO.size + length
        host = bytes(data[_HELLO.size : at]).decode()
        if len(data) != at + count * _PAIR.size or not count:
            raise BadHello(f"{len(data)} bytes for {count} queue pairs")
        pairs = tuple(
            Destination(lid, number, host, port, first)
            for lid, number, first in _PAIR.iter_unpack(data[at:])
        )
    except (error, UnicodeDecodeError) as problem:
        raise BadHello(str(problem)) from None
    return Hello(attempt, heard, bool(flags & SETTLED), pairs)


class Step(Enum):
    """What is to be done about an event, in this order."""

    MAKE = "make queue pairs"
    CONNECT = "connect them to the peer's"
    SAY = "send a HELLO"
    READY = "the connection is up: send what waits"
    FAIL = "the connection is broken"


class Connection:
    """One end of the connection to one peer.

    Attributes:
        state: of the endpoint.
        attempt: number of ours; 0 before the first.
        heard: the peer's number that ours belongs to; 0 for none.
        pairs: the peer's queue pairs.
        wanted: the peer asked for a new connection while this one is being cleared away.
    """

    __slots__ = ("_latest", "attempt", "heard", "pairs", "state", "wanted")

    def __init__(self) -> None:
        self.state = State.CLOSED
        self.attempt = self.heard = 0
        self._latest = 0  # the highest number heard of the peer, of whatever connection
        self.pairs: tuple[Destination, ...] = ()
        self.wanted = False

    @property
    def unsettled(self) -> bool:
        """A HELLO is to be repeated."""
        return self.state in (State.CONNECTING, State.CONNECT_ACK, State.WAITING_ACK)

    @property
    def up(self) -> bool:
        """Both ends are connected."""
        return self.state is State.CONNECTED

    def say(self, pairs: Sequence[Destination]) -> Hello:
        """What to tell the peer now, with our queue pairs."""
        return Hello(self.attempt, self.heard, self.up, tuple(pairs))

    def want(self) -> list[Step]:
        """Something is to be sent."""
        before, self.state = self.state, after(self.state, Event.WANTED)
        if before is self.state:
            return []
        self._begin()
        return [Step.MAKE, Step.SAY]

    def hello(self, said: Hello) -> list[Step]:
        """The peer says something."""
        bound = said.heard not in (0, self.attempt)  # to an attempt of ours that was given up
        over = not self.heard and not said.heard and said.attempt <= self._latest
        if self.state is State.CLOSED and (bound or over or said.heard):
            # its sender may still wait for what there is no more: show it that we begin anew
            return [] if said.settled else self.want()
        if bound or over or said.attempt < self.heard:
            return []  # of a connection that is over
        if self.state is State.FAILED:
            self.wanted = self.wanted or said.attempt > self._latest
            return []
        if self.heard and said.attempt > self.heard:
            return [Step.FAIL]  # the peer will say it again
        return self._accept(said)

    def _accept(self, said: Hello) -> list[Step]:
        """What is said belongs to the connection that is made now, or is there."""
        before = self.state
        knows = bool(self.attempt) and said.heard == self.attempt
        self.state = after(before, Event.ANSWERED if knows else Event.ANNOUNCED)
        steps: list[Step] = []
        if before is State.CLOSED:
            self._begin()
            steps.append(Step.MAKE)
        if not self.heard:
            self.heard = self._latest = said.attempt
            self.pairs = said.pairs
            steps.append(Step.CONNECT)
        if not said.settled:
            steps.append(Step.SAY)
        if self.up and before is not State.CONNECTED:
            steps.append(Step.READY)
        return steps

    def data(self) -> list[Step]:
        """Something came through a queue pair: the peer is connected to ours."""
        before, self.state = self.state, after(self.state, Event.HEARD)
        return [Step.READY] if self.up and before is not State.CONNECTED else []

    def broken(self) -> None:
        """It has failed."""
        self.state = after(self.state, Event.BROKEN)

    def cleared(self) -> None:
        """Nothing is left of it: the next one may begin."""
        self.state = after(self.state, Event.CLEARED)
        self.heard = 0
        self.pairs = ()
        self.wanted = False

    def _begin(self) -> None:
        self.attempt += 1
        assert self.attempt <= ATTEMPT_MAX, "so often nobody connects"
