"""The simulated network: streams, datagrams, shared memory and copies on the virtual clock.

Every delay, every partial read and every partial write is drawn from the world's seed, by flow.
Streams keep order; datagrams need not. Faults come as middleware, as in the real world.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from ompy.engine.virtual_engine import Scheduler, VirtualEngine
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
from ompy.net.virtual.virtual_port import Ports
from ompy.net.virtual.virtual_rail import Rail as Rail  # noqa: PLC0414 - it is had from here

RING_DELAY: Final = 2_000  # ns; arbitrary: a wake-up takes time, so races get their chance
DATAGRAMS_QUEUED: Final = 256  # arbitrary: packets a socket holds before it drops
DEVICE_QUEUED: Final = 1 << 16  # arbitrary: more than a device has buffers; it drops by itself


@dataclass(slots=True)
class Fabric:
    """What the ranks of one virtual world share.

    Attributes:
        scheduler: clock and seed.
        rails: the networks.
        hosts: host number of each rank.
        memory: of the hosts.
        links: until when a link is taken, by its rank and the rail as that link has it.
        device_ports: where packets come in over the links of devices.
    """

    scheduler: Scheduler
    rails: Sequence[Rail]
    hosts: list[int]
    listeners: dict[Address, VirtualListener] = field(default_factory=dict)
    sockets: dict[Address, VirtualDatagram] = field(default_factory=dict)
    engines: dict[int, VirtualEngine] = field(default_factory=dict)
    memory: VirtualMemory = field(init=False)
    links: dict[tuple[int, Rail], int] = field(default_factory=dict)
    device_ports: Ports = field(default_factory=Ports)
    ports: int = 1024

    def __post_init__(self) -> None:
        """Give the hosts memory."""
        self.memory = VirtualMemory(self.hosts)

    def add_rank(self, host: int) -> None:
        """One more, behind those there are."""
        self.hosts.append(host)

    def rail_of(self, address: str) -> Rail:
        """The rail an interface address (`rail/rank`) belongs to."""
        name = address.partition("/")[0]
        for rail in self.rails:
            if rail.name == name:
                return rail
        raise LinkError(f"no interface has the address {address}")

    def delay(self, rail: Rail, rank: int, peer: int, size: int, *, of: str = "packet") -> int:
        """Nanoseconds until `size` bytes that `rank` sends `peer` now over `rail` have arrived.

        They leave behind all that the rank has sent over this rail, at the rail's bandwidth, and
        take a time that is drawn anew each time, for each kind (`of`) from a stream of its own.
        """
        now = self.scheduler.time
        leave = max(now, self.links.get((rank, rail), 0)) + rail.passing(size)
        self.links[rank, rail] = leave
        chance = self.scheduler.stream(of, rank, peer, rail.name)
        return leave - now + rail.latency + chance.randrange(rail.jitter + 1)

    def next_port(self) -> int:
        """A port nobody has."""
        self.ports += 1
        return self.ports


def beginning(pieces: Sequence[memoryview], most: int) -> bytes:
    """The first bytes of `pieces`, up to `most`: what is behind them is not copied."""
    taken: list[memoryview] = []
    for piece in pieces:
        taken.append(piece[:most])
        most -= len(taken[-1])
        if not most:
            break
    return b"".join(taken)


class VirtualSource(Source):
    """Something with a rank to wake.

    Attributes:
        engine: of the rank.
        closed: it has been given back.
    """

    __slots__ = ("closed", "engine")

    def __init__(self, engine: VirtualEngine) -> None:
        self.engine = engine
        self.closed = False
        engine.sources.append(self)

    def readable(self) -> bool:
        """Whether reading would find something."""
        raise NotImplementedError

    def writable(self) -> bool:
        """Whether writing would find room."""
        return False


class VirtualStream(VirtualSource, Stream):
    """One end of a simulated connection."""

    __slots__ = (
        "_arrived",
        "_chance",
        "_ended",
        "_fabric",
        "_held",
        "_last_arrival",
        "_other",
        "_rail",
        "address",
        "connected",
        "peer",
        "problem",
    )

    def __init__(
        self, fabric: Fabric, rail: Rail, engine: VirtualEngine, other: int, address: Address
    ) -> None:
        super().__init__(engine)
        self._fabric = fabric
        self._rail = rail
        self._other = other
        self.address = address
        self._chance = fabric.scheduler.stream("pieces", engine.rank, other, rail.name)
        self._arrived: deque[memoryview] = deque()
        self._held = 0  # bytes on their way to this end or waiting at it
        self._last_arrival = 0
        self._ended = False
        self.connected = False
        self.peer: VirtualStream | None = None
        self.problem: str | None = None

    def readable(self) -> bool:
        """Data, the end of data, or an error."""
        return bool(self._arrived) or self._ended or self.problem is not None

    def writable(self) -> bool:
        """Connected with room at the other end, or an error to be told."""
        if self.problem is not None:
            return True
        return self.connected and self.peer is not None and self.peer._held < self._rail.window

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Take part of `pieces`, at random at least one byte of what there is room for."""
        self._check()
        peer = self.peer
        if not self.connected or peer is None:
            return 0
        if peer.closed:
            raise LinkError("the peer has closed the connection")
        room = self._rail.window - peer._held
        offered = sum(len(piece) for piece in pieces)
        if room <= 0 or offered == 0:
            return 0
        most = min(room, offered)
        taken = most if self._chance.random() < 0.7 else self._chance.randint(1, most)
        self._deliver(peer, beginning(pieces, taken))
        return taken

    def _deliver(self, peer: VirtualStream, data: bytes) -> None:
        scheduler = self._fabric.scheduler
        peer._held += len(data)
        arrival = scheduler.time + self._delay(len(data))
        peer._last_arrival = arrival = max(arrival, peer._last_arrival)
        scheduler.after(arrival - scheduler.time, lambda: peer._arrive(data))

    def _arrive(self, data: bytes) -> None:
        if self.closed:
            return
        self._arrived.append(memoryview(data))
        self.engine.wake()

    def receive_into(self, view: memoryview) -> int:
        """Give up to `len(view)` bytes, at random fewer."""
        if not self._arrived:
            self._check()
            return 0 if self._ended else WOULD_BLOCK
        first = self._arrived[0]
        count = min(len(first), len(view))
        if count > 1 and self._chance.random() < 0.2:  # arbitrary: often enough to matter
            count = self._chance.randint(1, count)
        view[:count] = first[:count]
        if count == len(first):
            self._arrived.popleft()
        else:
            self._arrived[0] = first[count:]
        self._held -= count
        if self.peer is not None:
            self.peer.engine.wake()
        return count

    def close(self) -> None:
        """Close this end; the other one sees the end of data behind what is under way."""
        if self.closed:
            return
        self.closed = True
        self._arrived.clear()
        self.connected = False
        peer = self.peer
        if peer is not None and not peer.closed:
            scheduler = self._fabric.scheduler
            arrival = max(scheduler.time + self._delay(0), peer._last_arrival)
            scheduler.after(arrival - scheduler.time, peer._end)

    def _delay(self, size: int) -> int:
        return self._fabric.delay(self._rail, self.engine.rank, self._other, size)

    def _end(self) -> None:
        self._ended = True
        self.engine.wake()

    def establish(self, peer: VirtualStream) -> None:
        """The two ends know each other."""
        self.peer = peer
        self.connected = True
        self.engine.wake()

    def fail(self, why: str) -> None:
        """The connection was refused, or breaks."""
        self.problem = why
        self.engine.wake()

    def _check(self) -> None:
        if self.problem is not None:
            raise LinkError(self.problem)
        if self.closed:
            raise LinkError("this end is closed")


