"""Active messages of one rank: who handles them, and which wait to be sent.

What cannot be sent now waits in line: a line for each peer, so that its messages keep their order.
Lines are short, because what is in them has a credit, its own or that of the request it answers.

Source: seed gasnet (Active Message design, smsg_cq_handle).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from ompy.data.errors import ERR_INTERN, ERR_OTHER, MPIError
from ompy.data.request import Waitable
from ompy.frameworks.conduit import HANDLERS, Handler, Token

from ompy_components.conduit.gni import headers
from ompy_components.conduit.gni.credits import CreditError, Credits
from ompy_components.conduit.gni.headers import Command, HeaderError, Message
from ompy_components.conduit.gni.resources import Resources
from ompy_components.conduit.gni.transport import Transport

REQUESTS: Final = frozenset((Command.SHORT_REQUEST, Command.MEDIUM_REQUEST, Command.LONG_REQUEST))
LONGS: Final = frozenset((Command.LONG_REQUEST, Command.LONG_REPLY))
NO_BYTES: Final = memoryview(b"")

Sending = Callable[[], bool]


class Messages:
    """Sends and handles the active messages of one rank.

    Attributes:
        handlers: by index.
        credits: by peer.
        handlers_stopped: they are not called any more: the job ends.
        closed: nothing is sent any more.
        told: called with round and code when a peer ends the job.
    """

    def __init__(
        self,
        resources: Resources,
        depths: Sequence[int],
        transports: Sequence[Transport | None],
        told: Callable[[int, int], object],
    ) -> None:
        """Have peers reached by `transports`, by rank, with so many credits each."""
        self._resources = resources
        self._trace, self._tracing = resources.tracing.trace, resources.tracing
        self._transports = transports
        self._lines: dict[int, deque[Sending]] = {}
        self._waiting: dict[int, list[Waitable]] = {}
        self.handlers: list[Handler | None] = [None] * HANDLERS
        self.credits = Credits(depths)
        self.handlers_stopped = self.closed = False
        self.told = told
        for transport in transports:
            if transport is not None:
                transport.deliver = self.deliver
                transport.credited = self._credited

    # -- sending

    def transport(self, node: int) -> Transport:
        """What reaches a peer."""
        found = self._transports[node]
        assert found is not None, "nothing is for the own rank"
        return found

    def send(self, node: int, message: bytearray, *, later: bool = False) -> None:
        """Send a message, now or as soon as it can be; `later`: it is a LONG_ASYNC."""
        transport = self.transport(node)
        if not self._trace.active:
            self._send(node, partial(transport.send, node, message))
            return
        with self._resources.lock:  # its number and its place in line are the same
            left = self.credits.left(node)
            self._tracing.sent(node, message, transport.name, left, later=later)
            self._send(node, partial(transport.send, node, message))

    def tell_exit(self, node: int, shift: int, code: int) -> None:
        """Send what a round of the exit tells."""
        self._send(node, partial(self.transport(node).tell_exit, node, shift, code))

    def _send(self, node: int, sending: Sending) -> None:
        with self._resources.lock:
            line = self._lines.get(node)
            if self.closed or (line is None and sending()):
                return
            if line is None:
                line = self._lines[node] = deque()
                self._resources.counters["messages_in_line"] += 1
            line.append(sending)

    def flush(self) -> int:
        """Send what waits in line. Returns how much was sent."""
        if not self._lines:
            return 0
        count = 0
        with self._resources.lock:
            for node, line in list(self._lines.items()):
                if self._resources.context.procs[node].departed:
                    line.clear()
                while line and self._sent(line[0]):
                    line.popleft()
                    count += 1
                if not line:
                    del self._lines[node]
        return count

    def _sent(self, sending: Sending) -> bool:
        """Send the first of a line, if it can be; as the job ends, who has left wants nothing."""
        try:
            return sending()
        except MPIError:
            if not self.handlers_stopped:
                raise
            return True

    def waiting(self) -> Iterator[str]:
        """Requests that are not answered, and messages that are not sent, in words."""
        for node in range(len(self._transports)):
            taken, free = self.credits.taken(node), self.credits.left(node)
            if taken:
                left = "" if free else "; there is none for another request"
                yield f"rank {node} to give {taken} credits of requests back{left}"
        for node, line in [*self._lines.items()]:
            yield f"room for {len(line)} messages to rank {node}"

    @property
    def lines(self) -> int:
        """Peers that something waits for."""
        return len(self._lines)

    # -- credits

    def news_of_credit(self, node: int) -> Waitable:
        """Completes when a peer has given a credit back."""
        waitable = Waitable()
        with self._resources.lock:
            if self.credits.left(node):
                waitable.finish()
            else:
                self._waiting.setdefault(node, []).append(waitable)
        return waitable

    def _credited(self, node: int, count: int = 1, *, by: str = "back") -> None:
        with self._resources.lock:
            try:
                self.credits.give(node, count)
            except CreditError as problem:
                raise MPIError(ERR_INTERN, str(problem)) from None
            for waitable in self._waiting.pop(node, ()):
                waitable.finish()
        if self._trace.active:
            self._tracing.credit(by, node, count, self.credits.left(node))

    # -- what has arrived

    def deliver(self, node: int, message: memoryview) -> None:
        """A message of a peer: have it handled."""
        try:
            read = headers.parse_message(message)
        except HeaderError as problem:
            raise MPIError(ERR_INTERN, f"rank {node} sent {problem}") from None
        if read.command == Command.SHUTDOWN:
            self.told(read.handler, read.misc)
            return
        if read.command == Command.CREDIT:
            self._credited(node)
            return
        self._resources.counters["messages_received"] += 1
        is_request = read.command in REQUESTS
        token = Token(node, is_request=is_request)
        number = 0
        if self._trace.active:
            number = self._tracing.handling(node, is_request=is_request)
        try:
            if not self.handlers_stopped:
                self._handle(token, read)
        finally:
            if number:
                self._tracing.handled(node, number, is_request=is_request)
            if not is_request:
                self._credited(node, by="replied")
            elif not token.replied:
                self._return_credit(node)

    def _return_credit(self, node: int) -> None:
        """A handler has not replied: the credit of its request goes back by itself."""
        transport = self.transport(node)
        if self._trace.active:
            count = transport.returning(node)
            self._tracing.credit("sent" if count else "banked", node, count or 1)
        try:
            self._send(node, partial(transport.return_credit, node))
        except MPIError:
            if not self.handlers_stopped:
                raise
            # the job ends: who has left already wants no credit

    def _handle(self, token: Token, message: Message) -> None:
        payload = message.payload
        if message.command in LONGS:
            payload = self._landed(token.source, message)
        handler = self.handlers[message.handler]
        if handler is None:
            raise MPIError(
                ERR_OTHER,
                f"rank {token.source} sent a message to handler {message.handler}, which rank "
                f"{self._resources.context.rank} has not registered",
            )
        handler(token, payload, message.arguments)

    def _landed(self, node: int, message: Message) -> memoryview:
        """Where a LONG's bytes are; puts them there if the message has brought them."""
        segment, end = self._resources.segment, message.offset + message.length
        if end > len(segment):
            text = f"rank {node} sent a message for bytes up to {end} of a segment of "
            raise MPIError(ERR_INTERN, f"{text}{len(segment)} bytes")
        place = segment[message.offset : end]
        if message.misc:
            place[:] = message.payload
        return place
