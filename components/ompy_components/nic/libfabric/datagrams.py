"""The provider `udp` as a NIC with queue pairs for datagrams: another one than `nic/vic` for usnic.

A queue pair is a datagram endpoint with a completion queue of its own, so what is lost is lost by a
real socket. The provider's send queue may be full at any moment (FI_EAGAIN): what it has not taken
waits here, in order, and goes when the queue is rung or read. An inline send is an `inject`, whose
bytes the provider has copied when it returns.

Source: reference ofi.md C5; usnic.md 20.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from ompy.frameworks.nic import fabric
from ompy.frameworks.nic.base import Identity, LinkState, NicError
from ompy.frameworks.nic.datagram import (
    Completion,
    CompletionQueue,
    DatagramNic,
    Domain,
    QueuePair,
    Registration,
    Status,
    Work,
)
from ompy.net.base import Address, Interface

from ompy_components.nic.libfabric.domain import LibfabricDomain
from ompy_components.nic.libfabric.names import pack_name, unpack_name

PROVIDER: Final = "udp"
HEADERS: Final = 28  # bytes; reference usnic.md 20: IP and UDP headers, 1472 of an MTU of 1500
TRUNCATED: Final = 265  # libfabric: FI_ETRUNC
HINTS: Final = fabric.Hints(fabric.Caps.MSG, provider=PROVIDER, datagram=True)

Find = Callable[[fabric.Hints, str], list[fabric.FabricInfo]]  # from one address
Open = Callable[[fabric.FabricInfo], LibfabricDomain]


class Entry(NamedTuple):
    """One piece of work, as the context of libfabric's."""

    work: Work
    context: object
    size: int


class Waiting(NamedTuple):
    """A message that the provider has not taken yet."""

    message: memoryview
    to: Address
    entry: Entry
    inline: bool


class LibfabricDatagramNic(DatagramNic):
    """The provider `udp` on one interface."""

    def __init__(self, index: int, interface: Interface, find: Find, opens: Open) -> None:
        super().__init__(Identity.behind(interface, f"libfabric_udp_{index}", emulated=False))
        self._find = find
        self._opens = opens
        self._domain: LibfabricDatagrams | None = None

    def open(self) -> None:
        """Ask for the provider on this interface, and open its domain."""
        if self._domain is not None:
            return
        found = self._find(HINTS, self.identity.address)
        if not found:
            raise NicError(f"libfabric has no provider {PROVIDER} on {self.identity.interface}")
        info = found[0]
        self.max_message = info.max_message
        self.mtu = info.max_message + HEADERS
        self.depth_max = min(info.tx_size, info.rx_size)
        self._domain = LibfabricDatagrams(self, self._opens(info))

    def close(self) -> None:
        """Close the domain, with everything in it."""
        if self._domain is not None:
            self._domain.close()
            self._domain = None

    def domain(self) -> Domain:
        """The provider's domain."""
        if self._domain is None:
            raise NicError(f"{self.identity.name} is not open")
        return self._domain

    def sent(self) -> None:
        """The provider has taken a packet: the link is up."""
        if self.link is LinkState.DOWN:
            self.report_link(LinkState.UP, f"{self.identity.interface} takes packets again")

    def failed(self, problem: str) -> None:
        """A packet has been refused, which says that the link does not carry any."""
        self.report_link(LinkState.DOWN, f"{self.identity.interface}: {problem}")


