"""Fault scripts at work: one middleware that does what the rules say, in both worlds.

A rule is about *flows*: from one rank to another over one rail. It acts where the flow begins, at
the sender; `in` and `both` are the senders' business too, who all have the whole script. So what
has arrived is never held back behind a socket that says it is readable, where a sleeping rank
would spin. The NIC's own faults (link down, NIC gone) act at the rank whose NIC it is, and what
comes in then is read and thrown away.

Each flow counts its packets from 1 on; on a connection a *packet* is what one write hands over.
Each rule draws from a generator of its own: to take one rule away changes no other's draws.

**On a connection** the kernel hides what single packets suffer, and so it is here: a segment that
is dropped or damaged comes again after `RETRANSMISSION`, and all behind it waits; one that is
overtaken makes the others wait; a duplicate is thrown away by the receiver, so there is no such
fault. A black hole stops the bytes until it closes, or until the connection times out. A link that
goes down resets the connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple

from ompy.net.base import Address, Datagram, DeviceGone, LinkError, Middleware, Network, Stream
from ompy.net.fault_rules import LASTING_FAULTS, NEVER, NIC_FAULTS, FaultRule

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.trace.sink import Trace

RETRANSMISSION: Final = 200_000_000  # ns; Linux: TCP_RTO_MIN, until a lost segment comes again
PUSH_PAUSE: Final = 100_000  # ns; arbitrary: between attempts to hand on what was held
SECOND: Final = 1_000_000_000  # ns; Linux counts so
UNKNOWN: Final = -1  # the rank behind an address nobody has introduced


class Strike(NamedTuple):
    """A packet that was struck: enough to strike the same one again.

    Attributes:
        rule: index in the script.
        sender: rank it came from.
        receiver: rank it went to, `UNKNOWN` when nobody knows.
        rail: it went over.
        nth: packet of its flow.
        detail: what was drawn: how long it was held, or which bit was turned.
    """

    rule: int
    sender: int
    receiver: int
    rail: str
    nth: int
    detail: int


class Flow:
    """What goes from this rank to another over one rail.

    Attributes:
        receiver: the other rank.
        rail: name of the interface.
        count: packets so far.
        free_at: when what is paced has left, by rule.
    """

    __slots__ = ("count", "free_at", "rail", "receiver")

    def __init__(self, receiver: int, rail: str) -> None:
        self.receiver = receiver
        self.rail = rail
        self.count = 0
        self.free_at: dict[int, int] = {}


class Outcome(NamedTuple):
    """What becomes of one packet.

    Attributes:
        copies: what is sent, and how many ns from now; none when it is lost.
        hold: for connections: how long it and what is behind it waits.
        hole: it falls into a black hole; for how long that holds a connection, `NEVER` for no hole.
    """

    copies: list[tuple[int, bytes | None]]
    hold: int = 0
    hole: int = NEVER


PASSED: Final = Outcome([(0, None)])


class ScriptedFaults(Middleware):
    """The rules of a script, as far as they concern one rank.

    Attributes:
        delivered: how often each rule has struck at this rank.
        strikes: which packets, while `record` is set.
        record: keep `strikes`.
        on_delivered: called after each strike; the owner may want to tell somebody.
    """

    def __init__(
        self,
        rules: Sequence[FaultRule],
        rank: int,
        size: int,
        *,
        engine: Engine,
        network: Network,
        trace: Trace,
        seed: int = 0,
    ) -> None:
        """Make the middleware of `rank`; it still has to be installed in its network.

        Args:
            rules: of the whole job.
            rank: whose.
            size: ranks of the job; the peers of a slow receiver share its rate.
            engine: of the rank.
            network: of the rank.
            trace: of the rank.
            seed: of the world, beside each rule's own.
        """
        self.rules = rules
        self.rank = rank
        self.delivered = [0] * len(rules)
        self.strikes: list[Strike] = []
        self.record = False
        self.on_delivered: Callable[[], object] | None = None
        self.engine = engine
        self._size = size
        self._network = network
        self._trace = trace
        self._began = engine.now()
        self._here = [index for index, rule in enumerate(rules) if rule.sits_at(rank)]
        self._random = {i: Random(f"{seed}/{rules[i].seed}/{i}/{rank}") for i in self._here}  # noqa: S311 - chance is the point
        self._flows: dict[tuple[int, str], Flow] = {}
        self._messages: dict[int, int] = {}  # begun, by rule
        self._left: dict[int, int] = {}  # bytes to the one that triggers, by rule
        self._fired: dict[int, int] = {}
        self._streams: dict[ScriptedStream, None] = {}
        self._rails: dict[str, str] = {}
        self._watch_links()

    # -- what the network makes

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """Wrap a connection; one made while its link is down is broken at once."""
        rail = self._rail_to(peer.host)
        wrapped = ScriptedStream(self, stream, self._network.rank_at(peer), rail)
        self._streams[wrapped] = None
        self._reset(wrapped)
        return wrapped

    def datagram(self, datagram: Datagram) -> Datagram:
        """Wrap a socket."""
        return ScriptedDatagram(self, datagram, self._rail_to(datagram.address.host))

    def forget(self, stream: ScriptedStream) -> None:
        """A connection has been closed."""
        self._streams.pop(stream, None)

    def receiver_of(self, address: Address) -> int:
        """The rank behind the address of a datagram socket, or `UNKNOWN`."""
        return self._network.rank_at(address)

    def flow(self, receiver: int, rail: str) -> Flow:
        """The flow to a rank over a rail."""
        found = self._flows.get((receiver, rail))
        if found is None:
            found = self._flows[receiver, rail] = Flow(receiver, rail)
        return found

    def _rail_to(self, host: str) -> str:
        """The interface with an address, or with it in its network; empty when there is none."""
        known = self._rails.get(host)
        if known is None:
            known = ""
            for interface in self._network.interfaces():
                if interface.address == host or self._network.in_network(
                    host, f"{interface.address}/{interface.prefix}"
                ):
                    known = interface.name
                    break
            self._rails[host] = known
        return known

    # -- messages, as the flight recorder sees them begin

    def message_begins(self, receiver: int) -> None:
        """This rank begins to send a message: rules that wait for the kth of them count."""
        for index in self._here:
            rule = self.rules[index]
            if not rule.message:
                continue
            if rule.what in NIC_FAULTS:
                meant = not rule.peers or receiver in rule.peers
            else:
                meant = rule._replace(rails=()).concerns(self.rank, receiver, "")
            if meant:
                self._messages[index] = self._messages.get(index, 0) + 1

    # -- packets

    def judge(
        self, flow: Flow, packet: Sequence[memoryview], size: int, *, ordered: bool
    ) -> Outcome:
        """What becomes of the next packet of a flow.

        Args:
            flow: the flow.
            packet: its bytes, in pieces.
            size: how many.
            ordered: it is part of a connection.

        Raises:
            LinkError: the NIC cannot send.
        """
        flow.count += 1
        self._refuse(flow, size)
        outcome = PASSED
        for index in self._here:
            rule = self.rules[index]
            if rule.what in NIC_FAULTS or (ordered and rule.what == "duplicate"):
                continue
            if rule.above and (ordered or size <= rule.above):
                continue
            if not rule.concerns(self.rank, flow.receiver, flow.rail):
                continue
            if self._strikes(index, rule, flow, size):
                outcome = self._apply(index, rule, flow, outcome, packet, size, ordered)
        return outcome

    def take_back(self, flow: Flow, size: int, *, whole: bool) -> None:
        """The kernel has not taken so many bytes of the last packet, or none: they come again."""
        flow.count -= whole
        for index, left in self._left.items():
            if left > 0:
                self._left[index] = left + size

    def holed(self, flow: Flow) -> bool:
        """Whether a black hole is open on a flow now."""
        return any(
            self.rules[index].what == "black_hole"
            and self.rules[index].concerns(self.rank, flow.receiver, flow.rail)
            and self._lasts(index, self.rules[index])
            for index in self._here
        )

    def discards(self, rail: str, size: int) -> bool:
        """Whether a packet that has come in is lost, the link being down."""
        for index in self._here:
            rule = self.rules[index]
            if rule.what in NIC_FAULTS and self._down(index, rule, rail):
                self.count(index, self.flow(UNKNOWN, rail), size)
                return True
        return False

    def count(self, index: int, flow: Flow, size: int, detail: int = 0) -> None:
        """Say that a rule has struck a packet of a flow."""
        self.delivered[index] += 1
        what = self.rules[index].what
        if self.record:
            entry = (index, self.rank, flow.receiver, flow.rail, flow.count, detail)
            self.strikes.append(Strike(*entry))
        if self._trace.active:
            where = {"to": flow.receiver, "rail": flow.rail, "nth": flow.count}
            self._trace.record("net.faults", what.upper(), rule=index, **where, size=size)
        if self.on_delivered is not None:
            self.on_delivered()

    def _refuse(self, flow: Flow, size: int) -> None:
        for index in self._here:
            rule = self.rules[index]
            if rule.what not in NIC_FAULTS:
                continue
            if rule.triggered and (not rule.rails or flow.rail in rule.rails):
                fired = index in self._fired
                if not fired and self._triggers(index, rule, flow, size):
                    self._fired[index] = self._now()
                    self._reset_all()
            if self._down(index, rule, flow.rail):
                self.count(index, flow, size)
                raise self._problem(rule)

    def _strikes(self, index: int, rule: FaultRule, flow: Flow, size: int) -> bool:
        """Whether a rule strikes this packet; every draw it has to make is made here, once."""
        if rule.what in LASTING_FAULTS:
            if rule.triggered and index not in self._fired:
                if not self._triggers(index, rule, flow, size):
                    return False
                self._fired[index] = self._now()
                if rule.lasts != NEVER:
                    self.engine.call_later(rule.lasts, self._push_all)
            return self._lasts(index, rule)
        if rule.times and self.delivered[index] >= rule.times:
            return False
        if rule.triggered and not self._triggers(index, rule, flow, size):
            return False
        drawn = rule.probability >= 1 or self._random[index].random() < rule.probability
        return drawn and self._in_window(rule)

    def _triggers(self, index: int, rule: FaultRule, flow: Flow, size: int) -> bool:
        if rule.nth:
            return flow.count in rule.nth
        if self._messages.get(index, 0) < rule.message:
            return False
        left = self._left.get(index, rule.byte)
        self._left[index] = left - size
        return 0 < left <= size

    def _apply(
        self,
        index: int,
        rule: FaultRule,
        flow: Flow,
        outcome: Outcome,
        packet: Sequence[memoryview],
        size: int,
        ordered: bool,
    ) -> Outcome:
        copies, hold, hole = outcome
        detail = 0
        match rule.what:
            case "black_hole":
                copies, hole = [], max(hole, rule.gives_up)
            case "drop":
                copies, hold = [], hold + RETRANSMISSION
            case "duplicate":
                copies = [*copies, *copies]
            case "corrupt":
                detail = self._bit(index, rule, size)
                copies = [(after, _altered(copy, packet, rule, detail)) for after, copy in copies]
                hold += RETRANSMISSION
            case "reorder" | "delay":
                detail = rule.delay + self._draw(index, rule.jitter)
                copies = [(after + detail, copy) for after, copy in copies]
                hold += detail
            case _:
                detail = self._pace(index, rule, flow, size, ordered)
                copies = [(after + detail, copy) for after, copy in copies if detail >= 0]
                hold += detail
        self.count(index, flow, size, detail)
        return Outcome(copies, hold, hole)

    def _draw(self, index: int, most: int) -> int:
        return self._random[index].randint(0, most) if most else 0

    def _bit(self, index: int, rule: FaultRule, size: int) -> int:
        bits = max(1, 8 * size)
        return rule.bit % bits if rule.bit != NEVER else self._random[index].randrange(bits)

    def _pace(self, index: int, rule: FaultRule, flow: Flow, size: int, ordered: bool) -> int:
        """Nanoseconds until a packet has left; -1 for a datagram that has no room to wait."""
        rate = rule.rate
        if rule.what == "slow_receiver":
            rate = max(1, rate // max(1, self._size - 1))
        now = self._now()
        free = max(now, flow.free_at.get(index, 0))
        if not ordered and (free - now) * rate > rule.buffer * 8 * SECOND:
            return -1
        flow.free_at[index] = free + size * 8 * SECOND // rate
        return flow.free_at[index] - now

    # -- time

    def _now(self) -> int:
        return self.engine.now() - self._began

    def _in_window(self, rule: FaultRule) -> bool:
        now = self._now()
        return rule.since <= now and (rule.until == NEVER or now < rule.until)

    def _lasts(self, index: int, rule: FaultRule) -> bool:
        """Whether what lasts does so now."""
        if not rule.triggered:
            return self._in_window(rule)
        begun = self._fired.get(index)
        return begun is not None and (rule.lasts == NEVER or self._now() < begun + rule.lasts)

    # -- the NIC

    def _down(self, index: int, rule: FaultRule, rail: str) -> bool:
        return (not rule.rails or rail in rule.rails) and self._lasts(index, rule)

    def _problem(self, rule: FaultRule) -> LinkError:
        if rule.what == "nic_gone":
            return DeviceGone("the device is gone")
        return LinkError("the network is down")

    def _watch_links(self) -> None:
        """Connections are reset when the link goes down, whether they are used then or not."""
        for index in self._here:
            rule = self.rules[index]
            if rule.what in NIC_FAULTS and not rule.triggered and rule.since:
                self.engine.call_later(rule.since, self._reset_all)
            elif rule.what == "black_hole" and rule.until != NEVER:
                self.engine.call_later(rule.until, self._push_all)

    def _reset_all(self) -> None:
        for stream in list(self._streams):
            self._reset(stream)

    def _reset(self, stream: ScriptedStream) -> None:
        for index in self._here:
            rule = self.rules[index]
            if rule.what not in NIC_FAULTS or stream.broken:
                continue
            if self._down(index, rule, stream.flow.rail):
                self.count(index, stream.flow, 0)
                stream.fail(f"connection reset: {self._problem(rule)}")

    def _push_all(self) -> None:
        for stream in list(self._streams):
            stream.push()


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


class ScriptedStream(Stream):
    """A connection under a script.

    Attributes:
        inner: the stream it wraps.
        flow: what this end sends.
        broken: why every use fails; empty while it works.
    """

    __slots__ = ("_faults", "_gives_up_at", "_held", "broken", "flow", "inner")

    def __init__(self, faults: ScriptedFaults, inner: Stream, receiver: int, rail: str) -> None:
        self._faults = faults
        self._held: deque[tuple[int, bytes]] = deque()
        self._gives_up_at = NEVER
        self.flow = faults.flow(receiver, rail)
        self.inner = inner
        self.broken = ""

    def belongs_to(self, rank: int) -> None:
        """From now on it is known who is at the other end."""
        self.flow = self._faults.flow(rank, self.flow.rail)

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
        self._held.append((due, b"".join(pieces)))
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


def _altered(
    copy: bytes | None, packet: Sequence[memoryview], rule: FaultRule, detail: int
) -> bytes:
    altered = bytearray(b"".join(packet) if copy is None else copy)
    if altered:
        altered[detail // 8] ^= 0xFF if rule.mode == "byte" else 1 << detail % 8
    return bytes(altered)
