"""The net contract: what carries bytes between ranks, in the real world and in the virtual one.

Nothing here blocks. A rank's `Network` is its only way out; components never open a socket
themselves. Middleware wraps every stream and datagram socket as it is made, in both worlds:
that is where faults are injected, counted and traced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.net.faults.work import UNTOUCHED, Work
from ompy.net.totals import NOTHING, Totals

if TYPE_CHECKING:
    from ompy.net.memory.process_copy import ProcessCopy

WOULD_BLOCK: Final = -1
RUN_MAX: Final = 65_536  # Linux: more bytes than the kernel merges into one read
RUN_PACKETS: Final = 64  # Linux: UDP_MAX_SEGMENTS, packets in one run


class Address(NamedTuple):
    """Where a listener or a datagram socket is reached."""

    host: str
    port: int


class LinkError(Exception):
    """A stream or datagram socket failed; what it carried may or may not have arrived."""


class DeviceGone(LinkError):
    """The device under a socket has gone, and will not come back."""


class Interface(NamedTuple):
    """One network interface of a host.

    Attributes:
        name: as the system calls it.
        address: its address, as `Network.listen` takes it.
        prefix: bits of the network part of the address.
        loopback: true when it leads nowhere else.
        bandwidth: Mbit/s, 0 when unknown (reference openmpi.md 3.13: BTLs count in Mbit/s).
        mtu: bytes of its largest packet, IP header included; 0 when unknown.
    """

    name: str
    address: str
    prefix: int
    loopback: bool
    bandwidth: int = 0
    mtu: int = 0


class Link(NamedTuple):
    """The link of an emulated device, which in the virtual world takes the place of a rail's.

    Attributes:
        latency: ns from end to end.
        bandwidth: Mbit/s.
        buffer, per_packet: of the receiver's port: bytes that wait at most, least ns of a packet.
    """

    latency: int
    bandwidth: int
    buffer: int = 0
    per_packet: int = 0


class Source:
    """Something that can become ready: stream, listener, datagram socket.

    Middleware may hold on to one that its user has closed, as a fault does that sends a packet
    late. Sending and receiving then raise `LinkError`, there is nothing to accept, breaking it
    changes nothing, and no readiness reports it.
    """

    __slots__ = ()

    def close(self) -> None:
        """Give it back; harmless when closed already."""
        raise NotImplementedError

    def carries(self, protocol: str) -> None:
        """Say what goes over it, as the component that speaks so is called: `btl.tcp`.

        For who captures packets. Called before anything is sent.
        """
        inner = getattr(self, "inner", None)
        if inner is not None:
            inner.carries(protocol)


class Stream(Source):
    """A connection: bytes in order, or an error."""

    __slots__ = ()

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Hand over as many bytes of `pieces`, in order, as the other side has room for.

        Returns:
            Bytes taken; 0 when there is no room now or the connection is still being made.

        Raises:
            LinkError: the connection is broken or was refused.
        """
        raise NotImplementedError

    def receive_into(self, view: memoryview) -> int:
        """Take bytes that have arrived.

        Returns:
            Bytes stored in `view`; 0 when the peer has closed; `WOULD_BLOCK` when none are here.

        Raises:
            LinkError: the connection is broken or was refused.
        """
        raise NotImplementedError

    def fail(self, why: str) -> None:
        """Break this end: it is ready from now on, and sending raises LinkError.

        What has arrived can still be taken. Faults call this; a protocol calls `close`.
        """
        raise NotImplementedError

    def abandon(self) -> None:
        """Have `close` forget what the other host has not acknowledged, and reset the connection.

        Else the kernel goes on sending that for many minutes, to a host it cannot reach.
        """

    def block_output(self) -> None:
        """Have nothing more go out by the interface: there is no cable, and news of it is lost.

        What is offered to an interface without a carrier has the kernel look for the neighbour in
        vain, and look again a second later only: by then the cable may long be back.
        """

    def sends_again(self) -> bool:
        """Whether the other host's kernel, whatever the process does, acknowledges nothing now."""
        return False

    def unacknowledged(self) -> int:
        """Bytes taken that the other host's kernel has not acknowledged; 0 where nobody knows."""
        return 0

    def totals(self) -> Totals:
        """What it has carried."""
        return NOTHING

    def hold_unsent(self, most: int) -> None:
        """Have `send` take nothing while the kernel has `most` bytes that it has not sent yet."""

    def ask_when_idle(self) -> bool:
        """Have the kernel find out by itself when the other host has gone, though nothing is sent.

        What it finds surfaces as a LinkError.

        Returns:
            Whether it does, and `sends_again` can tell; the virtual world has no such kernel.
        """
        return False

    def own_address(self) -> Address:
        """Where this end is, as the other one sees it; without a host where that is not known."""
        address: Address = getattr(self, "address", Address("", 0))
        return address

    def belongs_to(self, rank: int) -> None:
        """The owner knows by now which rank is at the other end. Faults that name ranks need it."""

    def holds(self) -> bool:
        """Whether bytes may be here already that a readiness set of the kernel knows nothing of."""
        return False


