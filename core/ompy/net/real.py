"""The real network of one rank: sockets, anonymous shared memory, eventfd doorbells."""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from ompy.engine.real import RealEngine
from ompy.net.base import (
    Address,
    Datagram,
    Doorbell,
    Interface,
    Link,
    LinkError,
    LinkNews,
    Listener,
    Network,
    Readiness,
    Stream,
)
from ompy.net.memory.process_copy import ProcessCopy

if TYPE_CHECKING:
    from ompy.net.memory.regions import Regions

_ANY_PORT: Final = 9  # arbitrary: nothing is sent to it
_ANY_SOURCE: Final = 0  # the system chooses the port
_GET_ADDRESS: Final = 0x8915  # Linux SIOCGIFADDR
_GET_NETMASK: Final = 0x891B  # Linux SIOCGIFNETMASK
_GET_MTU: Final = 0x8921  # Linux SIOCGIFMTU


class DescriptorSource(Protocol):
    """Who gives the ranks of a host the same memory and each other's doorbells: the agent."""

    def memory(self, name: str, size: int) -> int:
        """A descriptor of zeroed anonymous memory, the same for the same name and size."""

    def doorbell(self, local_rank: int) -> int:
        """A descriptor of the eventfd of a rank of this host."""


class EventDoorbell(Doorbell):
    """An eventfd; it is closed with its last user."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        """Close it; harmless when it is."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    __del__ = close

    def ring(self) -> None:
        """Add one to the counter."""
        # a full counter means that the bell has been ringing for long
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(self._descriptor, 1)


