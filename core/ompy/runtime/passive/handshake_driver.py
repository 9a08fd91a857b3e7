"""Does the steps of a handshake over a socket, in an event loop."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic

from ompy.engine.reactor import Loop
from ompy.runtime.connections.blocking_calls import BlockingCalls
from ompy.runtime.connections.credentials import CredentialError
from ompy.runtime.passive.meeting import (
    Apply,
    MeetingError,
    Receive,
    Result,
    Step,
    Steps,
    Transmit,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

PROOF_TIMEOUT: Final = 20.0  # s; arbitrary: two calls of munge on a loaded host


class HandshakeDriver(Generic[Result]):
    """One handshake, from its first step to its end or failure, one of which is told once."""

    def __init__(
        self,
        loop: Loop,
        calls: BlockingCalls,
        connection: socket.socket,
        steps: Steps[Result],
        on_done: Callable[[socket.socket, Result], object],
        on_failed: Callable[[Exception], object],
        patience: float = PROOF_TIMEOUT,
    ) -> None:
        """Begin in the loop's next turn.

        Args:
            loop: watches the connection.
            calls: for steps that wait.
            connection: is the driver's until `on_done` gets it; after a failure it is closed.
            steps: what is to be done.
            on_done: called with the connection and what came of the steps.
            on_failed: called with the error: of the network, of time (TimeoutError), of a proof.
            patience: time they have, s.
        """
        self._loop = loop
        self._calls = calls
        self._connection = connection
        self._steps = steps
        self._on_done = on_done
        self._on_failed = on_failed
        self._step: Step | None = None
        self._buffer = b""  # received for this step, or still to be sent
        self._over = False
        connection.setblocking(False)
        self._timer = loop.call_later(patience, self._fail, TimeoutError())
        loop.call_soon(self._resume, b"")

    def cancel(self) -> None:
        """Close the connection and tell nobody; harmless when it is over."""
        if not self._over:
            self._finish()
            self._connection.close()

    def _finish(self) -> None:
        self._over = True
        self._timer.cancel()
        self._loop.remove_reader(self._connection)
        self._loop.remove_writer(self._connection)

    def _fail(self, problem: Exception) -> None:
        if not self._over:
            self._steps.close()
            self.cancel()
            self._on_failed(problem)

    def _resume(self, found: bytes) -> None:
        """Take the next step, with what came of the last one."""
        self._go_on(lambda: self._steps.send(found) if self._step else next(self._steps))

    def _go_on(self, resume: Callable[[], Step]) -> None:
        if self._over:
            return
        try:
            self._step = resume()
        except StopIteration as end:
            self._finish()
            self._on_done(self._connection, end.value)
            return
        except (OSError, MeetingError, CredentialError) as problem:
            self._fail(problem)
            return
        match self._step:
            case Receive():
                self._buffer = b""
                self._loop.add_reader(self._connection, self._readable)
            case Transmit():
                self._buffer = self._step.data
                self._loop.add_writer(self._connection, self._writable)
            case Apply():
                self._calls.start_call(self._applied, self._step.function, self._step.text)

    def _readable(self) -> None:
        assert isinstance(self._step, Receive), f"{self._step} waits for no bytes"
        try:
            data = self._connection.recv(self._step.size - len(self._buffer))
        except BlockingIOError:
            return
        except OSError as problem:
            self._fail(problem)
            return
        if not data:
            self._fail(MeetingError("the connection ended"))
            return
        self._buffer += data
        if len(self._buffer) == self._step.size:
            self._loop.remove_reader(self._connection)
            self._resume(self._buffer)

    def _writable(self) -> None:
        assert isinstance(self._step, Transmit), f"{self._step} sends no bytes"
        try:
            sent = self._connection.send(self._buffer, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return
        except OSError as problem:
            self._fail(problem)
            return
        self._buffer = self._buffer[sent:]
        if not self._buffer:
            self._loop.remove_writer(self._connection)
            self._resume(b"")

    def _applied(self, future: Future[bytes]) -> None:
        """The call has ended; nobody wants to know when the handshake is over meanwhile."""
        problem = future.exception()
        if problem is None:
            self._resume(future.result())
        else:
            self._go_on(lambda: self._steps.throw(problem))
