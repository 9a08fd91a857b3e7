"""The way to one peer's domain: its connection, what was asked over it and is not done.

    CLOSED --first operation--> CONNECTING --handshake--> CONNECTED
       ^----------- it failed or broke ------'----------------'

A link that broke is made again by the next operation.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from ompy.frameworks.btl_base.sealing import seal_level
from ompy.frameworks.nic.fabric import Completion
from ompy.net.base import WOULD_BLOCK, Address, DeviceGone, LinkError, Stream
from ompy.net.seals.handshake import NONCE_SIZE, HandshakeError, Initiator, Outcome
from ompy.net.seals.proving import hear, sealed, send_proof

from ompy_components.nic.ofi_emulated.errors import refusal, words
from ompy_components.nic.ofi_emulated.headers import (
    ANSWER,
    BYE,
    LEAVES,
    REQUEST,
    WANTS_ANSWER,
    BadFrame,
    Request,
    parse_answer,
)
from ompy_components.nic.ofi_emulated.links.accepting import MAGIC, nonce_of
from ompy_components.nic.ofi_emulated.links.intake import Intake
from ompy_components.nic.ofi_emulated.links.outgoing import Outgoing, OutgoingQueue

if TYPE_CHECKING:
    from ompy.engine.timers import Timer

    from ompy_components.nic.ofi_emulated.links.doubts import Doubts
    from ompy_components.nic.ofi_emulated.links.epochs import Epochs
    from ompy_components.nic.ofi_emulated.resources import Resources

READS: Final = 16  # arbitrary: of one stream in one round, so that no peer starves the others


class State(Enum):
    """Of a link."""

    CLOSED = "closed"
    CONNECTING = "connecting"
    CONNECTED = "connected"


class Completing(Protocol):
    """An endpoint, as far as the end of what was posted to it goes."""

    def completed(self, completion: Completion) -> None:
        """A transmit is done."""


class Operation:
    """Posted work that is not done.

    Attributes:
        endpoint: it was posted to.
        context: the caller's.
        memory: what it uses, kept until it is done.
        result: where bytes of the answer go, or None.
        size: bytes that were asked for.
        number: of it on its link.
    """

    __slots__ = ("context", "endpoint", "memory", "number", "result", "size")

    def __init__(
        self,
        endpoint: Completing,
        context: object,
        memory: Sequence[object],
        result: memoryview | None = None,
    ) -> None:
        self.endpoint = endpoint
        self.context = context
        self.memory = memory
        self.result = result
        self.number = 0

    def done(self, number: int = 0, detail: str = "") -> None:
        """Complete it: `number` is that of an error, or 0."""
        self.endpoint.completed(Completion(self.context, 0, number, detail))


class Link:
    """The way to the domain that listens at an address.

    Attributes:
        rank: whose domain it is.
        listener: where that listens.
        state: of the connection.
        epoch: of the path, when the connection was made.
        heard: when something came from the peer last, or the first operation began to wait.
    """

    def __init__(
        self,
        resources: Resources,
        epochs: Epochs,
        doubts: Doubts,
        rank: int,
        listener: Address,
    ) -> None:
        self.rank = rank
        self.listener = listener
        self.state = State.CLOSED
        self.epoch = 0
        self.heard = 0
        self._left = False
        self._resources = resources
        self._engine = resources.context.engine
        self._readiness = resources.readiness
        self._stations = resources.stations
        self._epochs = epochs
        self._doubts = doubts
        self._stream: Stream | None = None
        self._initiator: Initiator | None = None
        self._timer: Timer | None = None
        self._intake = Intake(ANSWER.size)
        self._queue = OutgoingQueue()
        self._operations: dict[int, Operation] = {}
        self._answered: tuple[Operation | None, int, int] = (None, 0, 0)
        self._next = 1
        self._problem: tuple[int, str] | None = None

    @property
    def waits(self) -> bool:
        """Whether anything is under way, or a connection is being made."""
        return bool(self._operations) or bool(self._queue) or self.state is State.CONNECTING

    @property
    def under_way(self) -> Sequence[Operation]:
        """What is not done, oldest first."""
        return list(self._operations.values())

    @property
    def speaking(self) -> bool:
        """Whether the stream has not taken all that was posted."""
        return bool(self._queue)

    def open(self) -> bool:
        """Whether something can be posted; makes the connection if there is none.

        Raises:
            FabricError: the last attempt failed, or the connection broke; told once.
        """
        if self.state is State.CLOSED and self._problem is None:
            self._connect()
        if self._problem is not None:
            (number, why), self._problem = self._problem, None
            raise refusal(number, why)
        return self.state is State.CONNECTED

    # -- asking

    def post(
        self, request: Request, payload: Sequence[memoryview], operation: Operation | None
    ) -> None:
        """Send a request, or what the stream takes of it.

        Args:
            request: its number is set here.
            payload: the bytes that follow.
            operation: completed when it is answered if the request wants that, else when it is
                sent; None: nobody wants to know.
        """
        if not self.waits:
            self.heard = self._engine.now()
        number, self._next = self._next, self._next + 1
        header = memoryview(REQUEST.pack(*request._replace(number=number)))
        taken = None
        if operation is not None:
            operation.number = number
            self._operations[number] = operation
            if not request.flags & WANTS_ANSWER:
                taken = partial(self._complete, number)
        frame = Outgoing([header, *payload], operation, taken)
        stations = self._stations
        if stations.runs:
            size = sum(map(len, payload))
            inline = size <= self._resources.info.inject_size
            begins = stations.posted(size, inline=inline)
            frame.leaves = stations.sent(begins, len(header) + size)
            stations.at(frame.leaves, self._leave)
        self._queue.add(frame)
        self._doubts.begin()
        self._flush()

    def _leave(self) -> None:
        """The clock says that a frame leaves the device."""
        if self.state is State.CONNECTED:
            self._flush()

    def _complete(self, number: int, error: int = 0, detail: str = "") -> None:
        operation = self._operations.pop(number, None)
        if operation is not None:
            operation.done(error, detail)

    def _flush(self) -> None:
        stream = self._stream
        assert stream is not None
        now = self._engine.now()
        try:
            self._queue.flush(stream, now)
        except LinkError as problem:
            self._failed(problem)
            return
        self._readiness.want_write(stream, wanted=self._queue.due(now))

    # -- being answered

    def ready(self, readable: bool, writable: bool) -> None:
        """The stream can be used."""
        if self.state is State.CONNECTING:
            self._shake()
        if writable and self.state is State.CONNECTED:
            self._flush()
        if readable and self.state is State.CONNECTED:
            self._receive()

    def _receive(self) -> None:
        intake = self._intake
        for _ in range(READS):
            assert self._stream is not None
            try:
                count = self._stream.receive_into(intake.room())
                if count == WOULD_BLOCK:
                    return
                if count == 0 and self._left and not self._operations:
                    self.close()
                    return
                if count == 0:
                    self.broken(errno.ECONNRESET, "the peer has closed the connection")
                    return
                self.heard = self._engine.now()
                if intake.received(count):
                    self._arrived()
            except LinkError as problem:
                self._failed(problem)
            except BadFrame as problem:
                self.broken(errno.EIO, str(problem))
            if self.state is not State.CONNECTED:
                return

    def _arrived(self) -> None:
        """A header, or all that follows one, is here."""
        intake = self._intake
        if not intake.in_header:
            self._finish()
            return
        answer = parse_answer(intake.header)
        if answer.status == LEAVES:
            self._left = True
            intake.next_header()
            return
        operation = self._operations.get(answer.number)
        self._answered = (operation, answer.number, answer.status)
        result = operation.result if operation is not None else None
        if answer.size and (result is None or len(result) != answer.size):
            if operation is not None:
                raise BadFrame(f"{answer.size} bytes for an operation that asked for others")
            result = None
        intake.land(answer.size, result)
        if not answer.size:
            self._finish()

    def _finish(self) -> None:
        operation, number, status = self._answered
        result = operation.result if operation is not None else None
        self._stations.arrived(ANSWER.size + (len(result) if result is not None else 0))
        self._intake.next_header()
        if operation is not None and number in self._operations:
            self._complete(number, status, words(status) if status else "")
        elif operation is None and status:
            # what is refused had completed: only the end of the connection can tell
            self.broken(errno.ECONNABORTED, f"the peer has refused a request: {words(status)}")

    # -- connecting

    def _connect(self) -> None:
        resources, context = self._resources, self._resources.context
        departed = context.procs[self.rank].departed
        if departed:
            self._problem = (errno.EHOSTUNREACH, f"rank {self.rank} has ended: {departed}")
            return
        self.state = State.CONNECTING
        try:
            address, wire = resources.interface.address, resources.wire
            self._stream = context.network.connect(self.listener, address, link=wire)
        except LinkError as problem:
            self._failed(problem)
            return
        self.heard = self._engine.now()
        self._stream.carries("nic.ofi_emulated")
        self._stream.belongs_to(self.rank)
        self.epoch = self._epochs.number_of(self.rank)
        self._left = False
        nonce = nonce_of(self.epoch, context.network.entropy(NONCE_SIZE))
        key, job = context.job_key, context.job_id
        seal = seal_level(context, context.procs[self.rank])
        self._initiator = Initiator(key, job, context.rank, self.rank, nonce, MAGIC, seal)
        self._readiness.add(self._stream, self)
        self._readiness.want_write(self._stream, wanted=True)
        late = partial(self.broken, errno.ETIMEDOUT, "no answer")
        self._timer = self._engine.call_later(resources.handshake_timeout, late)
        self._doubts.begin()

    def _shake(self) -> None:
        """Go on with the handshake."""
        try:
            self._shake_on()
        except HandshakeError as problem:
            self.broken(errno.EACCES, str(problem))
        except LinkError as problem:
            self._failed(problem)

    def _shake_on(self) -> None:
        stream, initiator = self._stream, self._initiator
        assert stream is not None
        assert initiator is not None
        self._say(initiator, stream)
        while initiator.outcome is Outcome.UNDER_WAY:
            count = hear(initiator, stream)
            if count == WOULD_BLOCK:
                break
            if count == 0:
                self.broken(errno.EHOSTUNREACH, "the peer closed the connection at once")
                return
            self.heard = self._engine.now()
            self._say(initiator, stream)
        if initiator.outcome is Outcome.TAKEN:
            self._no_timer()
            key = self._resources.context.job_key
            stream = sealed(initiator, key, stream, self._readiness)
            self._stream = stream
            self._initiator = None
            self._intake = Intake(ANSWER.size)
            self.state = State.CONNECTED
            self._note("CONNECTED")
        self._readiness.want_write(stream, wanted=bool(initiator.outgoing))

    def _say(self, initiator: Initiator, stream: Stream) -> None:
        if initiator.outgoing:
            send_proof(initiator, stream)
            if not initiator.outgoing:
                # the peer's kernel has it, and a rank that computes answers when it polls
                self._no_timer()

    # -- ends

    def _failed(self, problem: LinkError) -> None:
        if isinstance(problem, DeviceGone):
            self._resources.lost(str(problem))
            return
        connected = self.state is State.CONNECTED
        self.broken(errno.ECONNRESET if connected else errno.EHOSTUNREACH, str(problem))

    def broken(self, number: int, why: str) -> None:
        """The connection is gone: what is under way ends with this error, in order."""
        where = f"{self._resources.interface.address} - {self.listener.host}"
        detail = f"{words(number)}: {where}: {why}"
        lost = self.under_way
        connected = self.state is State.CONNECTED
        untold = not connected or self._queue or number == errno.ECONNABORTED
        if untold and not lost:
            self._problem = (number, f"{where}: {why}")
        self.close()
        self._note("BROKEN", errno=number, why=why, lost=len(lost))
        for operation in lost:
            operation.done(number, detail)
        if connected:
            self._epochs.end_epoch(self.rank, self.epoch)
            if not lost:
                self._resources.notice(number, detail)

    def breakable(self, epoch: int) -> bool:
        """Whether there is a connection of that epoch of the path, or an earlier one."""
        return self.state is State.CONNECTED and self.epoch <= epoch

    def say_bye(self) -> None:
        """Tell the peer, behind all else, that the connection will be closed."""
        if self.state is State.CONNECTED:
            self.post(Request(BYE, 0, 0, 0, 0, 0, 0, 0, 0, 0), (), None)
        if self.state is State.CONNECTED:  # still
            self._queue.hurry()
            self._flush()

    def close(self) -> None:
        """Close the connection; what is under way is forgotten."""
        self._no_timer()
        self._doubts.settle(self)
        if self._stream is not None:
            self._readiness.remove(self._stream)
            self._stream.close()
            self._stream = None
        self._initiator = None
        self._queue.clear()
        self._operations.clear()
        self.state = State.CLOSED

    def forget(self, endpoint: Completing) -> None:
        """An endpoint is closed: nothing of it completes, and its memory is its own again."""
        for number, operation in list(self._operations.items()):
            if operation.endpoint is endpoint:
                self._queue.withdraw(operation)
                del self._operations[number]
                if self._answered[0] is operation and not self._intake.in_header:
                    self._intake.drop()

    def _no_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _note(self, event: str, **fields: object) -> None:
        trace = self._resources.context.trace
        if trace.active:
            trace.record("nic.ofi_emulated", event, peer=self.rank, **fields)
