"""Around the PML of a rank that is replayed: each wildcard names what it matched."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from ompy.data.request import Request
from ompy.frameworks.pml import MatchedMessage, Pml
from ompy.replay.counting_pml import CountingPml
from ompy.replay.events import (
    IMPROBE,
    IPROBE,
    MPROBE,
    PROBE,
    RECV,
    Cancelled,
    Event,
    Looked,
    Posted,
    Returned,
)

if TYPE_CHECKING:
    from ompy.data.convertor import Convertor
    from ompy.frameworks.communicator import Communicator
    from ompy.replay.data_log import Message
    from ompy.replay.follower import Follower
    from ompy.replay.replaying.received_bytes import ReceivedBytes


class Withheld(Request):
    """A receive that got no message, or was cancelled: it is not posted, and so takes none."""

    __slots__ = ()


class ReplayedPml(CountingPml):
    """Tells the program what it was told."""

    __slots__ = ("_follower", "_posted_as", "_received", "_taken")

    def __init__(
        self, inner: Pml, follower: Follower, received: ReceivedBytes | None = None
    ) -> None:
        """Go around a PML.

        Args:
            inner: the rank's own.
            follower: says what the program was told.
            received: compares what it receives; None where that was not recorded.
        """
        super().__init__(inner, received is not None)
        self._follower = follower
        self._received = received
        self._taken: dict[int, tuple[MatchedMessage, Message | None]] = {}
        self.straight = False  # some may have been cancelled
        self._posted_as: type = Withheld
        follower.pml = self

    def _ask(self, how: int, communicator: Communicator, source: int, tag: int) -> Event:
        """What a receive or a probe was told."""
        follower = self._follower
        comm = follower.comm(communicator)
        return follower.next_event(
            Looked(follower.prefix(), how, comm, source, tag, source, tag, 0)
        )

    # --- receives

    def irecv_numbered(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int, number: int
    ) -> Request:
        """Posted with the source and the tag of its message, if it got one."""
        follower = self._follower
        if source < 0 or tag < 0:
            comm = follower.comm(communicator)
            follower.next_event(Posted(follower.prefix(), comm, number, source, tag))
            match = follower.recording.matches.get(number)
            if match is None:
                return Withheld()
            source, tag = match.source, match.tag
        elif number in follower.recording.cancelled:
            return Withheld()
        request = self.inner.irecv(communicator, convertor, source, tag)
        self._posted_as = type(request)
        received = self._received
        if received is not None:
            expected = received.expected_message(communicator, source, tag)
            with communicator.context.engine.lock:
                request.notify(partial(received.compare, expected, convertor, request))
        return request

    def recv_looked_at(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Receives the message that it got."""
        if source < 0 or tag < 0:
            if self._follower.fails_here(self._follower.prefix()):
                return self.inner.recv(communicator, convertor, source, tag)  # as it did then
            event = self._ask(RECV, communicator, source, tag)
            assert isinstance(event, Looked), "a receive always finds something"
            source, tag = event.source, event.tag
        received = self._received
        if received is None:
            return self.inner.recv(communicator, convertor, source, tag)
        expected = received.expected_message(communicator, source, tag)
        request = self.inner.recv(communicator, convertor, source, tag)
        received.compare(expected, convertor, request)
        return request

    def wait(self, communicator: Communicator, request: Request) -> Request:
        """Hand on what can be complete."""
        self.expect_complete(request)
        if self.threads is not None:
            self.threads.goes_on()
        return self.inner.wait(communicator, request)

    def expect_complete(self, request: object) -> None:
        """The program waits for an operation; does not return if it never was complete."""
        if isinstance(request, Withheld) and not request.complete:
            self._follower.stands_at("a wait for a message that never came")

    def tell_returned(self) -> None:
        """Go on when this thread did."""
        self._follower.next_event(Returned(self._follower.prefix()))

    # --- looking

    def _turn(self) -> AbstractContextManager[None]:
        """Around what has to be done in the order of the recording, where there are threads.

        A message that is looked for has come then: so to wait for it keeps nobody from anything.
        """
        return nullcontext() if self.threads is None else self.threads

    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """Finds what it found."""
        with self._turn():
            if source < 0 or tag < 0 or self.threads is not None:
                event = self._ask(PROBE, communicator, source, tag)
                assert isinstance(event, Looked), "a probe always finds something"
                source, tag = event.source, event.tag
            return self.inner.probe(communicator, source, tag)

    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """Finds what it found, if it has to wait for it; or nothing."""
        if self.threads is not None and not self.threads.may_poll():
            communicator.context.engine.progress()
            return None
        with self._turn():
            event = self._ask(IPROBE, communicator, source, tag)
            if isinstance(event, Looked):
                return self.inner.probe(communicator, event.source, event.tag)
        communicator.context.engine.progress()
        return None

    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Takes what it took."""
        with self._turn():
            if source < 0 or tag < 0 or self.threads is not None:
                event = self._ask(MPROBE, communicator, source, tag)
                assert isinstance(event, Looked), "a probe always finds something"
                source, tag = event.source, event.tag
            return self._take(communicator, source, tag)

    def _take(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        found = self.inner.mprobe(communicator, source, tag)
        if self._received is not None:
            expected = self._received.expected_message(communicator, source, tag)
            self._taken[id(found)] = (found, expected)
        return found

    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Its bytes are compared."""
        request = self.inner.imrecv(message, convertor)
        if self._received is not None:
            _, expected = self._taken.pop(id(message))
            request.notify(partial(self._received.compare, expected, convertor, request))
        return request

    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Takes what it took, if it has to wait for it; or nothing."""
        if self.threads is not None and not self.threads.may_poll():
            communicator.context.engine.progress()
            return None
        with self._turn():
            event = self._ask(IMPROBE, communicator, source, tag)
            if isinstance(event, Looked):
                return self._take(communicator, event.source, event.tag)
        communicator.context.engine.progress()
        return None

    # --- cancelling

    def number_of(self, request: Request) -> int:
        """Which nonblocking receive of the program a request is, posted or not."""
        known = type(request) in (Withheld, self._posted_as)
        return self.numbers.get(id(request), 0) if known else 0

    def cancel(self, request: Request) -> None:
        """In time, if it was: then it was never posted. Else it goes on, as it did.

        What ompy itself takes back is nobody's turn, as in the recording.
        """
        number = self.number_of(request)
        if not number:
            self.inner.cancel(request)
            return
        with self._turn():
            self._cancel(request, number)

    def _cancel(self, request: Request, number: int) -> None:
        follower = self._follower
        event = follower.next_event(Cancelled(follower.prefix(), number, 0))
        assert isinstance(event, Cancelled), "the questions agree"
        if event.done and not request.complete:
            request.cancelled = True
            request.finish()