class VirtualListener(VirtualSource, Listener):
    """Accepts simulated connections."""

    __slots__ = ("_fabric", "_queue", "_rail", "_wrap", "address")

    def __init__(
        self,
        fabric: Fabric,
        rail: Rail,
        engine: VirtualEngine,
        address: Address,
        wrap: Callable[[Stream, Address], Stream],
    ) -> None:
        super().__init__(engine)
        self._fabric = fabric
        self._rail = rail
        self._queue: deque[tuple[VirtualStream, Address]] = deque()
        self._wrap = wrap
        self.address = address

    def readable(self) -> bool:
        """Whether somebody has connected."""
        return bool(self._queue)

    def arrive(self, caller: VirtualStream, peer: Address) -> None:
        """A connection request gets here."""
        if self.address not in self._fabric.listeners:
            caller.fail("connection refused")
            return
        rail, peer_rank = self._rail, caller.engine.rank
        stream = VirtualStream(self._fabric, rail, self.engine, peer_rank, self.address)
        stream.establish(caller)
        scheduler = self._fabric.scheduler
        delay = self._fabric.delay(rail, self.engine.rank, peer_rank, 0)
        scheduler.after(delay, lambda: caller.establish(stream))
        self._queue.append((stream, peer))
        self.engine.wake()

    def accept(self) -> Stream | None:
        """The oldest connection not yet accepted, or None."""
        if not self._queue:
            return None
        stream, peer = self._queue.popleft()
        return self._wrap(stream, peer)

    def close(self) -> None:
        """Refuse from now on."""
        if self.closed:
            return
        self.closed = True
        for stream, _ in self._queue:  # as a kernel does with those nobody has accepted
            stream.close()
        self._queue.clear()
        self._fabric.listeners.pop(self.address, None)


