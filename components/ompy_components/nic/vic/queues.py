"""The queues: work entries in, completions out, packets of a socket in between.

A send queue is emptied when its doorbell is rung, and again whenever its completion queue is read,
while the socket takes packets. Neighbouring entries of one size for one peer go as a run, which
the kernel takes in one call. What arrives is copied into the buffers that are posted, in their
order; a packet that finds none is dropped and counted.

A device decides about a packet when that arrives. Here it does when its completion queue is read,
about all that has arrived: no buffer was posted meanwhile, so the same packets are kept. Where the
kernel has them until then it takes them while they are wanted, to ask it less often: those that
are left find the buffers that are posted by then, which a device would have dropped.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import DECLARING, Shown, ccall, cclass, cfunc, recycled
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.datagram import (
    OK,
    RECEIVED,
    SENT,
    Completion,
    CompletionQueue,
    QueuePair,
    Status,
    completion,
)
from ompy.net.base import RUN_MAX, RUN_PACKETS, Address, Datagram, LinkError

if TYPE_CHECKING:
    from ompy_components.nic.vic.device import Vic
    from ompy_components.nic.vic.times import Times

if DECLARING:
    from ompy_components.nic.vic.device import VirtualFunction

# arbitrary: a run stays well below what one send has room for, 65507 bytes
RUN_BYTES: Final = RUN_MAX - 4096


@recycled
@cclass
class SendEntry:
    """One entry of a send queue."""

    context: object
    inline: bool
    message: memoryview[int]
    to: Address
    __slots__ = tuple(__annotations__)

    def __init__(self, message: memoryview, to: Address, context: object, inline: bool) -> None:
        self.message = message
        self.to = to
        self.context = context
        self.inline = inline


@cclass
class VicCompletionQueue(CompletionQueue):
    """Completions of some queue pairs, oldest first.

    Attributes:
        depth: completions it has room for.
        pairs: the queue pairs that report here.
    """

    _done: deque[Completion]
    _function: VirtualFunction
    _nic: Vic
    depth: int
    pairs: list[VicQueuePair]
    __slots__ = tuple(__annotations__)

    def __init__(self, function: VirtualFunction, depth: int) -> None:
        self.depth = depth
        self.pairs = []
        self._function = function
        self._nic = function.nic
        self._done = deque()

    @ccall
    def report_completion(self, completion: Completion) -> None:
        """Report. There is room for all that the queue pairs can have posted."""
        self._done.append(completion)

    @ccall
    def read(self, most: int) -> list[Completion]:
        """Let the queue pairs work, then hand out what is done."""
        if self._nic.gone:
            raise NicError(self._nic.gone)
        held: int = len(self._done)
        if held < most:
            self._progress(most - held)
        if not self._done:
            return []
        return [self._done.popleft() for _ in range(min(most, len(self._done)))]

    @ccall
    def _progress(self, most: int) -> None:
        ready: list[VicQueuePair] = self._function.ready_pairs(self)
        pair: VicQueuePair
        for pair in self.pairs:
            if pair in ready or pair.busy():
                pair.transmit()
                pair.receive(most)

    @ccall
    def ready(self) -> bool:
        """Whether there are completions, or packets that will become some."""
        if self._done:
            return True
        pair: VicQueuePair
        for pair in self.pairs:
            if pair.busy():
                return True
        return bool(self._function.readiness.poll())

    def close(self) -> None:
        """Forget the completions."""
        self._done.clear()
        if self in self._function.queues:
            self._function.queues.remove(self)


@cclass
class VicQueuePair(QueuePair):
    """A socket with two queues of work."""

    _blocked: bool
    _buffers: Shown[deque[tuple[memoryview[int], object]]]
    _function: Shown[VirtualFunction]
    _nic: Vic
    _open: bool
    _overrun: int
    _queue: Shown[VicCompletionQueue]
    _ready: int
    _rung: Shown[int]
    _sends: Shown[deque[SendEntry]]
    _socket: Shown[Datagram]
    _times: Times
    _timed: bool
    _virtual: bool
    dropped: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        function: VirtualFunction,
        queue: VicCompletionQueue,
        socket: Datagram,
        send_depth: int,
        receive_depth: int,
        max_message: int,
    ) -> None:
        self.address = socket.address
        self.send_depth = send_depth
        self.receive_depth = receive_depth
        self.max_message = max_message
        self.inline_max = min(function.nic.inline_max, max_message)
        self._function = function
        self._nic = function.nic
        self._times = function.nic.times
        self._timed = self._times.runs
        self._virtual = function.nic.network.virtual
        self._queue = queue
        self._socket = socket
        self._sends = deque()
        self._buffers = deque()
        self.dropped = 0
        self._overrun = 0  # of those, what its port had no room for
        self._rung = 0  # entries, the first ones, that the device has been told of
        self._ready = 0  # of those, what it has fetched; all, where no time is modelled
        self._blocked = False
        self._open = True
        function.readiness.add(socket, self)

    @ccall
    def busy(self) -> bool:
        """Whether there is work to go on with that the socket will not tell of."""
        if self._blocked:
            return False
        return self._ready != 0 if self._timed else len(self._sends) != 0

    def post_send(
        self,
        message: memoryview,
        to: Address,
        context: object,
        *,
        inline: bool = False,
        more: bool = False,
    ) -> None:
        """Put an entry into the send queue, and ring unless there is more."""
        self._post(message, to, context, inline, more)

    @cfunc
    def _post(
        self, message: memoryview, to: Address, context: object, inline: bool, more: bool
    ) -> None:
        self._usable()
        size: int = raw.size(message)
        if size > self.max_message:
            raise NicError(f"{size} bytes, where a message has {self.max_message} at most")
        if len(self._sends) >= self.send_depth:
            raise NicError(f"the send queue is full: {self.send_depth} entries")
        if inline:
            if size > self.inline_max:
                raise NicError(f"{size} bytes inline, where {self.inline_max} have room")
            message = memoryview(bytes(message))
        else:
            self._function.check_registered(message)
        entry: SendEntry = SendEntry.__new__(SendEntry)
        entry.message = message
        entry.to = to
        entry.context = context
        entry.inline = inline
        self._sends.append(entry)
        if not more:
            self.ring()

    @ccall
    def post_receive(self, buffer: memoryview, context: object) -> None:
        """Put a buffer into the receive queue."""
        self._usable()
        if len(self._buffers) >= self.receive_depth:
            raise NicError(f"the receive queue is full: {self.receive_depth} entries")
        self._function.check_registered(buffer)
        self._buffers.append((buffer, context))

    @ccall
    def ring(self) -> None:
        """Hand the socket what is in the send queue, once the device has fetched it."""
        self._usable()
        if not self._timed:
            self.transmit()
            return
        told = [(len(one.message), one.inline) for one in islice(self._sends, self._rung, None)]
        if told:
            self._rung += len(told)
            self._times.rung(told, partial(_fetched, self, len(told)))

    def fetched(self, count: int) -> None:
        """The device has so many more entries."""
        if self._open:
            self._ready += count
            self.transmit()

    @ccall
    def transmit(self) -> None:
        """Send entries while the socket takes them, in runs."""
        if not self._timed:
            self._ready = self._rung = len(self._sends)
        blocked: bool = False
        while self._ready and not blocked:
            first: SendEntry = self._sends[0]
            run: list[memoryview[int]] = self._next_run()
            try:
                taken: int = self._socket.send_run(run, first.to)
            except LinkError as problem:
                self._nic.failed(problem)
                self._finish(len(run), Status.LINK_DOWN)
                continue
            if taken:
                self._nic.sent()
                self._finish(taken, OK)
            blocked = taken < len(run)
        if blocked != self._blocked:
            self._blocked = blocked
            self._function.readiness.want_write(self._socket, wanted=blocked)

    @cfunc
    def _next_run(self) -> list[memoryview]:
        """The first packets that go to one peer and have one size, but the last: at most that."""
        first: SendEntry = self._sends[0]
        if self._ready == 1:
            return [first.message]
        size: int = raw.size(first.message)
        most: int = min(RUN_PACKETS, max(1, RUN_BYTES // max(1, size)), self._ready)
        run: list[memoryview[int]] = [first.message]
        entry: SendEntry
        for entry in islice(self._sends, 1, most):
            length: int = raw.size(entry.message)
            if length > size or (entry.to is not first.to and entry.to != first.to):
                break
            run.append(entry.message)
            if length < size:
                break
        return run

    @ccall
    def _finish(self, count: int, status: Status) -> None:
        for _ in range(count):
            entry: SendEntry = self._sends.popleft()
            size: int = raw.size(entry.message)
            self._queue.report_completion(completion(SENT, status, entry.context, size, None))
        self._rung = max(0, self._rung - count)
        self._ready = max(0, self._ready - count)

    @ccall
    def receive(self, most: int) -> None:
        """Take in about `most` packets that have arrived, or all in the virtual world.

        Once no buffer is left all go: what has arrived is lost.
        """
        every: bool = self._virtual
        left: int = most + self.receive_depth  # a flood does not hold the rank for ever
        while left > 0 and (most > 0 or every or not self._buffers):
            count: int = self._take_run()
            if not count:
                return
            most -= count
            left -= count

    @ccall
    def _take_run(self) -> int:
        """Take from the socket what has arrived, a run at a time; returns how many packets."""
        room = self._function.room
        try:
            found = self._socket.receive_run_into(room)
        except LinkError as problem:
            self._nic.failed(problem)
            return 0
        if found is None:
            return 0
        overrun = self._socket.overrun()
        self.dropped += overrun - self._overrun
        self._overrun = overrun
        total: int = found[0]
        size: int = found[1]
        sender = found[2]
        at: int = 0
        count: int = 0
        while not count or at < total:
            self._deliver(room[at : min(at + size, total)], sender)
            at += size
            count += 1
        return count

    @ccall
    def _deliver(self, packet: memoryview, sender: Address) -> None:
        if not self._buffers:
            self.dropped += 1
            return
        buffer, context = self._buffers.popleft()
        length: int = raw.size(packet)
        size: int = min(length, raw.size(buffer))
        raw.copy(buffer, 0, packet, 0, size)
        status = OK if size == length else Status.TRUNCATED
        self._queue.report_completion(completion(RECEIVED, status, context, size, sender))

    def close(self) -> None:
        """Flush both queues and close the socket."""
        if not self._open:
            return
        if self._timed:  # what was rung goes before the queue does
            self._ready = self._rung
            self.transmit()
        self._open = False
        self._finish(len(self._sends), Status.FLUSHED)
        for _, context in self._buffers:
            flushed = completion(RECEIVED, Status.FLUSHED, context, 0, None)
            self._queue.report_completion(flushed)
        self._buffers.clear()
        self._function.readiness.remove(self._socket)
        self._socket.close()
        self._function.pairs.remove(self)
        self._queue.pairs.remove(self)

    @ccall
    def _usable(self) -> None:
        if not self._open:
            raise NicError("the queue pair is closed")
        if self._nic.gone:
            raise NicError(self._nic.gone)


def _fetched(pair: VicQueuePair, count: int) -> None:
    """A bound method of a compiled object would not do for `partial`."""
    pair.fetched(count)