class Listener(Source):
    """Accepts streams at `address`."""

    __slots__ = ()

    address: Address

    def accept(self) -> Stream | None:
        """A stream that a peer opened, or None."""
        raise NotImplementedError


class Datagram(Source):
    """A datagram socket bound to `address`: whole packets or nothing, in any order."""

    __slots__ = ()

    address: Address

    def send(self, packet: memoryview, address: Address) -> bool:
        """Send one packet. False when there is no room now; true promises nothing."""
        raise NotImplementedError

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """One packet that has arrived, its size and sender, or None.

        A packet longer than `view` is cut to its length.
        """
        raise NotImplementedError

    def send_run(self, packets: Sequence[memoryview], address: Address) -> int:
        """Send packets of one size, of which the last may be shorter, to one address.

        By default one at a time, so that middleware sees each.

        Returns:
            How many were taken, the first ones; there was no room for the others.

        Raises:
            LinkError: the socket failed; none or some of them were sent.
        """
        for index, packet in enumerate(packets):
            if not self.send(packet, address):
                return index
        return len(packets)

    def receive_run_into(self, view: memoryview) -> tuple[int, int, Address] | None:
        """Packets of one size from one sender, one behind the other, or None.

        Once it has been called, `receive_into` may no longer be. `view` has `RUN_MAX` bytes.

        Returns:
            Bytes in all, bytes of each packet but the last, which may be shorter, and the sender.
        """
        found = self.receive_into(view)
        return None if found is None else (found[0], found[0], found[1])

    def overrun(self) -> int:
        """Packets for it that its device's port had no room for, as far as is known."""
        return 0


class LinkNews(Source):
    """Is readable when something has become of an interface's link."""

    __slots__ = ()

    def down(self) -> bool:
        """Take the news; whether the link is down now."""
        raise NotImplementedError


class Ready(NamedTuple):
    """A source that can be used now, with the owner it was added with."""

    owner: object
    readable: bool
    writable: bool


class Readiness:
    """A set of sources, asked all at once which of them are ready. Wakes a parked rank."""

    __slots__ = ()

    def add(self, source: Source, owner: object) -> None:
        """Watch `source` for reading; `poll` reports it with `owner`."""
        raise NotImplementedError

    def want_write(self, source: Source, *, wanted: bool) -> None:
        """Watch `source` for writing too, or no longer."""
        raise NotImplementedError

    def hold(self, source: Stream, *, held: bool) -> None:
        """`source` holds bytes, so it is ready for reading whatever the kernel says; or no longer.

        Harmless if it is unknown; one that `holds` when it is added is ready from then on.
        """
        raise NotImplementedError

    def remove(self, source: Source) -> None:
        """Forget `source`; call before closing it. Harmless if it is unknown."""
        raise NotImplementedError

    def poll(self) -> list[Ready]:
        """What is ready now."""
        raise NotImplementedError

    def close(self) -> None:
        """Forget everything."""
        raise NotImplementedError


