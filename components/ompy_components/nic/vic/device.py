"""The device and its virtual function: who may use what, and how much of it."""

from __future__ import annotations

from typing import Final

from ompy.compiled import ccall, cclass
from ompy.engine.base import Engine
from ompy.frameworks.nic.base import Identity, LinkState, NicError
from ompy.frameworks.nic.datagram import (
    CompletionQueue,
    DatagramNic,
    Domain,
    QueuePair,
    Registration,
)
from ompy.mca.parameter import Values
from ompy.net.base import RUN_MAX, DeviceGone, Interface, LinkError, Network, Readiness

from ompy_components.nic.vic.queues import VicCompletionQueue, VicQueuePair
from ompy_components.nic.vic.times import Times

HEADERS: Final = 28  # bytes; reference usnic.md 20: IP and UDP headers, 1472 of an MTU of 1500
MTU_UNKNOWN: Final = 1500  # bytes; reference usnic.md 3: the smaller of the two usual ones
MTU_MAX: Final = 9000  # bytes; reference usnic.md 3: the larger one


class Vic(DatagramNic):
    """An emulated VIC behind one network interface."""

    def __init__(
        self, network: Network, index: int, interface: Interface, values: Values, engine: Engine
    ) -> None:
        super().__init__(Identity.behind(interface, f"vic_{index}", emulated=True))
        self.network = network
        self.mtu = values.mtu or min(interface.mtu or MTU_UNKNOWN, MTU_MAX)
        self.max_message = self.mtu - HEADERS
        self.depth_max: int = values.queue_depth
        self.inline_max: int = min(values.inline_size, self.max_message)
        self.queues_max: int = values.queue_pairs
        self.times = Times(engine, network, values)
        self._function: VirtualFunction | None = None

    def open(self) -> None:
        """Make the virtual function."""
        if self._function is None:
            self._function = VirtualFunction(self)

    def close(self) -> None:
        """Take the virtual function away, with everything in it."""
        if self._function is not None:
            self._function.close()
            self._function = None

    def domain(self) -> Domain:
        """The virtual function."""
        if self._function is None:
            raise NicError(f"{self.identity.name} is not open")
        return self._function

    def sent(self) -> None:
        """The wire has taken a packet: the link is up."""
        if self.link is not LinkState.UP:
            self.report_link(LinkState.UP, f"{self.identity.interface} takes packets again")

    def failed(self, problem: LinkError) -> None:
        """The wire has refused a packet, or the device behind it has gone."""
        if isinstance(problem, DeviceGone):
            self.report_fatal(f"{self.identity.interface}: {problem}")
        self.report_link(LinkState.DOWN, f"{self.identity.interface}: {problem}")


@cclass
class VirtualFunction(Domain):
    """A process's share of a device.

    Attributes:
        nic: the device.
        readiness: of the sockets under the queue pairs; wakes a rank that sleeps.
        pairs: the queue pairs that are open.
        queues: the completion queues that are open.
    """

    _asked_by: VicCompletionQueue | None
    _ready: list[VicQueuePair]
    _registered: dict[int, int]
    nic: Vic
    pairs: list[VicQueuePair]
    queues: list[VicCompletionQueue]
    readiness: Readiness
    room: memoryview[int]
    __slots__ = tuple(__annotations__)

    def __init__(self, nic: Vic) -> None:
        self.nic = nic
        self.readiness = nic.network.readiness()
        self.pairs = []
        self.queues = []
        self.room = memoryview(bytearray(RUN_MAX))  # where the sockets put what has arrived
        self._ready = []
        self._asked_by = None
        self._registered = {}  # how often, by identity of what owns the memory

    @ccall
    def ready_pairs(self, queue: VicCompletionQueue) -> list[VicQueuePair]:
        """Queue pairs whose sockets have something.

        Who reads one queue after the other has the system asked once: what one queue has asked is
        good for the next one's first question.
        """
        if self._asked_by is None or self._asked_by is queue:
            news = self.readiness.poll()
            self._ready = [event.owner for event in news] if news else []  # type: ignore[misc]
            self._asked_by = queue
        else:
            self._asked_by = None
        return self._ready

    def register(self, memory: memoryview) -> Registration:
        """Let the device use `memory`."""
        owner = id(memory.obj)
        self._registered[owner] = self._registered.get(owner, 0) + 1
        return _VicRegistration(self, memory)

    def deregister(self, memory: memoryview) -> None:
        """Take it back."""
        owner = id(memory.obj)
        self._registered[owner] -= 1
        if not self._registered[owner]:
            del self._registered[owner]

    @ccall
    def check_registered(self, memory: memoryview) -> None:
        """See that memory that is posted is registered.

        Raises:
            NicError: it is not.
        """
        if id(memory.obj) not in self._registered:
            raise NicError(f"{self.nic.identity.name}: the memory is not registered")

    def completion_queue(self, depth: int) -> CompletionQueue:
        """A completion queue."""
        self._room(len(self.queues), "completion queue")
        queue = VicCompletionQueue(self, depth)
        self.queues.append(queue)
        return queue

    def queue_pair(
        self,
        queue: CompletionQueue,
        send_depth: int,
        receive_depth: int,
        max_message: int,
        *,
        port: int = 0,
    ) -> QueuePair:
        """A queue pair on a socket of its own."""
        nic = self.nic
        name = nic.identity.name
        assert isinstance(queue, VicCompletionQueue), f"{queue!r} is of another device"
        self._room(len(self.pairs), "queue pair")
        if max(send_depth, receive_depth) > nic.depth_max:
            raise NicError(f"{name}: a queue has at most {nic.depth_max} work entries")
        if max_message > nic.max_message:
            raise NicError(f"{name}: a message has at most {nic.max_message} bytes")
        taken = sum(pair.send_depth + pair.receive_depth for pair in queue.pairs)
        if taken + send_depth + receive_depth > queue.depth:
            raise NicError(f"{name}: the completion queue has {queue.depth} entries, too few")
        try:
            socket = nic.network.datagram(nic.identity.address, port, link=nic.times.link)
        except LinkError as problem:
            raise NicError(f"{name}: {problem}") from problem
        socket.carries("nic.vic")
        pair = VicQueuePair(self, queue, socket, send_depth, receive_depth, max_message)
        queue.pairs.append(pair)
        self.pairs.append(pair)
        return pair

    def close(self) -> None:
        """Close what is still open."""
        for pair in list(self.pairs):
            pair.close()
        for queue in list(self.queues):
            queue.close()
        self.readiness.close()

    def _room(self, used: int, what: str) -> None:
        if self.nic.gone:
            raise NicError(self.nic.gone)
        if used >= self.nic.queues_max:
            raise NicError(
                f"{self.nic.identity.name}: a virtual function has {self.nic.queues_max} of "
                f"each, and no {what} is left"
            )


class _VicRegistration(Registration):
    """Memory the emulated device may use."""

    def __init__(self, function: VirtualFunction, memory: memoryview) -> None:
        super().__init__(memory)
        self._function: VirtualFunction | None = function

    def close(self) -> None:
        """Take it back; harmless the second time."""
        if self._function is not None:
            self._function.deregister(self.memory)
            self._function = None
