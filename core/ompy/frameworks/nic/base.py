"""What every NIC is, whatever is sent through it: identity, link state, asynchronous events.

A component offers its devices once per rank. What a device can do is told by the class it derives
from: `DatagramNic` (`datagram.py`) has queue pairs for unreliable messages, `VerbsNic` (`verbs.py`)
reliable-connected ones with remote memory access, `FabricNic` (`fabric.py`) the objects of
libfabric. Other kinds of NIC get an interface of their own beside these, derived from `Nic` as
well, and whoever needs one asks for it by its class (`RankContext.find_nics`).

**Life.** A device is made closed. Whoever uses it calls `open` before anything else and `close` at
the end; its queues and registrations end with it.

**Events** come from the device, not in answer to a call: the link went down or came up again, or
the device is gone for good. They wait in the device until somebody reads them. A NIC reports what
the real device would and decides nothing: which path is dead is for the BTL to say.

Source: reference usnic.md 2 (devices, asynchronous events).
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from ompy.mca.component import ApiVersion, Component, NotAvailable

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.net.base import Interface

API: Final[ApiVersion] = (1, 0)  # arbitrary: the first version


class LinkState(Enum):
    """Whether the wire at a device's port carries anything."""

    UP = "up"
    DOWN = "down"


class EventKind(Enum):
    """What a device says unasked."""

    LINK_DOWN = "link down"
    LINK_UP = "link up"
    DEVICE_FATAL = "device fatal"
    SRQ_LIMIT_REACHED = "few buffers are left in a shared receive queue"
    CQ_ERROR = "a completion queue has overflowed"


class NicEvent(NamedTuple):
    """One asynchronous event.

    Attributes:
        kind: what happened.
        reason: in the device's words, for people.
        subject: the queue it is about, or None for the device.
    """

    kind: EventKind
    reason: str
    subject: object = None


class NicError(Exception):
    """A device refuses or has failed; the text says what and why."""


class Identity(NamedTuple):
    """Which device it is.

    Attributes:
        name: of the device, unique on the host (`vic_0`).
        interface: name of the network interface behind it.
        address: its address, as the network has it.
        prefix: bits of the network part of the address.
        speed: of the link, Mbit/s; 0 when unknown.
        emulated: it is software only.
    """

    name: str
    interface: str
    address: str
    prefix: int
    speed: int
    emulated: bool

    @classmethod
    def behind(cls, interface: Interface, name: str, *, emulated: bool) -> Identity:
        """That of a device behind a network interface."""
        own = interface.name, interface.address, interface.prefix, interface.bandwidth
        return cls(name, *own, emulated)


class Nic:
    """One device of one rank. All calls come with the rank's lock held.

    Attributes:
        identity: which it is.
        link: state of its port.
        gone: why it can never be used again; empty while it can.
        news: what `events` would return, for those who look often.
    """

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.link = LinkState.UP
        self.gone = ""
        self.news: deque[NicEvent] = deque()

    def open(self) -> None:
        """Take the device into use.

        Raises:
            NicError: it cannot be used.
        """

    def close(self) -> None:
        """Give everything back; harmless the second time."""

    def events(self) -> list[NicEvent]:
        """The events since the last call, oldest first."""
        found = list(self.news)
        self.news.clear()
        return found

    @property
    def eventful(self) -> bool:
        """Whether `events` would return any."""
        return bool(self.news)

    def report_link(self, state: LinkState, reason: str) -> None:
        """For the device: its port went up or down. A state it has already is no news."""
        if state is self.link or self.gone:
            return
        self.link = state
        kind = EventKind.LINK_UP if state is LinkState.UP else EventKind.LINK_DOWN
        self.news.append(NicEvent(kind, reason))

    def report(self, kind: EventKind, reason: str, subject: object = None) -> None:
        """For the device: something happened that changes neither link nor device."""
        self.news.append(NicEvent(kind, reason, subject))

    def report_fatal(self, reason: str) -> None:
        """For the device: it is gone, and stays so."""
        if not self.gone:
            self.gone = reason
            self.link = LinkState.DOWN
            self.news.append(NicEvent(EventKind.DEVICE_FATAL, reason))


class NicComponent(Component):
    """Base of nic components.

    Attributes:
        kinds: interfaces its devices have; whoever needs another one does not open it.
    """

    framework: ClassVar[str] = "nic"
    kinds: ClassVar[tuple[type[Nic], ...]] = (Nic,)

    def devices(self, context: RankContext) -> list[Nic]:
        """The devices this rank may use, none of them open; by interface, in the host's order.

        Raises:
            NotAvailable: there is none; the text says why.
        """
        raise NotImplementedError


def interfaces_for(context: RankContext) -> list[Interface]:
    """The interfaces emulated devices are made of, in the host's order.

    Loopback alone when the whole job is on this host, else all others.

    Raises:
        NotAvailable: there is none.
    """
    one_host = context.one_host
    interfaces = context.network.interfaces()
    wanted = [other for other in interfaces if other.loopback is one_host]
    if not wanted and one_host:
        wanted = interfaces  # a virtual world has no loopback interface
    if not wanted:
        raise NotAvailable("this host has no network interface for it")
    return wanted
