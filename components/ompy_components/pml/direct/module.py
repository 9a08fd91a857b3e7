"""Messages of one rank, matched by the world it is in.

A message goes as a whole. A standard send is complete at once, or when it is matched: the world has
one mode or the other. Matching, order and completion are the world's (`runtime/exploration`).
"""

from __future__ import annotations

from typing import Any, Final

from ompy.compiled import ccall, cclass
from ompy.data.constants import ANY_SOURCE, ANY_TAG
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_TRUNCATE
from ompy.data.request import Request, Waitable
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.direct import Arrival, DirectLine, DirectRequest
from ompy.frameworks.needs import RECEIVE, SEND, Need
from ompy.frameworks.pml import MatchedMessage, Pml
from ompy.trace.sink import Trace
from ompy.trace.tag_names import tag_text

MOST: Final = 20  # lines; arbitrary: who waits for more has seen enough by then


@cclass
class Sending(DirectRequest):
    """A send that is complete when it is matched."""

    communicator: Communicator
    sequence: int
    size: int
    __slots__ = tuple(__annotations__)

    def __init__(self, communicator: Communicator, target: int, tag: int, size: int) -> None:
        DirectRequest.__init__(self)
        self.communicator = communicator
        self.source, self.tag, self.size = target, tag, size
        self.sequence = 0

    def __repr__(self) -> str:
        """For reports."""
        where = f"to rank {self.source} with {tag_text(self.tag)} in {self.communicator.name}"
        return f"send of {self.size} bytes {where}"


@cclass
class Receiving(DirectRequest):
    """A receive."""

    communicator: Communicator
    convertor: Convertor
    wanted_source: int
    wanted_tag: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> None:
        DirectRequest.__init__(self)
        self.communicator = communicator
        self.convertor = convertor
        self.wanted_source, self.wanted_tag = source, tag

    def __repr__(self) -> str:
        """For reports."""
        of = "any rank" if self.wanted_source == ANY_SOURCE else f"rank {self.wanted_source}"
        return f"receive from {of} with {tag_text(self.wanted_tag)} in {self.communicator.name}"


class TakenMessage(MatchedMessage):
    """A message that a matched probe has taken."""

    __slots__ = ("communicator", "data")

    def __init__(self, communicator: Communicator, arrival: Arrival) -> None:
        self.communicator = communicator
        self.source, self.tag, self.length, data = arrival
        assert data is not None, "it was taken"
        self.data = data


