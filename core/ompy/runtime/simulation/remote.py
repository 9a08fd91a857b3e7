"""What a rank's process has in place of a network: it is the scheduler's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import TYPE_CHECKING

from ompy.net.base import (
    WOULD_BLOCK,
    Address,
    Datagram,
    Doorbell,
    Interface,
    Link,
    LinkError,
    Listener,
    Network,
    Readiness,
    Ready,
    Source,
    Stream,
)
from ompy.net.memory.process_copy import ProcessCopy
from ompy.net.virtual.virtual_copy import VirtualCopy
from ompy.net.virtual.virtual_memory import MEMORY_SIZE, VirtualMemory
from ompy.net.virtual.virtual_network import beginning
from ompy.net.virtual.virtual_rail import WINDOW
from ompy.runtime.simulation.conducted import Conducted

if TYPE_CHECKING:
    from ompy.runtime.simulation.host_memory import HostMemory


class RemoteSource(Source):
    """A source that lives at the scheduler.

    The scheduler forgets it when it is closed, so nothing about it is asked for afterwards.

    Attributes:
        number: what the scheduler calls it.
        closed: it has been given back.
    """

    __slots__ = ("_world", "closed", "number")

    def __init__(self, world: Conducted, number: int) -> None:
        self._world = world
        self.number = number
        self.closed = False

    def close(self) -> None:
        """Close it."""
        if not self.closed:
            self.closed = True
            self._world.later("close", self.number)

    def check(self) -> None:
        """See that it is open.

        Raises:
            LinkError: it is closed.
        """
        if self.closed:
            raise LinkError("this end is closed")


class RemoteStream(RemoteSource, Stream):
    """One end of a simulated connection."""

    __slots__ = ("address",)

    def __init__(self, world: Conducted, number: int, address: Address) -> None:
        super().__init__(world, number)
        self.address = address

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Hand bytes to the scheduler, no more than a stream ever takes at once."""
        self.check()
        taken: int = self._world.call("send", self.number, beginning(pieces, WINDOW))
        return taken

    def receive_into(self, view: memoryview) -> int:
        """Take bytes that have arrived."""
        self.check()
        data: bytes | None = self._world.call("receive", self.number, len(view))
        if data is None:
            return WOULD_BLOCK
        view[: len(data)] = data
        return len(data)

    def fail(self, why: str) -> None:
        """Break this end."""
        if not self.closed:
            self._world.later("fail", self.number, why)


class RemoteListener(RemoteSource, Listener):
    """Accepts simulated connections."""

    __slots__ = ("_network", "address")

    def __init__(self, network: RemoteNetwork, number: int, address: Address) -> None:
        super().__init__(network.world, number)
        self._network = network
        self.address = address

    def accept(self) -> Stream | None:
        """The oldest connection not yet accepted, or None."""
        if self.closed:
            return None
        found = self._world.call("accept", self.number)
        if found is None:
            return None
        number, host, port = found
        stream = RemoteStream(self._world, number, self.address)
        return self._network.wrap_stream(stream, Address(host, port))


class RemoteDatagram(RemoteSource, Datagram):
    """A simulated datagram socket."""

    __slots__ = ("_overrun", "address")

    def __init__(self, world: Conducted, number: int, address: Address) -> None:
        super().__init__(world, number)
        self.address = address
        self._overrun = 0

    def send(self, packet: memoryview, address: Address) -> bool:
        """Send one packet: there is always room."""
        self.check()
        self._world.later("transmit", self.number, bytes(packet), tuple(address))
        return True

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """The oldest packet that is here."""
        self.check()
        found = self._world.call("take", self.number, len(view))
        if found is None:
            return None
        data, host, port, self._overrun = found
        view[: len(data)] = data
        return len(data), Address(host, port)

    def overrun(self) -> int:
        """As the scheduler said with the packet that was taken last."""
        return self._overrun


class RemoteReadiness(Readiness):
    """A set that the scheduler keeps."""

    def __init__(self, world: Conducted, number: int) -> None:
        self._world = world
        self._number = number
        self._owners: dict[int, object] = {}
        self._held: set[int] = set()

    def add(self, source: Source, owner: object) -> None:
        """Watch a source of this module, or one wrapped around it."""
        found = _remote(source)
        found.check()
        self._owners[found.number] = owner
        self._world.later("watch", self._number, found.number)
        if isinstance(source, Stream) and source.holds():
            self._held.add(found.number)

    def hold(self, source: Stream, *, held: bool) -> None:
        """Report a source without asking the scheduler, or no longer."""
        number = _remote(source).number
        if held and number in self._owners:
            self._held.add(number)
        else:
            self._held.discard(number)

    def want_write(self, source: Source, *, wanted: bool) -> None:
        """Watch for room to write, or no longer."""
        found = _remote(source)
        if found.number in self._owners and not found.closed:
            self._world.later("want_write", self._number, found.number, wanted)

    def remove(self, source: Source) -> None:
        """Forget a source."""
        found = _remote(source)
        self._held.discard(found.number)
        if self._owners.pop(found.number, None) is not None and not found.closed:
            self._world.later("unwatch", self._number, found.number)

    def poll(self) -> list[Ready]:
        """What is ready now."""
        if self._world.stale:
            self._world.call("nothing")
        found = self._world.ready.get(self._number, ())
        if self._held:
            here = {number: (reads, writes) for number, reads, writes in found}
            for number in sorted(self._held):
                here[number] = (True, here.get(number, (True, False))[1])
            found = [(number, reads, writes) for number, (reads, writes) in here.items()]
        return [Ready(self._owners[number], reads, writes) for number, reads, writes in found]

    def close(self) -> None:
        """Forget everything."""
        self._owners.clear()
        self._held.clear()
        self._world.later("unwatch_all", self._number)