class VirtualDatagram(VirtualSource, Datagram):
    """A simulated datagram socket."""

    __slots__ = ("_arrived", "_fabric", "_overrun", "_port", "_rail", "_room", "address")

    def __init__(
        self, fabric: Fabric, rail: Rail, engine: VirtualEngine, address: Address, room: int
    ) -> None:
        super().__init__(engine)
        self._room = room  # packets it holds
        self._fabric = fabric
        self._rail = rail
        self._port = fabric.device_ports.of(engine.rank, rail)
        self._overrun = 0
        self._arrived: deque[tuple[bytes, Address]] = deque()
        self.address = address

    def readable(self) -> bool:
        """Whether a packet is here."""
        return bool(self._arrived)

    def writable(self) -> bool:
        """There is always room to send a datagram."""
        return True

    def send(self, packet: memoryview, address: Address) -> bool:
        """Send one packet; if nobody is there it is lost."""
        self._check()
        data = bytes(packet)
        delay = self._fabric.delay(self._rail, self.engine.rank, _rank_at(address), len(data))
        self._fabric.scheduler.after(delay, lambda: self._arrive_at(address, data))
        return True

    def _arrive_at(self, address: Address, data: bytes) -> None:
        target = self._fabric.sockets.get(address)
        if target is None:
            return
        effect = partial(target._take_in, data, self.address)
        if target._port is None:
            effect()
        elif not target._port.takes(self._fabric.scheduler, len(data), effect):
            target._overrun += 1

    def _take_in(self, data: bytes, sender: Address) -> None:
        if not self.closed and len(self._arrived) < self._room:
            self._arrived.append((data, sender))
            self.engine.wake()

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """The oldest packet that is here."""
        self._check()
        if not self._arrived:
            return None
        data, sender = self._arrived.popleft()
        count = min(len(data), len(view))
        view[:count] = data[:count]
        return count, sender

    def overrun(self) -> int:
        """Packets for this socket that the port had no room for."""
        return self._overrun

    def close(self) -> None:
        """Lose what comes from now on."""
        if self.closed:
            return
        self.closed = True
        self._arrived.clear()
        self._fabric.sockets.pop(self.address, None)

    def _check(self) -> None:
        if self.closed:
            raise LinkError("this socket is closed")


class VirtualReadiness(Readiness):
    """Asks each source in turn, in the order of adding."""

    __slots__ = ("_held", "_owners", "_writers")

    def __init__(self) -> None:
        self._owners: dict[VirtualSource, object] = {}
        self._writers: set[VirtualSource] = set()
        self._held: set[VirtualSource] = set()

    def add(self, source: Source, owner: object) -> None:
        """Watch a source of this module, or one wrapped around it."""
        bare = _bare(source)
        self._owners[bare] = owner
        if isinstance(source, Stream) and source.holds():
            self._held.add(bare)

    def hold(self, source: Stream, *, held: bool) -> None:
        """Report a source whatever has arrived for it, or no longer."""
        bare = _bare(source)
        if held and bare in self._owners:
            self._held.add(bare)
        else:
            self._held.discard(bare)

    def want_write(self, source: Source, *, wanted: bool) -> None:
        """Watch for room to write, or no longer."""
        bare = _bare(source)
        if wanted and bare in self._owners:
            self._writers.add(bare)
        else:
            self._writers.discard(bare)

    def remove(self, source: Source) -> None:
        """Forget a source."""
        bare = _bare(source)
        self._owners.pop(bare, None)
        self._writers.discard(bare)
        self._held.discard(bare)

    def poll(self) -> list[Ready]:
        """What is ready now."""
        found = []
        for source, owner in self._owners.items():
            if source.closed:
                continue
            readable = source in self._held or source.readable()
            writable = source in self._writers and source.writable()
            if readable or writable:
                found.append(Ready(owner, readable, writable))
        return found

    def close(self) -> None:
        """Forget everything."""
        self._owners.clear()
        self._writers.clear()
        self._held.clear()


class VirtualDoorbell(Doorbell):
    """Wakes an engine a little later."""

    __slots__ = ("_engine", "_scheduler")

    def __init__(self, scheduler: Scheduler, engine: VirtualEngine) -> None:
        self._scheduler = scheduler
        self._engine = engine

    def ring(self) -> None:
        """Wake the rank after the time a wake-up takes."""
        self.ring_after(RING_DELAY)

    def ring_after(self, delay: int) -> None:
        """Wake it in so many nanoseconds."""
        self._scheduler.after(delay, self._engine.wake)


