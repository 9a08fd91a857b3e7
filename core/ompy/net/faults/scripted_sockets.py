"""Sockets and connections under a fault script: they ask `ScriptedFaults` about each packet."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ompy.net.base import Address, Datagram, LinkError, Stream
from ompy.net.faults.fault_rules import NEVER
from ompy.net.faults.flows import PASSED, UNKNOWN, Flow
from ompy.net.faults.wrapped import WrappedStream

if TYPE_CHECKING:
    from ompy.net.faults.scripted import ScriptedFaults

PUSH_PAUSE: Final = 100_000  # ns; arbitrary: between attempts to hand on what was held


class ScriptedDatagram(Datagram):
    """A datagram socket under a script.

    Attributes:
        inner: the socket it wraps.
    """

    __slots__ = ("_faults", "_flows", "_rail", "address", "inner")

    def __init__(self, faults: ScriptedFaults, inner: Datagram, rail: str) -> None:
        self._faults = faults
        self._rail = rail
        self._flows: dict[Address, Flow] = {}
        self.inner = inner
        self.address = inner.address

    def send(self, packet: memoryview, address: Address) -> bool:
        """Send as the script has it. The sender's own memory stays as it is."""
        faults = self._faults
        flow = self._flows.get(address)
        if flow is None:
            flow = faults.flow(faults.receiver_of(address), self._rail)
            if flow.receiver != UNKNOWN:
                self._flows[address] = flow
        outcome = faults.judge(flow, (packet,), len(packet), ordered=False)
        if outcome is PASSED:
            return self.inner.send(packet, address)
        for after, copy in outcome.copies:
            if after:
                data = bytes(packet) if copy is None else copy
                faults.engine.call_later(after, _Late(self.inner, data, address))
            else:
                self.inner.send(packet if copy is None else memoryview(copy), address)
        return True

    def receive_into(self, view: memoryview) -> tuple[int, Address] | None:
        """What the inner socket has, but for what comes in while the link is down."""
        while True:
            found = self.inner.receive_into(view)
            if found is None or not self._faults.discards(self._rail, found[0]):
                return found

    def overrun(self) -> int:
        """As the socket below."""
        return self.inner.overrun()

    def close(self) -> None:
        """Close the inner socket; what is held is lost."""
        self.inner.close()


class _Late:
    """Sends a packet that was held."""

    __slots__ = ("_address", "_data", "_inner")

    def __init__(self, inner: Datagram, data: bytes, address: Address) -> None:
        self._inner = inner
        self._data = data
        self._address = address

    def __call__(self) -> None:
        with suppress(LinkError):  # the socket has been closed meanwhile: the packet is lost
            self._inner.send(memoryview(self._data), self._address)


class ScriptedStream(WrappedStream):
    """A connection under a script.

    Attributes:
        flow: what this end sends.
        broken: why every use fails; empty while it works.
    """

    __slots__ = ("_faults", "_gives_up_at", "_held", "broken", "flow")

    def __init__(self, faults: ScriptedFaults, inner: Stream, receiver: int, rail: str) -> None:
        self._faults = faults
        self._held: deque[tuple[int, bytes]] = deque()
        self._gives_up_at = NEVER
        self.flow = faults.flow(receiver, rail)
        super().__init__(inner)
        self.broken = ""

    def belongs_to(self, rank: int) -> None:
        """From now on it is known who is at the other end."""
        self.flow = self._faults.flow(rank, self.flow.rail)
        self.inner.belongs_to(rank)

    def abandon(self) -> None:
        """Nothing that is held goes out any more; the rest is the stream's below."""
        self._held.clear()
        self.inner.abandon()

    def unacknowledged(self) -> int:
        """As the stream below, and what is held."""
        return self.inner.unacknowledged() + sum(len(data) for _, data in self._held)

    def send(self, pieces: Sequence[memoryview]) -> int:
        """Send as the script has it: now, or held until its time has come."""
        self._check()
        size = sum(len(piece) for piece in pieces)
        if not size:
            return self.inner.send(pieces)
        try:
            outcome = self._faults.judge(self.flow, pieces, size, ordered=True)
        except LinkError as problem:
            if not self.broken:
                self.fail(str(problem))
            raise
        if outcome is PASSED and not self._held:
            taken = self.inner.send(pieces)
            if taken < size:
                self._faults.take_back(self.flow, size - taken, whole=not taken)
            return taken
        now = self._faults.engine.now()
        if outcome.hole != NEVER and self._gives_up_at == NEVER:
            self._gives_up_at = now + outcome.hole
            self._faults.engine.call_later(outcome.hole, self._give_up)
        due = max(now + outcome.hold, self._held[-1][0] if self._held else 0)
        altered = next((copy for _, copy in outcome.copies if copy is not None), None)
        self._held.append((due, b"".join(pieces) if altered is None else altered))
        self._faults.engine.call_later(max(1, due - now), self.push)
        return size

    def receive_into(self, view: memoryview) -> int:
        """What has arrived, until the connection is broken."""
        self._check()
        return self.inner.receive_into(view)

    def close(self) -> None:
        """Close the inner stream; what is held goes out at once, or is lost in a black hole."""
        if self._held and not self.broken and not self._faults.holed(self.flow):
            with suppress(LinkError):
                self.inner.send([memoryview(data) for _, data in self._held])
        self._held.clear()
        self._faults.forget(self)
        self.inner.close()

    def fail(self, why: str) -> None:
        """Break the connection: it is ready from now on, and every use raises LinkError."""
        self.broken = why
        self._held.clear()
        self.inner.fail(why)

    def push(self) -> None:
        """Hand on what is held and due, in order, as the inner stream takes it."""
        now = self._faults.engine.now()
        while self._held and self._held[0][0] <= now and not self._faults.holed(self.flow):
            due, data = self._held[0]
            try:
                taken = self.inner.send([memoryview(data)])
            except LinkError:
                return  # the module finds out in its next use
            if taken < len(data):
                self._held[0] = (due, data[taken:])
                self._faults.engine.call_later(PUSH_PAUSE, self.push)
                return
            self._held.popleft()
            self._gives_up_at = NEVER

    def _give_up(self) -> None:
        late = NEVER != self._gives_up_at <= self._faults.engine.now()
        if self._held and late and not self.broken:
            self.fail("connection timed out")

    def _check(self) -> None:
        if self.broken:
            raise LinkError(self.broken)