class Doorbell:
    """Wakes one rank of this host that has said, in shared memory, that it sleeps."""

    __slots__ = ()

    def ring(self) -> None:
        """Wake it; ringing twice is ringing once."""
        raise NotImplementedError

    def ring_after(self, _delay: int) -> None:
        """Wake it when a device on a virtual clock says, in so many nanoseconds. Here at once."""
        self.ring()


class Middleware:
    """Wraps what a network makes. The base class passes everything through."""

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """The stream to use instead of `stream`."""
        return stream

    def datagram(self, datagram: Datagram) -> Datagram:
        """The datagram socket to use instead of `datagram`."""
        return datagram

    def blocks_sending(self, receiver: int, rail: str) -> bool:
        """Whether nothing that is sent to a rank over a rail gets there now, however small."""
        return False

    def blocks_receiving(self, rail: str) -> bool:
        """Whether nothing that comes in over a rail is heard now."""
        return False

    def work_outcome(self, receiver: int, rail: str, *, retries: bool) -> Work:
        """What becomes of work that is posted for a rank over a rail; see `Network.work`."""
        return UNTOUCHED


class Network:
    """One rank's way to the others. All calls come with the rank's lock held.

    Attributes:
        virtual: it is part of a virtual world: no device of this machine may be used beside it.
    """

    virtual = False

    def __init__(self) -> None:
        self._middleware: list[Middleware] = []
        self._ranks: dict[Address, int] = {}
        self._rails: dict[str, str] = {}

    def install(self, middleware: Middleware) -> None:
        """Wrap every stream and datagram socket made from now on; the last one is outermost."""
        self._middleware.append(middleware)

    def sending_blocked(self, receiver: int, rail: str) -> bool:
        """Whether some middleware swallows all that is sent to a rank over a rail."""
        return any(layer.blocks_sending(receiver, rail) for layer in self._middleware)

    def receiving_blocked(self, rail: str) -> bool:
        """Whether some middleware swallows all that comes in over a rail."""
        return any(layer.blocks_receiving(rail) for layer in self._middleware)

    def introduce(self, rank: int, addresses: Iterable[Address]) -> None:
        """Say which rank has these datagram sockets. Faults that name ranks need it."""
        for address in addresses:
            self._ranks[address] = rank

    def rank_at(self, address: Address) -> int:
        """The rank that has this address, as far as is known; -1 otherwise."""
        return self._ranks.get(address, -1)

    @property
    def disturbed(self) -> bool:
        """Whether there is any middleware."""
        return bool(self._middleware)

    def work(self, receiver: int, rail: str, *, retries: bool = False) -> Work:
        """For emulated NICs: what becomes of each piece of work posted for a rank; asked once.

        With `retries` the NIC's links send again by themselves, and nothing but work is struck.
        """
        for layer in self._middleware:
            struck = layer.work_outcome(receiver, rail, retries=retries)
            if struck is not UNTOUCHED:
                return struck
        return UNTOUCHED

    def interfaces(self) -> list[Interface]:
        """The host's interfaces, loopback ones included."""
        raise NotImplementedError

    def rail_to(self, host: str) -> str:
        """The interface with an address, or with it in its network; empty when there is none.

        What middleware calls a connection's rail, which knows no more than who is at its end. What
        has been found once holds, also when the interface goes.
        """
        known = self._rails.get(host)
        if known is None:
            known = ""
            for one in self.interfaces():
                if one.address == host or self.in_network(host, f"{one.address}/{one.prefix}"):
                    known = one.name
                    break
            self._rails[host] = known
        return known

    def in_network(self, address: str, network: str) -> bool:
        """Whether `address` is in `network`, which is written `address/bits`.

        Raises:
            LinkError: `network` is not written like that.
        """
        raise NotImplementedError

    def leads_to(self, interface: Interface, host: str) -> bool:
        """Whether packets to the address `host` would leave by that interface. Sends none."""
        return True

    def answers(self, address: Address, source: str, timeout_ms: int) -> bool:
        """Whether a connection from the address `source` is taken at `address`; waits for it.

        The kernel of the other host answers, whatever the process there does. In the virtual
        world there are no addresses that lead nowhere.
        """
        return True

    # What is made with a `link` sends over the link of an emulated device: in the virtual world its
    # times count where nobody has chosen those of the rail. A real network takes its own time.

    def listen(
        self, host: str, ports: Iterable[int] = (0,), *, link: Link | None = None
    ) -> Listener:
        """Listen at an interface's address, at the first of `ports` that is free; 0 is any.

        Raises:
            LinkError: no port could be had; the text says why.
        """
        raise NotImplementedError

    def connect(self, address: Address, source: str = "", *, link: Link | None = None) -> Stream:
        """Begin a connection, from the interface with address `source` if one is given.

        It is usable when it becomes writable; a refusal surfaces in its first use.
        """
        raise NotImplementedError

    def datagram(self, host: str, port: int = 0, *, link: Link | None = None) -> Datagram:
        """A datagram socket bound to an interface's address."""
        raise NotImplementedError

    def link_news(self, interface: str) -> LinkNews | None:
        """News of an interface's link, or None where the system has none.

        In the virtual world a link that goes down resets its connections itself.
        """

    def watch(self, descriptor: int) -> None:
        """Wake a parked rank when a library's descriptor becomes readable, too.

        The library closes it, after `unwatch`. One that is watched twice is unwatched twice.

        Raises:
            LinkError: this world has no descriptors.
        """
        raise LinkError("there are no descriptors here")

    def unwatch(self, descriptor: int) -> None:
        """Take back one `watch`; harmless if there is none."""

    def readiness(self) -> Readiness:
        """An empty set of sources."""
        raise NotImplementedError

    def segment(self, name: str, size: int) -> memoryview:
        """Zeroed memory shared by the ranks of this host that ask for the same name and size.

        It has no file name, and is gone when the job is.

        Raises:
            LinkError: it cannot be had, or another rank asked for another size.
        """
        raise NotImplementedError

    def region(self, size: int) -> memoryview:
        """Zeroed memory of this rank that the others of the host can map, see `ProcessCopy.map`.

        It stays until `release_region`, and is gone with the process however that ends.

        Raises:
            LinkError: there is none.
        """
        raise LinkError("there are no regions here")

    def release_region(self, address: int, *, pages: bool = True) -> None:
        """Free the region whose first byte has this virtual address; harmless if none has.

        Args:
            address: of it.
            pages: give its memory back at once, also from under the mappings of others; else it
                stays until the last of them has unmapped it.
        """

    def memory_size(self) -> int:
        """Bytes of memory this host has."""
        raise NotImplementedError

    def doorbell(self, local_rank: int) -> Doorbell:
        """The doorbell of a rank of this host."""
        raise NotImplementedError

    def release_segment(self, segment: str, local_ranks: Iterable[int]) -> None:
        """A segment and ranks' doorbells are not needed: their ranks have gone."""

    def process_copy(self) -> ProcessCopy | None:
        """Cross-process copy, or None where the system has no such thing."""
        raise NotImplementedError

    def entropy(self, count: int) -> bytes:
        """Random bytes nobody can guess (in the virtual world: drawn from the seed)."""
        raise NotImplementedError

    def close(self) -> None:
        """Give everything back."""
        raise NotImplementedError

    def _wrap_stream(self, stream: Stream, peer: Address) -> Stream:
        for layer in self._middleware:
            stream = layer.stream(stream, peer)
        return stream

    def _wrap_datagram(self, datagram: Datagram) -> Datagram:
        for layer in self._middleware:
            datagram = layer.datagram(datagram)
        return datagram
