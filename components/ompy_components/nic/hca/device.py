"""The device: identity, what it has made, its packets and its timers.

It works when one of its completion queues is polled, and when work is posted.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final

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
from ompy.frameworks.paths.path_watch import MS, PathWatch
from ompy.net.base import Address, DeviceGone, Interface, LinkError
from ompy.net.seals.datagram_seal import DatagramSeal
from ompy.net.seals.replay import Taken

from ompy_components.nic.hca import headers
from ompy_components.nic.hca.completions import HcaCompletionQueue
from ompy_components.nic.hca.domain import HcaDomain
from ompy_components.nic.hca.doubts import Doubts
from ompy_components.nic.hca.headers import OVERHEAD, BadPacket
from ompy_components.nic.hca.memory import Regions
from ompy_components.nic.hca.names import lid_of, rank_of, subnet_of
from ompy_components.nic.hca.pairs import QueuePairs
from ompy_components.nic.hca.port import Port
from ompy_components.nic.hca.resources import Resources
from ompy_components.nic.hca.schedule import Schedule
from ompy_components.nic.hca.sender import PacketSender
from ompy_components.nic.hca.timing import US
from ompy_components.nic.hca.timings import TIMINGS

if TYPE_CHECKING:
    from ompy.frameworks.context import RankContext
    from ompy.mca.parameter import Values

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
COMPLETIONS_MAX: Final = (1 << 22) - 1  # entries; arbitrary: as a ConnectX-3 has


class Hca(VerbsNic):
    """An emulated RDMA adapter behind one network interface.

    Attributes:
        network: of the rank.
        trace: of the rank.
        port: its socket, while it is open.
        resources: of its queue pairs, while it is open.
        sender: of its packets, while it is open.
        schedule: when there is something to do.
        regions: its memory regions.
        doubts: peers that do not answer.
        pairs: its queue pairs.
        queues: completion queues that are open.
        stations: what its work takes in simulated worlds.
    """

    port: Port
    resources: Resources
    sender: PacketSender

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
        self._limits = (
            self.mtu,
            values.window or _window(self.mtu),
            values.max_reads,
            values.reordering * US,
            self.depth_max,
            self.inline_max,
        )
        self.schedule = Schedule(context.engine)
        self.doubts = Doubts(self.departed, self.ask, self.suspect)
        self.pairs = QueuePairs(self.identity.name, self.queue_pairs_max)
        self.queues: set[CompletionQueue] = set()
        self._context = context
        self._engine = context.engine
        self._seal = DatagramSeal(context.job_key, NAME, headers.SENDER, context.engine.now())
        clock = DeviceClock(context.engine, context.network, wanted=values.clock)
        self.stations = Stations(clock, timed(vars(values), TIMINGS))
        self.regions = Regions(index, self.stations.deregistered)
        self._is_open = False
        self._look_at = 0

    # -- life

    def open(self) -> None:
        """Bind the socket."""
        if self._is_open:
            return
        try:
            self.port = Port(self.network, self.identity.address, self._link, self.stations)
        except LinkError as problem:
            raise NicError(f"{self.identity.name}: {problem}") from problem
        self.sender = PacketSender(self.lid, _LID, self._seal, self.port, self.stations)
        self.resources = Resources(
            self.identity.name,
            self.lid,
            self.network,
            self.trace,
            self.regions,
            self.schedule,
            self.port,
            self.sender,
            self.doubts,
            self.stations,
            *self._limits,
            self.usable,
            self.report,
            self._introduce,
        )
        self._is_open = True

    def close(self) -> None:
        """Send BYE to the peers, and give everything back."""
        if not self._is_open:
            return
        for pair in self.pairs:
            if pair.receiving and not self.gone:
                pair.send(headers.SILENT, 0, 0, None, (), asks=True)
            pair.close()
        self.port.flush(at_once=True)
        self._is_open = False
        self._note_refusals()
        self.doubts.close()
        self.regions.clear()
        self.queues.clear()
        self.schedule.close()
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
        return HcaDomain(self.resources, self.pairs, self.queues)

    def completion_queue(self, depth: int) -> CompletionQueue:
        """A completion queue."""
        self.usable()
        if not 0 < depth <= COMPLETIONS_MAX:
            raise NicError(
                f"{self.identity.name}: a completion queue has 1 to {COMPLETIONS_MAX} entries"
            )
        made = HcaCompletionQueue(self.resources, self, depth, self.queues.discard)
        self.queues.add(made)
        return made

    # -- peers

    def _introduce(self, there: Destination) -> int:
        """The other end of a connection: whose it is."""
        rank = rank_of(there.lid, self._context.size)
        self.network.introduce(rank, [Address(there.host, there.port)])
        return rank

    def departed(self, rank: int) -> str:
        """Why a rank can no longer be reached; empty while it can."""
        return self._context.procs[rank].departed

    def ask(self, rank: int, host: str) -> PathWatch:
        """Have the path to a rank watched, to the address of its device."""
        return self._context.paths.watch(
            self._context.procs[rank],
            self.identity.address,
            host,
            self.identity.interface,
            lambda: self.schedule.awake_at(0),
            failover=self.failover,
        )

    # -- packets

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
        pair = self.pairs.find(packet.to)
        if pair is not None:
            pair.take(packet, sender)
        elif packet.opcode in headers.REQUESTS:
            self.sender.say_silent(packet, sender)

    def progress(self) -> None:
        """Take in what has arrived, send what can be sent, look at the timers."""
        # the answer may be among what waits in the socket: only who has read it all has waited
        if self._take() and self.schedule.due:
            self._expire()
        self.schedule.go_on(blocked=self.port.blocked)
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
        if self.schedule.due:
            return True
        self.schedule.arm()
        return self.port.ready()

    def _expire(self) -> None:
        self.schedule.expire()
        if self.link is LinkState.DOWN and not self.gone:
            now = self._engine.now()
            if now >= self._look_at:
                self._look(now)
            self.schedule.awake_at(self._look_at)

    # -- the link

    def _link(self, problem: LinkError | None) -> None:
        """The network has refused a packet, or has taken one again."""
        interface = self.identity.interface
        if isinstance(problem, DeviceGone):
            self.report_fatal(f"{interface}: {problem}")
            self.port.clear()
            self.doubts.close()
            self.schedule.forget_deadlines()
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
        self.schedule.awake_at(self._look_at)

    def _look(self, now: int) -> None:
        """Whether the link is up again."""
        self._look_at = now + LOOK
        if self.port.refused is not None:
            self.sender.send_packet(
                self.port.refused, (False, 0, 0, 0, 0, 0), headers.NOP, None, ()
            )
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