@cclass
class Direct(Pml):
    """Point-to-point of one rank."""

    _line: Any
    _sent: dict[tuple[int, int], int]
    _trace: Trace
    _under_way: dict[int, DirectRequest]
    __slots__ = tuple(__annotations__)

    def __init__(self, line: DirectLine, trace: Trace) -> None:
        """Match nothing yet.

        Args:
            line: to the world.
            trace: where messages are noted.
        """
        self._line = line
        self._trace = trace
        self._under_way = {}
        self._sent = {}  # messages, by context id and rank of the job
        line.on_complete(self._completed)

    def _completed(self, number: int, arrival: Arrival) -> None:
        request = self._under_way.pop(number, None)
        if isinstance(request, Receiving) and arrival.data is not None:
            _store(request, request.convertor, arrival)
        elif request is not None:
            request.length = request.received = arrival.length
        if request is not None:
            request.finish()

    @ccall
    def add_communicator(self, communicator: Communicator) -> None:
        """The world needs to know nothing of it."""

    @ccall
    def remove_communicator(self, communicator: Communicator) -> None:
        """Nothing more is received in it."""
        self._line.forget(communicator.context_id)

    def pending_receives(self, communicator: Communicator) -> list[Request]:
        """The program's receives in a communicator that are not complete."""
        return [
            one
            for one in self._under_way.values()
            if isinstance(one, Receiving)
            and one.communicator is communicator
            and (one.wanted_tag >= 0 or one.wanted_tag == ANY_TAG)
        ]

    @ccall
    def isend(
        self, communicator: Communicator, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        """Begin to send."""
        data = bytearray(convertor.size)
        convertor.pack_at(memoryview(data), 0, convertor.size)
        to = (communicator.context_id, communicator.procs[target].rank)
        sequence = self._sent[to] = self._sent.get(to, 0) + 1
        request = Sending(communicator, target, tag, convertor.size)
        request.sequence = sequence
        if self._trace.noting:
            context, size = communicator.context_id, convertor.size
            self._trace.note("> send", context, target, tag, sequence, size)
        served = communicator.served
        number = self._line.send(to, communicator.rank, tag, bytes(data), mode, served=served)
        if number:
            request.number = number
            self._under_way[number] = request
        else:
            request.length = request.received = convertor.size
            request.finish()
        return request

    @ccall
    def irecv(
        self, communicator: Communicator, convertor: Convertor, source: int, tag: int
    ) -> Request:
        """Begin to receive."""
        request = Receiving(communicator, convertor, source, tag)
        context, served = communicator.context_id, communicator.served
        request.number = self._line.receive(context, source, tag, served=served)
        self._under_way[request.number] = request
        return request

    @ccall
    def iprobe(self, communicator: Communicator, source: int, tag: int) -> Request | None:
        """Look for a message."""
        return _found(self._look(communicator, source, tag))

    @ccall
    def probe(self, communicator: Communicator, source: int, tag: int) -> Request:
        """Look until there is one."""
        found = _found(self._look(communicator, source, tag, waits=True))
        assert found is not None, "it was waited for"
        return found

    @ccall
    def improbe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage | None:
        """Take a message that is here."""
        found = self._look(communicator, source, tag, takes=True)
        return TakenMessage(communicator, found) if found is not None else None

    @ccall
    def mprobe(self, communicator: Communicator, source: int, tag: int) -> MatchedMessage:
        """Take the first message that comes."""
        found = self._look(communicator, source, tag, takes=True, waits=True)
        assert found is not None, "it was waited for"
        return TakenMessage(communicator, found)

    def _look(
        self,
        communicator: Communicator,
        source: int,
        tag: int,
        *,
        takes: bool = False,
        waits: bool = False,
    ) -> Arrival | None:
        context = communicator.context_id
        found: Arrival | None = self._line.look(context, source, tag, takes=takes, waits=waits)
        return found

    @ccall
    def imrecv(self, message: MatchedMessage, convertor: Convertor) -> Request:
        """Receive a message that was taken: it is here."""
        assert isinstance(message, TakenMessage), "the message came from another PML"
        request = Receiving(message.communicator, convertor, message.source, message.tag)
        _store(
            request,
            convertor,
            Arrival(message.source, message.tag, message.length, message.data),
        )
        request.finish()
        return request

    @ccall
    def cancel(self, request: Request) -> None:
        """Cancel a receive that is not matched."""
        if not isinstance(request, Receiving) or request.complete:
            return
        if self._line.cancel(request.number):
            self._under_way.pop(request.number, None)
            request.cancelled = True
            request.finish()

    def need(self, waitable: Waitable) -> Need | None:
        """What a send or a receive needs."""
        if isinstance(waitable, Receiving) and not waitable.complete:
            source, communicator = waitable.wanted_source, waitable.communicator
            anybody = source == ANY_SOURCE
            ranks = tuple(range(communicator.size)) if anybody else (source,)
            return Need(RECEIVE, communicator, ranks, every=not anybody, tag=waitable.wanted_tag)
        if isinstance(waitable, Sending) and not waitable.complete:
            return Need(
                SEND,
                waitable.communicator,
                (waitable.source,),
                tag=waitable.tag,
                sequence=waitable.sequence,
                size=waitable.size,
            )
        return None

    def waiting(self) -> list[str]:
        """What is not complete."""
        return [repr(request) for request in list(self._under_way.values())[:MOST]]

    @ccall
    def finalize(self) -> None:
        """What was sent is the world's already."""


def _store(request: Request, convertor: Convertor, arrival: Arrival) -> None:
    """Put what came into the receiver's memory, as far as there is room."""
    assert arrival.data is not None, "it comes with its bytes"
    request.source, request.tag, request.length, _ = arrival
    convertor.bind(arrival.length)
    request.received = min(arrival.length, convertor.size)
    if request.received:
        convertor.unpack_from(memoryview(arrival.data), 0, request.received)
    if arrival.length > convertor.size:
        request.error = ERR_TRUNCATE
        request.detail = (
            f"the message has {arrival.length} bytes, the receive has room for {convertor.size}"
        )


def _found(arrival: Arrival | None) -> Request | None:
    """A probe's answer, as a completed request."""
    if arrival is None:
        return None
    made = Request()
    made.source, made.tag, made.length, _ = arrival
    made.received = made.length
    made.finish()
    return made
