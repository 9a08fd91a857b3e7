"""The device: identity, what it has made, its packets and its timers.

It works when one of its completion queues is polled, and when work is posted.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

from ompy.engine.timers import Timer
from ompy.frameworks.nic.base import Identity, LinkState, NicError
from ompy.frameworks.nic.clock import DeviceClock
from ompy.frameworks.nic.clock_parameters import timed
from ompy.frameworks.nic.stations import Stations
from ompy.frameworks.nic.verbs import (
    CompletionQueue,
    Destination,
    ProtectionDomain,
    VerbsNic,
)
from ompy.frameworks.paths import MS, PathWatch
from ompy.net.base import Address, DeviceGone, Interface, LinkError
from ompy.net.datagram_seal import SEAL_SIZE, DatagramSeal
from ompy.net.replay import Taken

from ompy_components.nic.hca import headers
from ompy_components.nic.hca.completions import HcaCompletionQueue
from ompy_components.nic.hca.domain import HcaDomain
from ompy_components.nic.hca.doubts import Doubts
from ompy_components.nic.hca.headers import OVERHEAD, Answer, BadPacket, Operands, Packet, Remote
from ompy_components.nic.hca.memory import Regions
from ompy_components.nic.hca.names import lid_of, rank_of, subnet_of
from ompy_components.nic.hca.port import Port
from ompy_components.nic.hca.timing import US
from ompy_components.nic.hca.timings import TIMINGS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy.frameworks.context import RankContext
    from ompy.mca.parameter import Values

    from ompy_components.nic.hca.queue_pair import HcaQueuePair

NAME: Final = b"nic.hca"
_LID: Final = Struct("<H")  # names a device in seals
MTU_MAX: Final = 4096  # bytes; InfiniBand specification 1, reference: the largest path MTU
MTU_UNKNOWN: Final = 1500  # bytes; reference usnic.md 3: what Ethernet has
DATAGRAM_HEADERS: Final = 28  # bytes; reference usnic.md 20: of IP and UDP
# arbitrary: runs of packets taken in one round, so that the other pollers get their turn
RUNS: Final = 4
WINDOW_BYTES: Final = 1 << 17  # arbitrary: about half of what a socket of Linux holds by default
WINDOW_LEAST: Final = 4  # packets; arbitrary: there has to be something behind one that is lost
WINDOW_MOST: Final = 64  # packets; arbitrary: going back sends all of them again
LOOK: Final = 100 * MS  # ns; arbitrary: between two looks whether the link is up again
NEVER: Final = 1 << 63  # ns; arbitrary: later than anything
COMPLETIONS_MAX: Final = (1 << 22) - 1  # entries; arbitrary: as a ConnectX-3 has
FIRST_NUMBER: Final = 2  # InfiniBand specification 1, 3.5.3: the first two are management's
LAST_NUMBER: Final = 0xFFFFFE  # reference openmpi.md 5: 24 bits, of which the last is multicast


class Hca(VerbsNic):
    """An emulated RDMA adapter behind one network interface.

    Attributes:
        network: of the rank.
        trace: of the rank.
        window: packets of one queue pair under way at most.
        reordering: ns that an early packet waits for those before it.
        port: its socket, while it is open.
        regions: its memory regions.
        doubts: peers that do not answer.
        pairs: queue pairs by number.
        queues: completion queues that are open.
        stations: what its work takes in simulated worlds.
        begins: when the device has what is being sent, ns.
    """

    port: Port

    def __init__(
        self, context: RankContext, index: int, interface: Interface, values: Values
    ) -> None:
        """Describe it.

        Args:
            context: of the rank.
            index: of the device among the rank's.
            interface: it is behind.
            values: of the component's parameters.
        """
        super().__init__(Identity.behind(interface, f"hca_{index}", emulated=True))
        self.network = context.network
        self.trace = context.trace
        self.lid = lid_of(context.rank, index, context.size)
        self._own = _LID.pack(self.lid)
        self.subnet = subnet_of(interface)
        self.mtu = values.mtu or _fitting(interface)
        self.depth_max = values.queue_depth
        self.inline_max = min(values.inline_size, self.mtu)
        self.queue_pairs_max = values.queue_pairs
        self.reads_max = values.max_reads
        self.window: int = values.window or _window(self.mtu)
        self.reordering: int = values.reordering * US
        self.regions = Regions(index)
        self.doubts = Doubts(self)
        self.pairs: dict[int, HcaQueuePair] = {}
        self.queues: set[HcaCompletionQueue] = set()
        self._context = context
        self._engine = context.engine
        self._seal = DatagramSeal(context.job_key, NAME, headers.SENDER, context.engine.now())
        clock = DeviceClock(context.engine, context.network, wanted=values.clock)
        self.stations = Stations(clock, timed(vars(values), TIMINGS))
        self.begins = 0
        self._is_open = False
        self._number = FIRST_NUMBER - 1
        self._owing: dict[HcaQueuePair, None] = {}
        self._timed: dict[HcaQueuePair, None] = {}
        self._stalled: dict[HcaQueuePair, None] = {}
        self._due = NEVER
        self._look_at = 0
        self._timer: Timer | None = None

    # -- life

    def open(self) -> None:
        """Bind the socket."""
        if self._is_open:
            return
        try:
            self.port = Port(self.network, self.identity.address, self._link, self.stations)
        except LinkError as problem:
            raise NicError(f"{self.identity.name}: {problem}") from problem
        self._is_open = True

    def close(self) -> None:
        """Say goodbye to the peers, and give everything back."""
        if not self._is_open:
            return
        for pair in list(self.pairs.values()):
            if pair.receiving and not self.gone:
                pair.send(headers.SILENT, 0, 0, None, (), asks=True)
            pair.close()
        self.port.flush(at_once=True)
        self._is_open = False
        self._note_refusals()
        self.doubts.close()
        self.regions.clear()
        self.queues.clear()
        if self._timer is not None:
            self._timer.cancel()
        self.port.close()

    def _note_refusals(self) -> None:
        """Say in the trace what was dropped: forged or damaged, repeated, too late to tell."""
        seal = self._seal
        counted = {"refused": seal.refused, "repeated": seal.repeated, "late": seal.late}
        if self.trace.active and any(counted.values()):
            self.trace.record("nic.hca", "DROPPED", device=self.identity.name, **counted)

    def usable(self) -> None:
        """Raise NicError unless it is open and there."""
        if self.gone:
            raise NicError(self.gone)
        if not self._is_open:
            raise NicError(f"{self.identity.name} is not open")

    def domain(self) -> ProtectionDomain:
        """A protection domain."""
        self.usable()
        return HcaDomain(self)

    def completion_queue(self, depth: int) -> CompletionQueue:
        """A completion queue."""
        self.usable()
        if not 0 < depth <= COMPLETIONS_MAX:
            raise NicError(
                f"{self.identity.name}: a completion queue has 1 to {COMPLETIONS_MAX} entries"
            )
        made = HcaCompletionQueue(self, depth)
        self.queues.add(made)
        return made

    def forget_queue(self, queue: HcaCompletionQueue) -> None:
        """A completion queue is closed."""
        self.queues.discard(queue)

    def next_number(self) -> int:
        """A number for a queue pair. Raises NicError when there are too many."""
        if len(self.pairs) >= self.queue_pairs_max:
            raise NicError(
                f"{self.identity.name}: it has {self.queue_pairs_max} queue pairs, none is left"
            )
        self._number += 1
        while self._number in self.pairs or self._number > LAST_NUMBER:
            self._number = self._number + 1 if self._number < LAST_NUMBER else FIRST_NUMBER
        return self._number

    def forget_pair(self, pair: HcaQueuePair) -> None:
        """A queue pair is closed."""
        del self.pairs[pair.number]
        for those in (self._owing, self._timed, self._stalled):
            those.pop(pair, None)

    # -- peers

    def introduce(self, there: Destination) -> int:
        """The other end of a connection: whose it is."""
        rank = rank_of(there.lid, self._context.size)
        self.network.introduce(rank, [Address(there.host, there.port)])
        return rank

    def departed(self, pair: HcaQueuePair) -> str:
        """Why the peer of a queue pair can no longer be reached; empty while it can."""
        return self._context.procs[pair.peer].departed

    def ask(self, pair: HcaQueuePair) -> PathWatch:
        """Have the path to the peer of a queue pair watched."""
        return self._context.paths.watch(
            self._context.procs[pair.peer],
            self.identity.address,
            pair.address.host,
            self.identity.interface,
            lambda: self._due_at(0),
            failover=self.failover,
        )

    # -- packets

    def send(
        self,
        to: Address,
        base: tuple[bool, int, int, int, int, int],
        opcode: int,
        extension: Remote | Operands | Answer | None,
        payload: Sequence[memoryview],
    ) -> None:
        """Put a packet into the port.

        Args:
            to: the peer's device.
            base: whether it asks for an ACK, the round, LID and number of the peer's queue pair,
                number of ours, and number of the packet.
            opcode: what it is.
            extension: what stands behind the base header.
            payload: what follows, piece by piece.
        """
        asks, round_, to_lid, to_pair, own_pair, sequence = base
        begin = headers.header_size(opcode)
        room = bytearray(begin + sum(map(len, payload)))
        headers.BASE.pack_into(
            room,
            SEAL_SIZE,
            opcode,
            asks,
            round_,
            to_lid,
            self.lid,
            to_pair,
            own_pair,
            sequence,
        )
        if extension is not None:
            headers.pack_extension(extension, opcode, room)
        for piece in payload:
            end = begin + len(piece)
            room[begin:end] = piece
            begin = end
        packet = memoryview(room)
        self._seal.close(packet, _LID.pack(to_lid))
        since = max(self.begins, self.stations.taken())
        self.port.put(packet, to, self.stations.sent(since, len(packet)))

    def say_silent(self, packet: Packet, to: Address) -> None:
        """Tell a requester that a real device would not answer it."""
        if packet.asks:
            base = (False, packet.round, packet.from_lid, packet.source, packet.to, packet.sequence)
            self.send(to, base, headers.SILENT, None, ())

    def _arrived(self, data: memoryview, sender: Address) -> None:
        self.stations.arrived(len(data))
        if self._seal.open(data, self._own) is not Taken.NEW:
            return
        try:
            packet = headers.parse(data)
        except BadPacket:
            return
        if packet.to_lid != self.lid:
            return
        pair = self.pairs.get(packet.to)
        if pair is not None:
            pair.take(packet, sender)
        elif packet.opcode in headers.REQUESTS:
            self.say_silent(packet, sender)

    def progress(self) -> None:
        """Take in what has arrived, send what can be sent, look at the timers."""
        # the answer may be among what waits in the socket: only who has read it all has waited
        if self._take() and self._engine.now() >= self._due:
            self._expire()
        if self._stalled and not self.port.blocked:
            stalled, self._stalled = self._stalled, {}
            for pair in stalled:
                if pair.sending:
                    pair.requester.transmit()
        owing, self._owing = self._owing, {}
        for pair in owing:
            if pair.receiving:
                pair.responder.acknowledge()
        self.port.flush()

    def _take(self) -> bool:
        """Take in some of what has arrived; true when that was all."""
        for _ in range(RUNS):
            arrived = False
            for data, sender in self.port.take():
                arrived = True
                self._arrived(data, sender)
            if not arrived:
                return True
        return False

    def pressing(self) -> bool:
        """Whether `progress` would find something to do."""
        if self.gone:
            return True
        if not self._is_open:
            return False
        if self._due <= self._engine.now():
            return True
        self._arm()
        return self.port.ready()

    def owe(self, pair: HcaQueuePair) -> None:
        """An ACK is to be sent at the end of this round."""
        self._owing[pair] = None

    def stall(self, pair: HcaQueuePair) -> None:
        """It goes on when the socket takes something again."""
        self._stalled[pair] = None

    # -- time

    def now(self) -> int:
        """Nanoseconds."""
        return self._engine.now()

    def watch(self, pair: HcaQueuePair) -> None:
        """The deadline of a queue pair is another one."""
        deadline = pair.deadline
        if deadline is None:
            self._timed.pop(pair, None)
            return
        self._timed[pair] = None
        self._due_at(deadline)

    def awake_at(self, when: int) -> None:
        """A completion can be read then."""
        self._due_at(when)

    def _due_at(self, at: int) -> None:
        if at < self._due:
            self._due = at
            self._arm()

    def _arm(self) -> None:
        """See that the rank is awake then."""
        timer = self._timer
        if self._due == NEVER or (timer and timer.pending and timer.deadline <= self._due):
            return
        if timer is not None:
            timer.cancel()
        delay = max(0, self._due - self._engine.now())
        self._timer = self._engine.call_later(delay, _nothing)

    def _expire(self) -> None:
        now = self._engine.now()
        self._due = NEVER
        for pair in list(self._timed):
            pair.expire(now)
            self.watch(pair)
        if self.link is LinkState.DOWN and not self.gone:
            if now >= self._look_at:
                self._look(now)
            self._due_at(self._look_at)

    # -- the link

    def _link(self, problem: LinkError | None) -> None:
        """The network has refused a packet, or has taken one again."""
        interface = self.identity.interface
        if isinstance(problem, DeviceGone):
            self.report_fatal(f"{interface}: {problem}")
            self.port.clear()
            self.doubts.close()
            self._timed.clear()
        elif problem is not None:
            self._down(str(problem))
        elif self._has_carrier():
            self.report_link(LinkState.UP, f"{interface} takes packets again")

    def suspect(self) -> None:
        """A packet was not answered: look whether that is our own cable. Not too often."""
        now = self._engine.now()
        if self.link is LinkState.UP and now >= self._look_at:
            self._look_at = now + LOOK
            if not self._has_carrier():
                self._down("it has no carrier")

    def _down(self, why: str) -> None:
        if self.gone or self.link is LinkState.DOWN:
            return
        self.report_link(LinkState.DOWN, f"{self.identity.interface}: {why}")
        self._look_at = self._engine.now() + LOOK
        self._due_at(self._look_at)

    def _look(self, now: int) -> None:
        """Whether the link is up again."""
        self._look_at = now + LOOK
        if self.port.refused is not None:
            self.send(self.port.refused, (False, 0, 0, 0, 0, 0), headers.NOP, None, ())
        elif self._has_carrier():
            self.report_link(LinkState.UP, f"{self.identity.interface} has a carrier again")

    def _has_carrier(self) -> bool:
        """Whether the interface is one that is up, with something at the other end."""
        return any(
            interface.name == self.identity.interface for interface in self.network.interfaces()
        )


def _fitting(interface: Interface) -> int:
    if interface.loopback:
        return MTU_MAX
    return min(MTU_MAX, (interface.mtu or MTU_UNKNOWN) - DATAGRAM_HEADERS - OVERHEAD)


def _window(mtu: int) -> int:
    return max(WINDOW_LEAST, min(WINDOW_MOST, WINDOW_BYTES // mtu))


def _nothing() -> None:
    """The rank is awake: whoever polls a completion queue makes the device look."""
