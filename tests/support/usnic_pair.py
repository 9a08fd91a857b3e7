"""Two reliability machines of usnic on a simulated wire: no sockets, no engine, one list of events.

Every transmission has a number, 0, 1, ..., in the order they are made; faults are given by it. What
the seal drops because it was here before goes to the machine all the same, unless the wire is to be
as a module has it: the machine takes nothing twice by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush
from itertools import count
from random import Random

from ompy_components.btl.usnic.headers import (
    ACK,
    FRAG,
    GAPS_MAX,
    HEADER_SIZE,
    SEAL_SIZE,
    BadPacket,
    Header,
    pack_into,
    parse_packet,
)
from ompy_components.btl.usnic.reliability.limits import Limits
from ompy_components.btl.usnic.reliability.machine import PathVerdict, Reliability
from ompy_components.btl.usnic.reliability.receive_window import Arrival
from ompy_components.btl.usnic.reliability.segments import ResendList, SendSegment
from ompy_components.btl.usnic.seal import Replayed, Seal, recipient
from ompy_components.btl.usnic.statistics import Statistics

US = 1_000
MS = 1_000_000
LATENCY = 10 * US
LATE = 300 * US  # longer than a round trip and an ACK's pause, so that later packets overtake

Deliver = list[tuple[int, bytes]]  # when and what of one transmission reaches the other side
Fault = Callable[[bytes, int], Deliver]


def fine(packet: bytes, now: int) -> Deliver:
    return [(now + LATENCY, packet)]


def drop(packet: bytes, now: int) -> Deliver:
    return []


def duplicate(packet: bytes, now: int) -> Deliver:
    return [(now + LATENCY, packet), (now + 2 * LATENCY, packet)]


def delay(packet: bytes, now: int) -> Deliver:
    return [(now + LATE, packet)]


def corrupt(packet: bytes, now: int) -> Deliver:
    altered = bytearray(packet)
    altered[len(packet) // 2] ^= 0x10
    return [(now + LATENCY, bytes(altered))]


FAULTS: Mapping[str, Fault] = {
    "drop": drop,
    "duplicate": duplicate,
    "delay": delay,
    "corrupt": corrupt,
}


class Message(SendSegment):
    """A segment with a text."""

    def __init__(self, text: bytes) -> None:
        super().__init__()
        self.text = text


class Side:
    """One machine with what its owner would have: a NIC to send through, things to send.

    Attributes:
        got: texts delivered, in order.
        done: texts whose segments were acknowledged, in order.
        given_up: texts flushed when the connection failed.
    """

    def __init__(
        self, wire: Wire, rank: int, limits: Limits, first: int, expected: int, key: bytes
    ) -> None:
        self.wire = wire
        self.rank = rank
        self.statistics = Statistics()
        self.resends = ResendList()
        self.verdict = PathVerdict.UNKNOWN
        self.verdicts = 0
        self.seal = Seal(key, rank, 0)
        self.machine = Reliability(
            limits,
            self.statistics,
            self.resends,
            first=first,
            expected=expected,
            verdict=self._judge,
        )
        self.waiting: list[Message] = []
        self.got: list[bytes] = []
        self.done: list[bytes] = []
        self.given_up: list[bytes] = []
        self.stalls = 0

    def _judge(self) -> PathVerdict:
        self.verdicts += 1
        return self.verdict

    def send(self, text: bytes) -> None:
        self.waiting.append(Message(text))

    def progress(self, now: int) -> None:
        """What a module's send engine does: resends, new sends, ACKs that are due."""
        self.machine.expire(now)
        if self.machine.failure:
            flushed = [*self.machine.flush(), *self.waiting]
            self.given_up += [message.text for message in flushed if isinstance(message, Message)]
            self.waiting.clear()
            return
        while (segment := self.resends.first()) is not None:
            assert isinstance(segment, Message)
            self.machine.repost(segment, now)
            self.transmit(self.data(segment))
        while self.waiting and self.machine.window_open():
            message = self.waiting.pop(0)
            self.machine.post(message, now)
            self.transmit(self.data(message))
        self.stalls += bool(self.waiting)
        if self.machine.ack_needed and self.machine.ack_at <= now:
            acknowledged, behind = self.machine.take_whole_ack(GAPS_MAX, now)
            self.transmit((Header(self.rank, ACK, 0, acknowledged, len(behind)), behind))

    def data(self, message: Message) -> tuple[Header, bytes]:
        header = Header(
            self.rank,
            FRAG,
            message.sequence,
            self.machine.take_ack(),
            len(message.text),
        )
        return header, message.text

    def transmit(self, frame: tuple[Header, bytes]) -> None:
        header, text = frame
        packet = memoryview(bytearray(SEAL_SIZE + HEADER_SIZE + len(text)))
        pack_into(header, packet[SEAL_SIZE:])
        packet[SEAL_SIZE + HEADER_SIZE :] = text
        self.seal.close(packet, recipient(1 - self.rank, 0))
        self.statistics.num_total_sends += 1
        self.wire.carry(self, bytes(packet))

    def arrive(self, packet: bytes, now: int) -> None:
        try:
            body = self._opened(memoryview(packet))
            header = parse_packet(body)
        except BadPacket:
            return
        if header.acknowledged is not None:
            payload = bytes(body[header.size : header.size + header.length])
            behind = payload if header.kind == ACK else b""
            released = self.machine.acknowledge(header.acknowledged, now, behind)
            self.done += [message.text for message in released if isinstance(message, Message)]
        if header.kind != ACK and self.machine.receive(header.sequence, now) is Arrival.NEW:
            self.got.append(bytes(body[header.size : header.size + header.length]))

    def _opened(self, packet: memoryview) -> memoryview:
        try:
            return self.seal.open(packet)
        except Replayed:
            self.statistics.num_replayed_recvs += 1
            if self.wire.sealed:
                raise
            return packet[SEAL_SIZE:]

    def deadline(self) -> int | None:
        return self.machine.deadline()