class LibfabricDatagrams(Domain):
    """What this process has of the provider on one interface.

    Attributes:
        nic: the device.
        fabric: libfabric's domain.
        vector: everybody this process sends to.
        pairs: the queue pairs that are open.
        queues: the completion queues that are open.
    """

    def __init__(self, nic: LibfabricDatagramNic, opened: LibfabricDomain) -> None:
        self.nic = nic
        self.fabric = opened
        self.vector = opened.address_vector()
        self.pairs: list[LibfabricPair] = []
        self.queues: list[LibfabricDatagramQueue] = []
        self._known: dict[Address, int] = {}

    def known(self, to: Address) -> int:
        """Libfabric's number for an address."""
        number = self._known.get(to)
        if number is None:
            number = self._known[to] = self.vector.insert(pack_name(to))
        return number

    def register(self, memory: memoryview) -> Registration:
        """The provider wants nothing registered; whoever posts it keeps it."""
        return Registration(memory)

    def completion_queue(self, depth: int) -> CompletionQueue:
        """A completion queue; libfabric's are made with the queue pairs."""
        queue = LibfabricDatagramQueue(self, depth)
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
        """An endpoint."""
        nic = self.nic
        assert isinstance(queue, LibfabricDatagramQueue), f"{queue!r} is of another device"
        if port:
            raise NicError(f"{nic.identity.name}: the provider chooses its ports itself")
        if max(send_depth, receive_depth) > nic.depth_max:
            raise NicError(f"{nic.identity.name}: a queue has at most {nic.depth_max} work entries")
        if max_message > nic.max_message:
            raise NicError(f"{nic.identity.name}: a message has at most {nic.max_message} bytes")
        taken = sum(pair.send_depth + pair.receive_depth for pair in queue.pairs)
        if taken + send_depth + receive_depth > queue.depth:
            raise NicError(f"{nic.identity.name}: the completion queue has {queue.depth} entries")
        pair = LibfabricPair(self, queue, send_depth, receive_depth, max_message)
        queue.pairs.append(pair)
        self.pairs.append(pair)
        return pair

    def close(self) -> None:
        """Close what is still open."""
        for pair in list(self.pairs):
            pair.close()
        for queue in list(self.queues):
            queue.close()
        self.vector.close()
        self.fabric.close()


class LibfabricDatagramQueue(CompletionQueue):
    """Completions of some queue pairs, by queue pair.

    Attributes:
        depth: completions it has room for.
        pairs: the queue pairs that report here.
    """

    def __init__(self, domain: LibfabricDatagrams, depth: int) -> None:
        self.depth = depth
        self.pairs: list[LibfabricPair] = []
        self._domain = domain
        self._done: deque[Completion] = deque()

    def report_completion(self, completion: Completion) -> None:
        """Report."""
        self._done.append(completion)

    def read(self, most: int) -> list[Completion]:
        """Let the queue pairs work, then hand out what is done."""
        for pair in self.pairs:
            if len(self._done) >= most:
                break
            pair.progress(most - len(self._done))
        return [self._done.popleft() for _ in range(min(most, len(self._done)))]

    def ready(self) -> bool:
        """Whether there are completions, or a queue pair cannot be waited for."""
        return bool(self._done) or not all(pair.arm() for pair in self.pairs)

    def close(self) -> None:
        """Forget the completions."""
        self._done.clear()
        if self in self._domain.queues:
            self._domain.queues.remove(self)


