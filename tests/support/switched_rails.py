"""Worlds of two ranks with two rails, of which one can be cut at any packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import ClassVar, Final

from ompy.conformance.btl.driver import Driver
from ompy.conformance.btl.fragment import Fragment
from ompy.frameworks.bml import BmlEndpoint, RailArray
from ompy.frameworks.bml import Rail as Path
from ompy.frameworks.btl import (
    ACCESS_ANY,
    NO_ORDER,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
    ErrorCallback,
)
from ompy.frameworks.proc import Proc
from ompy.net.base import Address, Datagram, LinkError
from ompy.net.faults.middleware import DatagramFault
from ompy.net.virtual.virtual_network import Rail

RAILS: Final = (Rail("first"), Rail("second"))


class Switch:
    """The state of one rail, for all ranks.

    Attributes:
        rail: its name.
        kind: what is done to it: `down` is told to who sends, `hole` is not.
        at: which of its packets is the first that does not get through; None: none.
        broken: now.
        victim: the only rank that is concerned; None: all.
        packets: that have been sent over it, or should have been.
        strikes: whether a packet of a rank is lost even where the rail works.
    """

    def __init__(
        self,
        rail: str = "first",
        kind: str = "hole",
        at: int | None = None,
        victim: int | None = None,
    ) -> None:
        self.rail = rail
        self.kind = kind
        self.at = at
        self.broken = False
        self.victim = victim
        self.packets = 0
        self.strikes: Callable[[int, bytes], bool] = lambda _rank, _packet: False


class RailFault(DatagramFault):
    """One rank's side of a `Switch`."""

    kind: ClassVar[str] = "rail"

    def __init__(self, driver: Driver, switch: Switch) -> None:
        super().__init__(driver.engine, driver.world.counter)
        self._rank = driver.rank
        self._switch = switch

    def blocks_sending(self, receiver: int, rail: str) -> bool:
        switch = self._switch
        concerned = switch.victim in (None, self._rank, receiver)
        return switch.broken and rail == switch.rail and concerned

    def transmit(self, inner: Datagram, packet: memoryview, address: Address) -> bool:
        switch = self._switch
        if not inner.address.host.startswith(f"{switch.rail}/"):
            return inner.send(packet, address)
        switch.packets += 1
        if switch.at is not None and switch.packets >= switch.at:
            switch.at, switch.broken = None, True
        receiver = int(address.host.partition("/")[2])
        if switch.broken and switch.victim in (None, self._rank, receiver):
            self.delivered(size=len(packet), to=address)
            if switch.kind == "down":
                raise LinkError("the network is down")
            return True
        if switch.strikes(self._rank, bytes(packet)):
            self.delivered(size=len(packet), to=address)
            return True
        return inner.send(packet, address)


def know_rails(driver: Driver) -> None:
    """What the BML would do: notices go over the rails it knows."""
    peer = BmlEndpoint(driver.context.procs[1 - driver.rank])
    peer.send = RailArray([Path(*found) for found in driver.rails(1 - driver.rank)])
    peer.proc.bml_endpoint = peer


class Errors(ErrorCallback):
    """What one rank's modules say of their paths; makes them fail over.

    Attributes:
        told: module's index, peer and flags; -1 for all peers.
        reasons: in words.
        back: what `sendi` took and came back: module's index, tag and bytes.
        mended: module's index and time.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.told: list[tuple[int, int, int]] = []
        self.reasons: list[str] = []
        self.back: list[tuple[int, int, bytes]] = []
        self.mended: list[tuple[int, int]] = []
        for module in driver.modules:
            assert module.begin_failover()
            module.register_error(self)

    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        peer = -1 if proc is None else proc.rank
        self.told.append((self._driver.modules.index(module), peer, flags))
        self.reasons.append(reason)
        self._driver.failed(module, flags, proc, reason)

    def returned(self, module: BtlModule, proc: Proc, tag: int, fragment: memoryview) -> None:
        index = self._driver.modules.index(module)
        assert any(told[0] == index and told[1] in (-1, proc.rank) for told in self.told), (
            "returned before the error"
        )
        self.back.append((index, tag, bytes(fragment)))

    def healed(self, module: BtlModule, proc: Proc) -> None:
        self.mended.append((self._driver.modules.index(module), self._driver.engine.now()))


class Transfers(CompletionCallback):
    """One rank's puts and gets over its first module."""

    def __init__(self, driver: Driver, size: int = 5000) -> None:
        self.driver = driver
        self.memory = bytearray(driver.data(size))
        self.before = bytes(self.memory)
        module, endpoint = driver.rails(driver.peers[0])[0]
        self.handle = module.register_mem(endpoint, memoryview(self.memory), ACCESS_ANY)
        self.statuses: list[tuple[str, int, bytearray]] = []
        self.open = 0
        self.written: list[bytes] = []

    def begin(self, kind: str, there: Transfers) -> None:
        """Move the whole memory to, or from, the peer's."""
        module, endpoint = self.driver.rails(self.driver.peers[0])[0]
        local = bytearray(self.driver.data(len(self.memory)))
        handle = module.register_mem(endpoint, memoryview(local), ACCESS_ANY)
        move = module.put if kind == "put" else module.get
        result = move(
            endpoint,
            memoryview(local),
            0,
            handle,
            bytes(there.handle),  # type: ignore[call-overload]
            0,
            NO_ORDER,
            self,
            (kind, local),
        )
        self.open += result >= 0

    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        self.open -= 1
        kind, local = descriptor.context  # type: ignore[misc]
        self.statuses.append((kind, status, local))


def delivered(driver: Driver) -> None:
    """What was completed well is at the peer, and nothing is there twice or altered."""
    for other in driver.world.drivers.values():
        here = Counter((item.tag, item.data) for item in driver.inbox)
        for fragment in other.sent:
            if fragment.target == driver.rank and fragment.good and not _immediate(fragment):
                assert here[fragment.tag, fragment.data], f"{fragment} is good and not here"
    driver.check_inbox(ordered=False, whole=False)


def taken_or_back(driver: Driver, errors: Errors) -> None:
    """What `sendi` of this rank took has arrived or came back, in the order it was sent."""
    taken = [(one.tag, one.data) for one in driver.sent if _immediate(one) and one.accepted]
    back = [(tag, data) for _, tag, data in errors.back]
    assert back == [one for one in taken if one in set(back)], "out of order, or twice"
    there = driver.world.drivers[driver.peers[0]]
    arrived = {(item.tag, item.data) for item in there.inbox}
    lost = [one for one in taken if one not in arrived and one not in set(back)]
    assert not lost, f"sendi took {len(lost)} that are nowhere"


def _immediate(fragment: Fragment) -> bool:
    return fragment.via == "sendi"