class Wire:
    """Time, and what is under way.

    Attributes:
        sides: the two machines.
        now: ns.
        sent: transmissions so far.
        sealed: the machines never see what the seal drops.
        hit: faults that were delivered, by the number of the transmission.
    """

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        first: tuple[int, int] = (0, 0),
        faults: Mapping[int, Fault] | None = None,
        chance: Callable[[Random], Fault] | None = None,
        seed: int = 0,
        sealed: bool = False,
    ) -> None:
        limits = limits or Limits()
        key = b"k" * 32
        self.now = 0
        self.sent = 0
        self.sealed = sealed
        self.hit: dict[int, Fault] = {}
        self.sides = (
            Side(self, 0, limits, first[0], first[1], key),
            Side(self, 1, limits, first[1], first[0], key),
        )
        self.random = Random(seed)
        self._faults = faults or {}
        self._chance = chance
        self._under_way: list[tuple[int, int, Side, bytes]] = []
        self._order = count()

    def carry(self, sender: Side, packet: bytes) -> None:
        fault = self._faults.get(self.sent)
        if fault is None and self._chance is not None:
            fault = self._chance(self.random)
        if fault is not None and fault is not fine:
            self.hit[self.sent] = fault
        self.sent += 1
        for at, what in (fault or fine)(packet, self.now):
            heappush(self._under_way, (at, next(self._order), self.sides[1 - sender.rank], what))

    def step(self) -> bool:
        """Go to the next thing that happens; false when nothing will."""
        for side in self.sides:
            side.progress(self.now)
        times = [side.deadline() for side in self.sides]
        times += [self._under_way[0][0]] if self._under_way else []
        known = [at for at in times if at is not None]
        if not known:
            return False
        self.now = max(self.now, min(known))
        while self._under_way and self._under_way[0][0] <= self.now:
            _, _, target, packet = heappop(self._under_way)
            target.arrive(packet, self.now)
        return True

    def settle(self, until: int = 3_600_000 * MS) -> None:
        """Run until nothing is under way and nobody waits for anything."""
        while self.step():
            assert self.now < until, "no end"
            for side in self.sides:
                side.machine.check_invariants()
