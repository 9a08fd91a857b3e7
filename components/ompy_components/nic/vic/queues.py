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
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.datagram import Completion, CompletionQueue, QueuePair, Status, Work
from ompy.net.base import RUN_MAX, RUN_PACKETS, Address, Datagram, LinkError

if TYPE_CHECKING:
    from ompy_components.nic.vic.device import VirtualFunction

# arbitrary: a run stays well below what one send has room for, 65507 bytes
RUN_BYTES: Final = RUN_MAX - 4096


class SendEntry(NamedTuple):
    """One entry of a send queue."""

    message: memoryview
    to: Address
    context: object
    inline: bool


class VicCompletionQueue(CompletionQueue):
    """Completions of some queue pairs, oldest first.

    Attributes:
        depth: completions it has room for.
        pairs: the queue pairs that report here.
    """

    def __init__(self, function: VirtualFunction, depth: int) -> None:
        self.depth = depth
        self.pairs: list[VicQueuePair] = []
        self._function = function
        self._done: deque[Completion] = deque()

    def report_completion(self, completion: Completion) -> None:
        """Report. There is room for all that the queue pairs can have posted."""
        self._done.append(completion)

    def read(self, most: int) -> list[Completion]:
        """Let the queue pairs work, then hand out what is done."""
        if self._function.nic.gone:
            raise NicError(self._function.nic.gone)
        if len(self._done) < most:
            self._progress(most - len(self._done))
        return [self._done.popleft() for _ in range(min(most, len(self._done)))]

    def _progress(self, most: int) -> None:
        ready = self._function.ready_pairs(self)
        for pair in self.pairs:
            if pair in ready or pair.busy:
                pair.transmit()
                pair.receive(most)

    def ready(self) -> bool:
        """Whether there are completions, or packets that will become some."""
        if self._done or any(pair.busy for pair in self.pairs):
            return True
        return bool(self._function.readiness.poll())

    def close(self) -> None:
        """Forget the completions."""
        self._done.clear()
        if self in self._function.queues:
            self._function.queues.remove(self)