class RemoteBell(Doorbell):
    """The doorbell of a rank of this host."""

    __slots__ = ("_local_rank", "_world")

    def __init__(self, world: Conducted, local_rank: int) -> None:
        self._world = world
        self._local_rank = local_rank

    def ring(self) -> None:
        """Have the scheduler wake that rank."""
        self._world.later("ring", self._local_rank)


def _plain(link: Link | None) -> tuple[int, ...] | None:
    """A link as a line carries it: a tuple of that name and no other."""
    return tuple(link) if link is not None else None


class RemoteNetwork(Network):
    """This rank's way to the others.

    Attributes:
        world: the scheduler.
    """

    virtual = True

    def __init__(
        self,
        world: Conducted,
        rank: int,
        interfaces: Sequence[Interface],
        random: Random,
        shared: HostMemory | None = None,
    ) -> None:
        """Reach the others.

        Args:
            world: the scheduler.
            rank: the own one.
            interfaces: of its host.
            random: where entropy comes from.
            shared: memory of the host; None where the rank is alone on it.
        """
        super().__init__()
        self._shared = shared
        self.world = world
        self._rank = rank
        self._memory = VirtualMemory({rank: rank})
        self._interfaces = list(interfaces)
        self._random = random
        self._sets = 0

    def rank_at(self, address: Address) -> int:
        """It stands in every address here."""
        return int(address.host.partition("/")[2])

    def interfaces(self) -> list[Interface]:
        """One per rail."""
        return list(self._interfaces)

    def in_network(self, address: str, network: str) -> bool:
        """Whether both are on the same rail."""
        return address.partition("/")[0] == network.partition("/")[0]

    def listen(
        self, host: str, ports: Iterable[int] = (0,), *, link: Link | None = None
    ) -> Listener:
        """Listen at one of this rank's addresses."""
        number, port = self.world.call("listen", host, tuple(ports), _plain(link))
        return RemoteListener(self, number, Address(host, port))

    def connect(self, address: Address, source: str = "", *, link: Link | None = None) -> Stream:
        """Begin a connection."""
        number, *own = self.world.call("connect", tuple(address), source, _plain(link))
        return self._wrap_stream(RemoteStream(self.world, number, Address(*own)), address)

    def wrap_stream(self, stream: Stream, peer: Address) -> Stream:
        """For listeners: what they accept passes the middleware, too."""
        return self._wrap_stream(stream, peer)

    def datagram(self, host: str, port: int = 0, *, link: Link | None = None) -> Datagram:
        """A datagram socket at one of this rank's addresses."""
        number, port = self.world.call("datagram", host, port, _plain(link))
        return self._wrap_datagram(RemoteDatagram(self.world, number, Address(host, port)))

    def readiness(self) -> Readiness:
        """An empty set."""
        self._sets += 1
        self.world.later("readiness", self._sets)
        return RemoteReadiness(self.world, self._sets)

    def segment(self, name: str, size: int) -> memoryview:
        """Memory of the host: this rank's alone where no other is on it."""
        if self._shared is not None:
            return self._shared.segment(name, size)
        return self._memory.segment(self._rank, name, size)

    def region(self, size: int) -> memoryview:
        """Memory that the others of this host may map."""
        if self._shared is not None:
            return self._shared.region(size)
        return self._memory.region(self._rank, size)

    def release_region(self, address: int, *, pages: bool = True) -> None:
        """It is needed no more."""
        if self._shared is not None:
            self._shared.release_region(address, pages=pages)
            return
        self._memory.release_region(self._rank, address)

    def memory_size(self) -> int:
        """The same on every host."""
        return MEMORY_SIZE

    def doorbell(self, local_rank: int) -> Doorbell:
        """Of a rank of this host."""
        return RemoteBell(self.world, local_rank)

    def process_copy(self) -> ProcessCopy | None:
        """Copies within this host."""
        if self._shared is not None:
            return self._shared.copy()
        return VirtualCopy(self._memory, self._rank)

    def entropy(self, count: int) -> bytes:
        """Bytes drawn from the seed."""
        return self._random.randbytes(count)

    def close(self) -> None:
        """Nothing to give back: the world ends as a whole."""


def _remote(source: Source) -> RemoteSource:
    """The simulated source under any middleware."""
    while not isinstance(source, RemoteSource):
        source = source.inner  # type: ignore[attr-defined]
    return source
