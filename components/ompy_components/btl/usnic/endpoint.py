"""A peer as one usnic module reaches it."""

from __future__ import annotations

from collections import deque

from ompy.compiled import ccall, cclass
from ompy.frameworks.btl import BtlModule, Endpoint
from ompy.frameworks.nic.base import Identity
from ompy.frameworks.paths.path_keeper import KeptPath
from ompy.frameworks.proc import Proc
from ompy.net.base import Address

from ompy_components.btl.usnic.headers import FRAGMENT_MAX
from ompy_components.btl.usnic.packets import Fragment
from ompy_components.btl.usnic.put import Landing
from ompy_components.btl.usnic.reassembly import Reassembly
from ompy_components.btl.usnic.reliability.machine import Reliability


@cclass
class UsnicEndpoint(Endpoint):
    """Both directions of the traffic with one peer.

    Attributes:
        addresses: of the peer's priority and data channel.
        nic_identity: of the module's device.
        recipient: names the peer's module in MACs.
        first: number of the peer's first packet in any generation.
        path: whether it can be used, and in which generation it is.
        reliability: numbers, windows and timers.
        queue: fragments that are to be sent, those begun first.
        credits: packets that may be on send queues; fewer than none after resends.
        ready: it is on the module's list of endpoints that are ready to send.
        reassembly: large fragments on their way in.
        asked: puts that wait for the peer's answer, by id.
        landings: the peer's puts that are on their way in, by id.
    """

    _last_number: int
    addresses: tuple[Address, Address]
    asked: dict[int, Fragment]
    credits: int
    first: int
    landings: dict[int, Landing]
    nic_identity: Identity
    path: KeptPath
    queue: deque[Fragment]
    ready: bool
    reassembly: Reassembly
    recipient: bytes
    reliability: Reliability
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        module: BtlModule,
        identity: Identity,
        proc: Proc,
        addresses: tuple[Address, Address],
        recipient: bytes,
        first: int,
        send_credits: int,
    ) -> None:
        super().__init__(module, proc)
        self.addresses = addresses
        self.nic_identity = identity
        self.recipient = recipient
        self.first = first
        # the module makes `path` and `reliability`, which ask the endpoint back
        self.queue = deque()
        self.credits = send_credits
        self.ready = False
        self.reassembly = Reassembly()
        self.asked = {}
        self.landings = {}
        self._last_number = 0

    def describe(self) -> str:
        """Interface and addresses, as for `btl/tcp`."""
        own = self.nic_identity
        return f"usnic {own.interface} {own.address} - {self.addresses[0].host}"

    @ccall
    def ends(self) -> tuple[str, str, str]:
        """Interface and addresses."""
        own = self.nic_identity
        return own.interface, own.address, self.addresses[0].host

    @ccall
    def sendable(self) -> bool:
        """Ready to send: something to send, credits, and an open window.

        Source: seed usnic (sending).
        """
        return bool(self.queue) and self.credits > 0 and self.reliability.window_open()

    @ccall
    def idle(self) -> bool:
        """Everything accepted for the peer has been acknowledged, or never will be."""
        return self.drained() or not self.usable()

    @ccall
    def usable(self) -> bool:
        """Something may be sent."""
        return bool(self.path.up) and not self.proc.departed

    @ccall
    def drained(self) -> bool:
        """Everything accepted for the peer has been acknowledged, and every put answered."""
        return not (self.queue or self.reliability.outstanding or self.asked)

    def renew(self, reliability: Reliability) -> None:
        """Begin a generation: nothing of what had come in part will be whole."""
        self.reliability = reliability
        self.reassembly = Reassembly()
        self.landings.clear()

    @ccall
    def next_number(self) -> int:
        """The id of the next large fragment; never 0."""
        self._last_number = self._last_number % FRAGMENT_MAX + 1
        return self._last_number