class VicQueuePair(QueuePair):
    """A socket with two queues of work."""

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
        self._queue = queue
        self._socket = socket
        self._sends: deque[SendEntry] = deque()
        self._buffers: deque[tuple[memoryview, object]] = deque()
        self.dropped = 0
        self._overrun = 0  # of those, what its port had no room for
        self._rung = 0  # entries, the first ones, that the device has been told of
        self._ready = 0  # of those, what it has fetched; all, where no time is modelled
        self._blocked = False
        self._open = True
        function.readiness.add(socket, self)

    @property
    def busy(self) -> bool:
        """Whether there is work to go on with that the socket will not tell of."""
        waiting = self._ready if self._function.nic.times.runs else self._sends
        return bool(waiting) and not self._blocked

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
        self._usable()
        if len(message) > self.max_message:
            raise NicError(f"{len(message)} bytes, where a message has {self.max_message} at most")
        if len(self._sends) >= self.send_depth:
            raise NicError(f"the send queue is full: {self.send_depth} entries")
        if inline:
            if len(message) > self.inline_max:
                raise NicError(f"{len(message)} bytes inline, where {self.inline_max} have room")
            message = memoryview(bytes(message))
        else:
            self._function.check_registered(message)
        self._sends.append(SendEntry(message, to, context, inline))
        if not more:
            self.ring()

    def post_receive(self, buffer: memoryview, context: object) -> None:
        """Put a buffer into the receive queue."""
        self._usable()
        if len(self._buffers) >= self.receive_depth:
            raise NicError(f"the receive queue is full: {self.receive_depth} entries")
        self._function.check_registered(buffer)
        self._buffers.append((buffer, context))

    def ring(self) -> None:
        """Hand the socket what is in the send queue, once the device has fetched it."""
        self._usable()
        times = self._function.nic.times
        if not times.runs:
            self.transmit()
            return
        told = [(len(one.message), one.inline) for one in islice(self._sends, self._rung, None)]
        if told:
            self._rung += len(told)
            times.rung(told, partial(self._fetched, len(told)))

    def _fetched(self, count: int) -> None:
        """The device has so many more entries."""
        if self._open:
            self._ready += count
            self.transmit()

    def transmit(self) -> None:
        """Send entries while the socket takes them, in runs."""
        if not self._function.nic.times.runs:
            self._ready = self._rung = len(self._sends)
        blocked = False
        while self._ready and not blocked:
            run = self._next_run()
            try:
                taken = self._socket.send_run([entry.message for entry in run], run[0].to)
            except LinkError as problem:
                self._function.nic.failed(problem)
                self._finish(len(run), Status.LINK_DOWN)
                continue
            if taken:
                self._function.nic.sent()
                self._finish(taken, Status.OK)
            blocked = taken < len(run)
        if blocked is not self._blocked:
            self._blocked = blocked
            self._function.readiness.want_write(self._socket, wanted=blocked)

    def _next_run(self) -> list[SendEntry]:
        """The first entries that go to one peer and have one size, but the last: at most that."""
        first = self._sends[0]
        size = len(first.message)
        most = min(RUN_PACKETS, max(1, RUN_BYTES // max(1, size)), self._ready)
        run: list[SendEntry] = []
        for entry in self._sends:
            if len(run) == most or entry.to != first.to or len(entry.message) > size:
                break
            run.append(entry)
            if len(entry.message) < size:
                break
        return run

    def _finish(self, count: int, status: Status) -> None:
        for _ in range(count):
            entry = self._sends.popleft()
            self._rung = max(0, self._rung - 1)
            self._ready = max(0, self._ready - 1)
            done = Completion(Work.SEND, status, entry.context, len(entry.message), None)
            self._queue.report_completion(done)

    def receive(self, most: int) -> None:
        """Take in about `most` packets that have arrived, or all in the virtual world.

        Once no buffer is left all go: what has arrived is lost.
        """
        every = self._function.nic.network.virtual
        left = most + self.receive_depth  # a flood does not hold the rank for ever
        while left > 0 and (most > 0 or every or not self._buffers):
            count = self._take_run()
            if not count:
                return
            most -= count
            left -= count

    def _take_run(self) -> int:
        """Take from the socket what has arrived, a run at a time; returns how many packets."""
        room = self._function.room
        try:
            found = self._socket.receive_run_into(room)
        except LinkError as problem:
            self._function.nic.failed(problem)
            return 0
        if found is None:
            return 0
        overrun = self._socket.overrun()
        self.dropped += overrun - self._overrun
        self._overrun = overrun
        total, size, sender = found
        starts = range(0, total, size) if size else (0,)
        for at in starts:
            self._deliver(room[at : min(at + size, total)], sender)
        return len(starts)

    def _deliver(self, packet: memoryview, sender: Address) -> None:
        if not self._buffers:
            self.dropped += 1
            return
        buffer, context = self._buffers.popleft()
        size = min(len(packet), len(buffer))
        buffer[:size] = packet[:size]
        status = Status.OK if size == len(packet) else Status.TRUNCATED
        self._queue.report_completion(Completion(Work.RECEIVE, status, context, size, sender))

    def close(self) -> None:
        """Flush both queues and close the socket."""
        if not self._open:
            return
        if self._function.nic.times.runs:  # what was rung goes before the queue does
            self._ready = self._rung
            self.transmit()
        self._open = False
        self._finish(len(self._sends), Status.FLUSHED)
        for _, context in self._buffers:
            self._queue.report_completion(
                Completion(Work.RECEIVE, Status.FLUSHED, context, 0, None)
            )
        self._buffers.clear()
        self._function.readiness.remove(self._socket)
        self._socket.close()
        self._function.pairs.remove(self)
        self._queue.pairs.remove(self)

    def _usable(self) -> None:
        if not self._open:
            raise NicError("the queue pair is closed")
        if self._function.nic.gone:
            raise NicError(self._function.nic.gone)