class LibfabricPair(QueuePair):
    """An endpoint with its completion queue."""

    def __init__(
        self,
        domain: LibfabricDatagrams,
        queue: LibfabricDatagramQueue,
        send_depth: int,
        receive_depth: int,
        max_message: int,
    ) -> None:
        self.send_depth = send_depth
        self.receive_depth = receive_depth
        self.max_message = max_message
        self._domain = domain
        self._queue = queue
        self._fabric_queue = domain.fabric.completion_queue(send_depth + receive_depth)
        self._endpoint = domain.fabric.endpoint(domain.vector, self._fabric_queue)
        self._endpoint.enable()
        self.address = unpack_name(self._endpoint.name())
        self.inline_max = min(domain.fabric.info.inject_size, max_message)
        self._waiting: deque[Waiting] = deque()
        self._sends = 0  # posted, and not complete
        self._receives = 0
        self._open = True

    def post_send(
        self,
        message: memoryview,
        to: Address,
        context: object,
        *,
        inline: bool = False,
        more: bool = False,
    ) -> None:
        """Hand the provider a message; what it does not take waits."""
        self._usable()
        if len(message) > self.max_message:
            raise NicError(f"{len(message)} bytes, where a message has {self.max_message} at most")
        if self._sends >= self.send_depth:
            raise NicError(f"the send queue is full: {self.send_depth} entries")
        if inline and len(message) > self.inline_max:
            raise NicError(f"{len(message)} bytes inline, where {self.inline_max} have room")
        self._sends += 1
        entry = Entry(Work.SEND, context, len(message))
        waiting = Waiting(message, to, entry, inline)
        if self._waiting or not self._offer(waiting):
            if inline:  # the caller has the memory back when this returns
                waiting = waiting._replace(message=memoryview(bytes(message)))
            self._waiting.append(waiting)

    def _offer(self, waiting: Waiting) -> bool:
        """Whether the provider has taken it, or refused it for good."""
        try:
            to = self._domain.known(waiting.to)
            if not waiting.inline:
                taken = self._endpoint.send(waiting.message, None, to, waiting.entry)
                if taken:
                    self._domain.nic.sent()
                return taken
            taken = self._endpoint.inject(waiting.message, to)
        except fabric.FabricError as problem:
            self._domain.nic.failed(str(problem))
            self._finish(waiting.entry, Status.LINK_DOWN, waiting.entry.size)
            return True
        if taken:
            self._finish(waiting.entry, Status.OK, waiting.entry.size)
        return taken

    def _finish(self, entry: Entry, status: Status, size: int) -> None:
        if entry.work is Work.SEND:
            self._sends -= 1
        else:
            self._receives -= 1
        self._queue.report_completion(Completion(entry.work, status, entry.context, size, None))

    def post_receive(self, buffer: memoryview, context: object) -> None:
        """Give the provider a buffer."""
        self._usable()
        if self._receives >= self.receive_depth:
            raise NicError(f"the receive queue is full: {self.receive_depth} entries")
        entry = Entry(Work.RECEIVE, context, len(buffer))
        if not self._endpoint.receive(buffer, None, entry):
            raise NicError("the provider has no room for a receive that was to fit")
        self._receives += 1

    def ring(self) -> None:
        """Offer what waits."""
        self._usable()
        while self._waiting and self._offer(self._waiting[0]):
            self._waiting.popleft()

    def progress(self, most: int) -> None:
        """Take up to `most` completions of the provider's, and offer what waits."""
        for done in self._fabric_queue.read(most):
            entry = done.context
            if not isinstance(entry, Entry):
                continue  # an error that belongs to no work
            if not done.error:
                size = done.size if entry.work is Work.RECEIVE else entry.size
                self._finish(entry, Status.OK, size)
            elif done.error == TRUNCATED:
                self._finish(entry, Status.TRUNCATED, entry.size)
            else:
                self._domain.nic.failed(done.detail)
                self._finish(entry, Status.LINK_DOWN, 0)
        if self._waiting:
            self.ring()

    def arm(self) -> bool:
        """Whether the rank may sleep, as far as this queue pair goes."""
        return not self._waiting and self._fabric_queue.arm() is True

    def close(self) -> None:
        """Flush both queues and close the endpoint."""
        if not self._open:
            return
        self._open = False
        for waiting in self._waiting:
            self._finish(waiting.entry, Status.FLUSHED, 0)
        self._waiting.clear()
        held = [work.context for work in self._fabric_queue.contexts.held.values()]
        self._endpoint.close()
        self._fabric_queue.close()
        for entry in held:
            assert isinstance(entry, Entry)
            self._finish(entry, Status.FLUSHED, 0)
        self._domain.pairs.remove(self)
        self._queue.pairs.remove(self)

    def _usable(self) -> None:
        if not self._open:
            raise NicError("the queue pair is closed")
