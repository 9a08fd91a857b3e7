"""What a rank does as a target: it executes the commands of each origin in their order.

A command waits while one before it is not done that it must not overtake: whatever follows an
accumulate whose data are still on the way, and an epoch's end behind any data on the way.
Nothing is sent from within a completion; who may go on again is in `ready`, for the next round of
polling. All calls come with the rank's lock held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

from ompy.data.convertor import GrowingConvertor, contiguous
from ompy.data.errors import ERR_TRUNCATE, MPIError
from ompy.data.message import Message
from ompy.data.request import Request
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.osc import Place
from ompy.frameworks.osc_base.exposed import NO_OP, Exposed, combine_elements, swap_element
from ompy.frameworks.osc_base.headers import (
    COMMAND_TAG,
    OPERATIONS,
    Command,
    Kind,
    follows,
    pack_answer,
)
from ompy.frameworks.osc_base.layouts import decode_layout
from ompy.frameworks.osc_base.locks import LockQueue
from ompy.frameworks.osc_base.service import TOLD, Service
from ompy.frameworks.pml import STANDARD

CLOSING: Final = frozenset({Kind.FLUSH, Kind.UNLOCK, Kind.COMPLETE})
FETCHING: Final = frozenset({Kind.GET, Kind.FETCH, Kind.SWAP})


class Channel:
    """What one origin has asked for.

    Attributes:
        origin: its rank.
        waiting: commands that have to wait, in their order.
        under_way: data on the way into the window.
        blocked: the data of an accumulate are on the way.
        problem: what went wrong first since the origin was told last.
        completes: ends of its epochs that `wait` has not asked for.
        on_complete: called with each of these, if anybody wants to know.
    """

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.waiting: deque[Command] = deque()
        self.under_way = 0
        self.blocked = False
        self.problem: MPIError | None = None
        self.completes = 0
        self.on_complete: Callable[[], object] | None = None

    def complete_epoch(self) -> None:
        """It has ended an epoch."""
        self.completes += 1
        if self.on_complete is not None:
            self.on_complete()

    def is_busy(self) -> bool:
        """Whether something of it is under way."""
        return bool(self.waiting or self.under_way or self.blocked)

    def may_run(self, command: Command) -> bool:
        """Whether nothing is under way that a command must not overtake."""
        return not self.blocked and not (self.under_way and command.kind in CLOSING)


class Target:
    """The side of a window that others access.

    Attributes:
        locks: of the window.
        ready: what to go on with in the next round of polling.
    """

    def __init__(
        self,
        communicator: Communicator,
        exposed: Exposed,
        locks: LockQueue,
        wake: Callable[[], object],
        service: Service | None = None,
    ) -> None:
        """Make it; `wake` is called when something is `ready`, `service` hears what is served."""
        self.locks = locks
        self.ready: deque[Callable[[], object]] = deque()
        self._communicator = communicator
        self._pml = communicator.pml
        self._exposed = exposed
        self._wake = wake
        self._service = service
        self._channels: dict[int, Channel] = {}
        self._run_kind: dict[Kind, Callable[[Channel, Command], None]] = {
            Kind.PUT: self._put,
            Kind.GET: self._get,
            Kind.ACCUMULATE: self._accumulate,
            Kind.FETCH: self._accumulate,
            Kind.SWAP: self._swap,
            Kind.FLUSH: self._flush,
            Kind.UNLOCK: self._unlock,
            Kind.COMPLETE: self._complete,
            Kind.LOCK: self._lock,
            Kind.LOCK_SHARED: self._lock,
        }

    def channel(self, origin: int) -> Channel:
        """What an origin has asked for."""
        found = self._channels.get(origin)
        if found is None:
            found = self._channels[origin] = Channel(origin)
        return found

    def handle_command(self, origin: int, command: Command) -> None:
        """A command has come."""
        channel = self.channel(origin)
        if channel.waiting or not self._may_run(channel, command):
            channel.waiting.append(command)
        else:
            self._run(channel, command)

    def _may_run(self, channel: Channel, command: Command) -> bool:
        if not channel.may_run(command):
            return False
        service = self._service
        if service is None:
            return True
        return service.may_serve(self._communicator.context_id, channel.origin, command)

    def _advance(self, channel: Channel) -> None:
        while channel.waiting and self._may_run(channel, channel.waiting[0]):
            self._run(channel, channel.waiting.popleft())

    def try_again(self) -> None:
        """What a service has held back may be served in the next round of polling."""
        if any(channel.waiting for channel in self._channels.values()):
            self._later(self._advance_all)

    def _advance_all(self) -> None:
        for channel in list(self._channels.values()):
            self._advance(channel)

    def _run(self, channel: Channel, command: Command) -> None:
        try:
            self._run_kind[command.kind](channel, command)
        except MPIError as problem:
            self._refuse(channel, command, problem)
        else:
            if follows(command):  # it is told when they are there
                if command.kind is Kind.PUT:
                    self._tell(channel, command, begins=True)
                return
        self._tell(channel, command)

    def _tell(self, channel: Channel, command: Command, *, begins: bool = False) -> None:
        """Say that a command was served, if anybody wants to hear it."""
        service = self._service
        if service is None or command.kind not in TOLD:
            return
        service.served(self._communicator.context_id, channel.origin, command, begins=begins)
        if service.orders:
            self.try_again()

    def _refuse(self, channel: Channel, command: Command, problem: MPIError) -> None:
        """Tell the origin, now or when it asks; data that follow go nowhere."""
        if command.kind in FETCHING:
            text = problem.detail.encode()
            refusal = Command(Kind.REFUSED, command.tag, size=problem.code, layout=text)
            self._send(channel, refusal.packed(), COMMAND_TAG)
        elif channel.problem is None:
            channel.problem = problem
        if follows(command):
            self._receive(channel, command, lambda _: None)

    # --- operations

    def _message(self, command: Command) -> Message:
        layout = decode_layout(memoryview(command.layout))
        found = self._exposed.message(Place(command.displacement, command.number, layout))
        if command.size > found.size:
            raise MPIError(
                ERR_TRUNCATE, f"{command.size} bytes are for a place of {found.size} bytes"
            )
        return found

    def _put(self, channel: Channel, command: Command) -> None:
        target = self._message(command)
        if not follows(command):
            target.store(command.data)
            return
        convertor = target.convertor()
        request = self._pml.irecv(self._communicator, convertor, channel.origin, command.tag)
        channel.under_way += 1
        request.notify(partial(self._stored, channel, command, request))

    def _stored(self, channel: Channel, command: Command, request: Request) -> None:
        channel.under_way -= 1
        self._tell(channel, command)
        if request.error and channel.problem is None:
            channel.problem = MPIError(request.error, request.detail)
        if channel.waiting:
            self._later(partial(self._advance, channel))

    def _get(self, channel: Channel, command: Command) -> None:
        convertor = self._message(command._replace(size=0)).convertor()
        with suppress(MPIError):  # a rank that has ended waits for nothing
            self._pml.isend(
                self._communicator, convertor, channel.origin, command.tag + 1, STANDARD
            )

    def _accumulate(self, channel: Channel, command: Command) -> None:
        target = self._message(command)
        if follows(command):
            use = partial(self._combine_late, channel, command, target)
            self._receive(channel, command, use)
        else:
            self._combine(channel, command, target, memoryview(command.data))

    def _combine_late(
        self, channel: Channel, command: Command, target: Message, data: memoryview
    ) -> None:
        """Combine data that have followed."""
        try:
            self._combine(channel, command, target, data)
        finally:
            self._tell(channel, command)

    def _combine(
        self, channel: Channel, command: Command, target: Message, data: memoryview
    ) -> None:
        """Combine, and send what was there before if it was asked for."""
        operation = OPERATIONS[command.operation]
        before = target.packed() if command.kind is Kind.FETCH else None
        if data or operation == NO_OP or not target.size:
            combine_elements(target, data, operation)
        if before is not None:
            self._send(channel, before, command.tag + 1)

    def _swap(self, channel: Channel, command: Command) -> None:
        target = self._message(command._replace(size=command.size // 2))
        data = memoryview(command.data)
        half = len(data) // 2
        before = swap_element(target, data[half:], data[:half])
        self._send(channel, before, command.tag + 1)

    def _receive(
        self, channel: Channel, command: Command, use: Callable[[memoryview], object]
    ) -> None:
        """Have the data that follow; the channel waits until they are used."""
        room = GrowingConvertor()
        request = self._pml.irecv(self._communicator, room, channel.origin, command.tag)
        channel.blocked = True
        request.notify(
            lambda: self._later(partial(self._use, channel, command, request, room, use))
        )

    def _use(
        self,
        channel: Channel,
        command: Command,
        request: Request,
        room: GrowingConvertor,
        use: Callable[[memoryview], object],
    ) -> None:
        channel.blocked = False
        try:
            if request.error:
                raise MPIError(request.error, request.detail)
            view = room.view
            assert view is not None, "a received message has its memory"
            use(view)
        except MPIError as problem:
            self._refuse(channel, command._replace(size=0), problem)
        self._advance(channel)

    def _later(self, step: Callable[[], object]) -> None:
        self.ready.append(step)
        self._wake()

    # --- ends of epochs, locks

    def _flush(self, channel: Channel, command: Command) -> None:
        problem, channel.problem = channel.problem, None
        if not command.tag:
            return
        told = pack_answer() if problem is None else pack_answer(problem.code, problem.detail)
        self._send(channel, told, command.tag + 1)

    def _unlock(self, channel: Channel, command: Command) -> None:
        try:
            self.locks.release(channel.origin)
        except MPIError as problem:
            channel.problem = channel.problem or problem
        self._flush(channel, command)

    def _complete(self, channel: Channel, command: Command) -> None:
        channel.complete_epoch()
        self._flush(channel, command)

    def _lock(self, channel: Channel, command: Command) -> None:
        def tell(code: int, detail: str) -> None:
            self._send(channel, pack_answer(code, detail), command.tag + 1)

        self.locks.request(channel.origin, command.kind is Kind.LOCK, tell)

    def _send(self, channel: Channel, data: bytes | bytearray, tag: int) -> None:
        with suppress(MPIError):  # a rank that has ended waits for nothing
            convertor = contiguous(memoryview(data))
            self._pml.isend(self._communicator, convertor, channel.origin, tag, STANDARD)
