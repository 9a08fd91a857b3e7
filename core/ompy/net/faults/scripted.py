"""Fault scripts at work: one middleware that does what the rules say, in both worlds.

A rule is about *flows*: from one rank to another over one rail. It acts where the flow begins, at
the sender; `in` and `both` are the senders' business too, who all have the whole script. So what
has arrived is never held back behind a socket that says it is readable, where a sleeping rank
would spin. The NIC's own faults (link down, NIC gone) act at the rank whose NIC it is, and what
comes in then is read and thrown away.

Each flow counts its packets from 1 on; on a connection a *packet* is what one write hands over.
Each rule draws from generators of its own, one for each flow that it is about and each thing that
is drawn: to take one rule away, or more packets of another flow, changes none of its draws.

**On a connection** the kernel hides what single packets suffer, and so it is here: a segment that
is dropped or damaged comes again after `RETRANSMISSION`, and all behind it waits; one that is
overtaken makes the others wait; a duplicate is thrown away by the receiver, so there is no such
fault. A black hole stops the bytes until it closes, or until the connection times out. A link that
goes down resets the connection.

**At a file** calls are struck: each rank counts those to all its files, for `short_write` and
`enospc` those that write.

**At a NIC whose links send again by themselves** it is work that is struck, not packets: it is held
up, or ends with an error.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Final

from ompy.net.base import Address, Datagram, DeviceGone, LinkError, Middleware, Network, Stream
from ompy.net.faults.fault_rules import (
    FORGED,
    HOLDING_FAULTS,
    LASTING_FAULTS,
    NEVER,
    NIC_FAULTS,
    STORAGE_FAULTS,
    WORK_FAULTS,
    FaultRule,
)
from ompy.net.faults.flows import PASSED, UNKNOWN, Flow, Injection, Outcome
from ompy.net.faults.outages import Outages
from ompy.net.faults.scripted_sockets import ScriptedDatagram, ScriptedStream
from ompy.net.faults.work import SHORT, STORAGE_RAILS, UNTOUCHED, WRITE, Work

if TYPE_CHECKING:
    from ompy.engine.base import Engine
    from ompy.trace.sink import Trace

RETRANSMISSION: Final = 200_000_000  # ns; Linux: TCP_RTO_MIN, until a lost segment comes again
SECOND: Final = 1_000_000_000  # ns; Linux counts so
NO_PACKET_FAULTS: Final = frozenset({*NIC_FAULTS, *WORK_FAULTS, *STORAGE_FAULTS})
DISK: Final = "disk"  # the rail of what is asked of files


class ScriptedFaults(Middleware):
    """The rules of a script, as far as they concern one rank.

    Attributes:
        delivered: how often each rule has struck at this rank.
        injections: which packets, while `record` is set.
        record: keep `injections`.
        on_delivered: called after each strike; the owner may want to tell somebody.
        outages: what lasts here.
        on_outage: called when a packet has set something lasting off.
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
        self.injections: list[Injection] = []
        self.record = False
        self.on_delivered: Callable[[], object] | None = None
        self.on_outage: Callable[[], object] | None = None
        self.engine = engine
        self._size = size
        self._network = network
        self._trace = trace
        self._began = engine.now()
        self.outages = Outages(rules, rank, self._began)
        self._here = [index for index, rule in enumerate(rules) if rule.sits_at(rank)]
        self._first = {rules[index].what: index for index in reversed(self._here)}
        self._names = _names(rules, seed)
        self._random: dict[tuple[int, Flow, str], Random] = {}
        self._flows: dict[tuple[int, str], Flow] = {}
        self._works: dict[tuple[int, str], Flow] = {}
        self._messages: dict[int, int] = {}  # begun, by rule
        self._left: dict[int, int] = {}  # bytes to the one that triggers, by rule
        self._streams: dict[ScriptedStream, None] = {}
        self._watch_links()

    # -- what the network makes

    def stream(self, stream: Stream, peer: Address) -> Stream:
        """Wrap a connection; one made while its link is down is broken at once."""
        rail = self._network.rail_to(peer.host)
        wrapped = ScriptedStream(self, stream, self._network.rank_at(peer), rail)
        self._streams[wrapped] = None
        self._reset(wrapped)
        return wrapped

    def datagram(self, datagram: Datagram) -> Datagram:
        """Wrap a socket."""
        return ScriptedDatagram(self, datagram, self._network.rail_to(datagram.address.host))

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
            if rule.what in NO_PACKET_FAULTS or (ordered and rule.what == "duplicate"):
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
            and self.outages.lasts(index, self.engine.now())
            for index in self._here
        )

    def discards(self, rail: str, size: int) -> bool:
        """Whether a packet that has come in is lost, the link being down."""
        for index in self._here:
            rule = self.rules[index]
            if rule.what in NIC_FAULTS and self.outages.down(index, rail, self.engine.now()):
                self.count(index, self.flow(UNKNOWN, rail), size)
                return True
        return False

    def blocks_sending(self, receiver: int, rail: str) -> bool:
        """Whether a black hole or the NIC swallows all that is sent to a rank over a rail."""
        return self.outages.blocks_sending(receiver, rail, self.engine.now())

    def blocks_receiving(self, rail: str) -> bool:
        """Whether the NIC of a rail is down."""
        return self.outages.blocks_receiving(rail, self.engine.now())

    def work_outcome(self, receiver: int, rail: str, *, retries: bool) -> Work:
        """What becomes of the next work for a rank over a rail; it is counted as a packet is."""
        if rail in STORAGE_RAILS:
            return self._storage_outcome(rail)
        flow = self._works.setdefault((receiver, rail), Flow(receiver, rail))
        flow.count += 1
        error = hold = 0
        if retries:
            try:
                self._refuse(flow, 0)
            except LinkError:
                error = errno.ENETDOWN
        for index in self._here:
            rule = self.rules[index]
            holds = retries and rule.what in HOLDING_FAULTS and not (rule.message or rule.above)
            if not (holds or rule.what in WORK_FAULTS) or not rule.concerns(
                self.rank, receiver, rail
            ):
                continue
            if self._strikes(index, rule, flow, 0) and not error:
                detail = rule.delay + self._draw(index, flow, rule.jitter) if holds else rule.error
                error, hold = (error, hold + detail) if holds else (detail, hold)
                self.count(index, flow, 0, detail)
        return Work(error, hold) if error or hold else UNTOUCHED

    def _storage_outcome(self, kind: str) -> Work:
        """What becomes of the next call to a file: rules count those that they are about."""
        struck = 0
        with self.engine.lock:  # a program's thread calls as it is
            for index in self._here:
                rule = self.rules[index]
                if rule.what not in STORAGE_FAULTS or (rule.what != "io_error" and kind != WRITE):
                    continue
                flow = self._works.setdefault((UNKNOWN, rule.what), Flow(UNKNOWN, DISK))
                flow.count += index == self._first[rule.what]
                if self._strikes(index, rule, flow, 0) and not struck:
                    struck = SHORT if rule.what == "short_write" else rule.error
                    self.count(index, flow, 0, struck)
        return Work(struck) if struck else UNTOUCHED

    def count(self, index: int, flow: Flow, size: int, detail: int = 0) -> None:
        """Say that a rule has struck a packet of a flow."""
        self.delivered[index] += 1
        what = self.rules[index].what
        if self.record:
            entry = (index, self.rank, flow.receiver, flow.rail, flow.count, detail)
            self.injections.append(Injection(*entry))
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
                fired = index in self.outages.fired
                if not fired and self._triggers(index, rule, flow, size):
                    self._fire(index)
                    self._reset_all()
            if self.outages.down(index, flow.rail, self.engine.now()):
                self.count(index, flow, size)
                raise self._problem(rule)

    def _strikes(self, index: int, rule: FaultRule, flow: Flow, size: int) -> bool:
        """Whether a rule strikes this packet; every draw it has to make is made here, once."""
        if rule.what in LASTING_FAULTS:
            if rule.triggered and index not in self.outages.fired:
                if not self._triggers(index, rule, flow, size):
                    return False
                self._fire(index)
                if rule.lasts != NEVER:
                    self.engine.call_later(rule.lasts, self._push_all)
            return self.outages.lasts(index, self.engine.now())
        if rule.times and self.delivered[index] >= rule.times:
            return False
        if rule.triggered and not self._triggers(index, rule, flow, size):
            return False
        drawn = rule.probability >= 1 or self._chance(index, flow).random() < rule.probability
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
                detail = self._bit(index, rule, flow, size)
                if ordered and rule.mode != FORGED:
                    hold += RETRANSMISSION  # its kernel finds it
                else:
                    copies = [(at, _altered(copy, packet, rule, detail)) for at, copy in copies]
            case "reorder" | "delay":
                detail = rule.delay + self._draw(index, flow, rule.jitter)
                copies = [(after + detail, copy) for after, copy in copies]
                hold += detail
            case _:
                detail = self._pace(index, rule, flow, size, ordered)
                copies = [(after + detail, copy) for after, copy in copies if detail >= 0]
                hold += detail
        self.count(index, flow, size, detail)
        return Outcome(copies, hold, hole)

    def _chance(self, index: int, flow: Flow, what: str = "whether") -> Random:
        """What a rule draws one thing from for the packets of one flow."""
        found = self._random.get((index, flow, what))
        if found is None:
            name = f"{self._names[index]}/{self.rank}/{flow.receiver}/{flow.rail}/{what}"
            found = self._random[index, flow, what] = Random(name)  # noqa: S311 - chance is the point
        return found

    def _draw(self, index: int, flow: Flow, most: int) -> int:
        return self._chance(index, flow, "delay").randint(0, most) if most else 0

    def _bit(self, index: int, rule: FaultRule, flow: Flow, size: int) -> int:
        bits = max(1, 8 * size)
        if rule.bit != NEVER:
            return rule.bit % bits
        return self._chance(index, flow, "bit").randrange(bits)

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

    def _fire(self, index: int) -> None:
        """A packet sets off what lasts."""
        self.outages.fired[index] = self._now()
        if self.on_outage is not None:
            self.on_outage()

    # -- the NIC

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
            if self.outages.down(index, stream.flow.rail, self.engine.now()):
                self.count(index, stream.flow, 0)
                stream.fail(f"connection reset: {self._problem(rule)}")

    def _push_all(self) -> None:
        for stream in list(self._streams):
            stream.push()


def _names(rules: Sequence[FaultRule], seed: int) -> list[str]:
    """What each rule's draws are made of: what it says, not where in the script it stands."""
    found: list[str] = []
    for rule in rules:
        said = f"{seed}/{rule._replace(origin='', text='')}"
        found.append(f"{said}/{sum(name.startswith(f'{said}/') for name in found)}")
    return found


def _altered(
    copy: bytes | None, packet: Sequence[memoryview], rule: FaultRule, detail: int
) -> bytes:
    altered = bytearray(b"".join(packet) if copy is None else copy)
    if altered:
        altered[detail // 8] ^= 1 << detail % 8 if rule.mode == "bit" else 0xFF
    return bytes(altered)