class VirtualNetwork(Network):
    """One rank's way to the others in a virtual world."""

    virtual = True

    def __init__(self, fabric: Fabric, rank: int, engine: VirtualEngine) -> None:
        super().__init__()
        self._fabric = fabric
        self._rank = rank
        self._engine = engine
        fabric.engines[rank] = engine

    def interfaces(self) -> list[Interface]:
        """One interface per rail, with the address `rail/rank`."""
        return [
            Interface(rail.name, f"{rail.name}/{self._rank}", 0, False, rail.bandwidth, rail.mtu)
            for rail in self._fabric.rails
        ]

    def rank_at(self, address: Address) -> int:
        """It stands in every address here."""
        return _rank_at(address)

    def in_network(self, address: str, network: str) -> bool:
        """Whether both are on the same rail."""
        return address.partition("/")[0] == network.partition("/")[0]

    def listen(
        self, host: str, ports: Iterable[int] = (0,), *, link: Link | None = None
    ) -> Listener:
        """Listen at one of this rank's addresses."""
        rail = self._fabric.rail_of(host).through(link)
        for port in ports:
            address = Address(host, port or self._fabric.next_port())
            if address not in self._fabric.listeners:
                made = self._fabric, rail, self._engine, address, self._wrap_stream
                listener = VirtualListener(*made)
                self._fabric.listeners[address] = listener
                return listener
        raise LinkError(f"cannot listen at {host}: no port is free")

    def connect(self, address: Address, source: str = "", *, link: Link | None = None) -> Stream:
        """Begin a connection; the request travels, the answer travels back."""
        rail = self._fabric.rail_of(address.host).through(link)
        own = Address(source or f"{rail.name}/{self._rank}", self._fabric.next_port())
        peer = _rank_at(address)
        stream = VirtualStream(self._fabric, rail, self._engine, peer, own)

        def request() -> None:
            listener = self._fabric.listeners.get(address)
            if listener is None:
                stream.fail("connection refused")
            else:
                listener.arrive(stream, own)

        self._fabric.scheduler.after(self._fabric.delay(rail, self._rank, peer, 0), request)
        return self._wrap_stream(stream, address)

    def datagram(self, host: str, port: int = 0, *, link: Link | None = None) -> Datagram:
        """A datagram socket at one of this rank's addresses."""
        rail = self._fabric.rail_of(host).through(link)
        address = Address(host, port or self._fabric.next_port())
        if address in self._fabric.sockets:
            raise LinkError(f"cannot bind to {host}:{port}: address in use")
        room = DATAGRAMS_QUEUED if link is None else DEVICE_QUEUED
        made = VirtualDatagram(self._fabric, rail, self._engine, address, room)
        self._fabric.sockets[address] = made
        return self._wrap_datagram(made)

    def readiness(self) -> Readiness:
        """An empty set."""
        return VirtualReadiness()

    def segment(self, name: str, size: int) -> memoryview:
        """Memory shared by the ranks of this virtual host."""
        return self._fabric.memory.segment(self._rank, name, size)

    def region(self, size: int) -> memoryview:
        """Memory that the others may have."""
        return self._fabric.memory.region(self._rank, size)

    def release_region(self, address: int, *, pages: bool = True) -> None:
        """Nobody may have it any more."""
        self._fabric.memory.release_region(self._rank, address)

    def memory_size(self) -> int:
        """The same on every virtual host."""
        return MEMORY_SIZE

    def doorbell(self, local_rank: int) -> Doorbell:
        """The doorbell of the `local_rank`-th rank of this host."""
        host = self._fabric.hosts[self._rank]
        here = [rank for rank, where in enumerate(self._fabric.hosts) if where == host]
        engine = self._fabric.engines[here[local_rank]]
        return VirtualDoorbell(self._fabric.scheduler, engine)

    def process_copy(self) -> ProcessCopy | None:
        """Copies between ranks of this virtual host."""
        return VirtualCopy(self._fabric.memory, self._rank)

    def entropy(self, count: int) -> bytes:
        """Bytes drawn from the seed."""
        return self._engine.random.randbytes(count)

    def end_connections(self) -> None:
        """The rank has died: its kernel closes what it had open."""
        for source in list(self._engine.sources):
            source.close()

    def close(self) -> None:
        """Nothing to give back: the world ends as a whole."""


def _rank_at(address: Address) -> int:
    """The rank whose address it is: it stands there."""
    return int(address.host.partition("/")[2])


def _bare(source: Source) -> VirtualSource:
    """The simulated source under any middleware."""
    while not isinstance(source, VirtualSource):
        source = source.inner  # type: ignore[attr-defined]
    return source