class RealNetwork(Network):
    """What a process has."""

    def __init__(self, engine: RealEngine, local_rank: int, source: DescriptorSource) -> None:
        super().__init__()
        self._engine = engine
        self._source = source
        self._segments: dict[str, mmap.mmap] = {}
        self._bells: dict[int, EventDoorbell] = {}
        self._local_rank = local_rank
        self._own_bell: int | None = None
        self._regions: Regions | None = None
        self._copy: ProcessCopy | None = None  # made once

    def interfaces(self) -> list[Interface]:
        """The IPv4 interfaces of this host (network namespace) that are up and have a carrier."""
        return host_interfaces()

    def in_network(self, address: str, network: str) -> bool:
        """Whether the network parts of both are equal (IPv4)."""
        from socket import inet_aton

        host, _, bits = network.partition("/")
        try:
            shift = 32 - int(bits)
            there = int.from_bytes(inet_aton(host)) >> shift
        except (OSError, ValueError):
            raise LinkError(f"{network} is not a network such as 10.1.0.0/16") from None
        return int.from_bytes(inet_aton(address)) >> shift == there

    def leads_to(self, interface: Interface, host: str) -> bool:
        """Whether the kernel would send to `host` from the interface's address."""
        import socket

        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect((host, _ANY_PORT))
            except OSError:  # no way there at all
                return False
            found: str = probe.getsockname()[0]
        return found == interface.address

    def answers(self, address: Address, source: str, timeout_ms: int) -> bool:
        """Connect, and close at once."""
        import socket

        try:
            socket.create_connection(address, timeout_ms / 1000, (source, _ANY_SOURCE)).close()
        except OSError:  # refused, no way there, or no answer in time
            return False
        return True

    def listen(
        self, host: str, ports: Iterable[int] = (0,), *, link: Link | None = None
    ) -> Listener:
        """Listen for TCP connections."""
        from ompy.net import sockets

        return sockets.listen_tcp(host, ports, self._wrap_stream)

    def connect(self, address: Address, source: str = "", *, link: Link | None = None) -> Stream:
        """Begin a TCP connection."""
        from ompy.net import sockets

        return self._wrap_stream(sockets.connect_tcp(address, source), address)

    def datagram(self, host: str, port: int = 0, *, link: Link | None = None) -> Datagram:
        """A UDP socket."""
        from ompy.net import sockets

        return self._wrap_datagram(sockets.bind_udp(host, port))

    def link_news(self, interface: str) -> LinkNews | None:
        """What netlink says."""
        from ompy.net.link_news import KernelLinkNews

        try:
            return KernelLinkNews(interface)
        except LinkError:
            return None

    def watch(self, descriptor: int) -> None:
        """Beside our own poll set: it may be one itself."""
        self._engine.wakeup.add_apart(descriptor)

    def unwatch(self, descriptor: int) -> None:
        """No longer."""
        self._engine.wakeup.remove_apart(descriptor)

    def readiness(self) -> Readiness:
        """A poll set that wakes this rank."""
        from ompy.net.sockets import SocketReadiness

        return SocketReadiness(self._engine.wakeup)

    def segment(self, name: str, size: int) -> memoryview:
        """Map anonymous memory that the agent holds."""
        if name not in self._segments:
            descriptor = self._source.memory(name, size)
            try:
                self._segments[name] = mmap.mmap(descriptor, size)
            except (OSError, ValueError) as problem:
                raise LinkError(f"cannot map segment {name} of {size} bytes: {problem}") from None
            finally:
                os.close(descriptor)
        return memoryview(self._segments[name])

    def release_segment(self, segment: str, local_ranks: Iterable[int]) -> None:
        """Each goes with its last user."""
        self._segments.pop(segment, None)
        for local_rank in local_ranks:
            self._bells.pop(local_rank, None)

    def region(self, size: int) -> memoryview:
        """An anonymous memory file."""
        return self._of_regions().allocate(size)

    def release_region(self, address: int, *, pages: bool = True) -> None:
        """Free it."""
        if self._regions is not None:
            self._regions.release(address, pages=pages)

    def memory_size(self) -> int:
        """What the kernel says."""
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")

    def _of_regions(self) -> Regions:
        if self._regions is None:
            from ompy.net.memory.regions import (
                Regions,  # late: with ctypes, only where it is needed
            )

            self._regions = Regions()
        return self._regions

    def doorbell(self, local_rank: int) -> Doorbell:
        """The eventfd of a rank here; asking for one's own arms it as a wake-up."""
        if local_rank not in self._bells:
            descriptor = self._source.doorbell(local_rank)
            self._bells[local_rank] = EventDoorbell(descriptor)
            if local_rank == self._local_rank:
                self._own_bell = descriptor
                self._engine.wakeup.watch_descriptor(descriptor, self._silence)
        return self._bells[local_rank]

    def forget_doorbells(self) -> None:
        """Who gives them is another now: those from before ring for nobody."""
        if self._own_bell is not None:
            self._engine.wakeup.remove(self._own_bell)
            self._own_bell = None
        self._bells.clear()

    def process_copy(self) -> ProcessCopy | None:
        """The kernel's copy, or None where it has none."""
        from ompy.net.memory.kernel_copy import KernelCopy

        if self._copy is None:
            try:
                self._copy = KernelCopy(self._of_regions())
            except LinkError:
                return None
        return self._copy

    def entropy(self, count: int) -> bytes:
        """Bytes of the kernel's random generator."""
        return os.urandom(count)

    def close(self) -> None:
        """Close doorbells; memory goes when the last view of it does."""
        if self._own_bell is not None:
            self._engine.wakeup.remove(self._own_bell)
            self._own_bell = None
        for bell in self._bells.values():
            bell.close()
        self._bells.clear()
        self._segments.clear()
        if self._regions is not None:
            self._regions.close()

    def _silence(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._own_bell or 0)


def host_interfaces() -> list[Interface]:
    """The IPv4 interfaces of this host (network namespace) that are up and have a carrier."""
    import socket

    from ompy.net.carrier import interface_value, is_running

    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            address = interface_value(probe, name, _GET_ADDRESS)
            mask = interface_value(probe, name, _GET_NETMASK)
            if address is None or mask is None or not is_running(name):
                continue  # no IPv4 address, or no cable
            prefix = int.from_bytes(mask).bit_count()
            text = socket.inet_ntoa(address)
            mtu = int.from_bytes(interface_value(probe, name, _GET_MTU, 16) or b"", sys.byteorder)
            found.append(Interface(name, text, prefix, text.startswith("127."), mtu=mtu))
    return found
