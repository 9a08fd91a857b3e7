"""A usnic module: one NIC's two channels, and the contract's calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import outputs
from ompy.compiled import DECLARING, U64, Shown, ccall, cclass, cfunc
from ompy.data.convertor import Convertor
from ompy.engine.timers import Timer
from ompy.frameworks.btl import (
    BAD_PARAM,
    BTL_OWNERSHIP,
    FAILOVER_SUPPORT,
    NO_ORDER,
    NOT_AVAILABLE,
    OUT_OF_RESOURCE,
    PUT,
    QUEUED,
    RDMA_COMPLETION,
    SEND,
    SEND_INPLACE,
    UNREACHABLE,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.registration import HANDLE_SIZE, identity_of
from ompy.frameworks.btl_base.transfers import is_unsuitable
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import EventKind, NicError
from ompy.frameworks.nic.datagram import DatagramNic
from ompy.frameworks.paths.path_life import IN_USE, TRYING
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.btl.usnic import configuration, interfaces, modex, prepare
from ompy_components.btl.usnic.channel import DATA, Channel
from ompy_components.btl.usnic.component import EAGER_ALONE
from ompy_components.btl.usnic.connectivity.checker import Connectivity, probe_limits
from ompy_components.btl.usnic.endpoint import UsnicEndpoint
from ompy_components.btl.usnic.headers import BYE
from ompy_components.btl.usnic.packets import (
    FRAG_PAYLOAD,
    Fragment,
    Packet,
    PacketPool,
)
from ompy_components.btl.usnic.path import UsnicPaths
from ompy_components.btl.usnic.put import PLACE_MAX, Puts
from ompy_components.btl.usnic.receive_engine import ReceiveEngine
from ompy_components.btl.usnic.reliability.limits import US, Limits
from ompy_components.btl.usnic.reliability.machine import Reliability
from ompy_components.btl.usnic.report import Report
from ompy_components.btl.usnic.seal import Seal, recipient
from ompy_components.btl.usnic.send_engine import NEVER, SendEngine
from ompy_components.btl.usnic.statistics import Statistics

if TYPE_CHECKING:
    from collections import deque

    from ompy.frameworks.nic.base import NicEvent

    from ompy_components.btl.usnic.connectivity.connectivity_map import ConnectivityMap

if DECLARING:
    from ompy.engine.base import Engine

EAGER_SEVERAL: Final = 25 * 1024  # reference usnic.md 3: with several
# what a module can do, of which the parameter takes some
ABILITIES: Final = SEND | SEND_INPLACE | PUT | RDMA_COMPLETION | FAILOVER_SUPPORT
LINGER: Final = 1_000_000_000  # ns; arbitrary: how long the end waits for answers to its BYEs
# ns; arbitrary: where packets were lost; 50 BYEs of which one gets through even at 70 % loss
LINGER_LOSSY: Final = 5 * LINGER


@cclass
class UsnicModule(BtlModule):
    """One NIC of one rank.

    Attributes:
        nic: the device, open.
        statistics: its counters.
        isn: number of the first packet to any peer.
        endpoints: by rank.
        max_packet: bytes of the largest packet, seal and header included.
        connectivity: pings peers, and answers them.
        paths: their lives.
        map: of all modules of the rank, which is to be written; None for none.
    """

    _channels: Shown[tuple[Channel, Channel]]
    _due: int
    _engine: Engine
    _finalized: bool
    _fragments_max: int
    _lazy_from: int
    _limits: Shown[Limits]
    _max_chunk: int
    _max_frag: int
    _news: deque[NicEvent]
    _report: Report | None
    _seal: Shown[Seal]
    _send_depth: int
    _timer: Timer | None
    _warns_of_routes: bool
    connectivity: Connectivity
    endpoints: dict[int, UsnicEndpoint]
    index: int
    isn: int
    map: ConnectivityMap | None
    max_packet: int
    nic: DatagramNic
    paths: UsnicPaths
    puts: Puts
    receiving: ReceiveEngine
    sending: SendEngine
    statistics: Statistics
    __slots__ = tuple(__annotations__)

    def __init__(
        self, context: RankContext, values: Values, nic: DatagramNic, index: int, count: int
    ) -> None:
        """Take a device into use.

        Args:
            context: the rank.
            values: of the component's parameters.
            nic: the device.
            index: of this module among the rank's.
            count: of the rank's modules.

        Raises:
            NicError: the device cannot be used.
        """
        super().__init__("usnic", context, values, ABILITIES)
        self.nic = nic
        self._news = nic.news
        self._engine = context.engine
        self.index = index
        self.statistics = Statistics()
        self.isn = int.from_bytes(context.network.entropy(2))
        self.endpoints = {}
        self._due = NEVER  # when a timer of an endpoint runs out
        self._timer = None
        self._finalized = False
        nic.open()
        self._limits = configuration.reliability_limits(values, nic.max_message)
        self._channels = configuration.channels(nic, values, context.procs[context.rank].local_rank)
        self._seal = Seal(context.job_key, context.rank, index, context.engine.now())
        data = self._channels[DATA]
        options = configuration.options(values, self._channels, self.flags)
        self._max_frag = options.max_frag
        self._max_chunk = options.max_chunk
        self._lazy_from = options.lazy_from
        self._send_depth = data.credits
        pool = PacketPool(nic.domain(), data.max_message, max(16, data.credits // 8))
        self.sending = SendEngine(
            context.rank, self._channels, pool, self._seal, self.statistics, options
        )
        self.puts = Puts(self)
        self.registration_handle_size = HANDLE_SIZE
        self.max_packet = data.max_message
        self.connectivity = Connectivity(self, probe_limits(values))
        self.paths = UsnicPaths(self)
        self.map = None
        self.receiving = ReceiveEngine(
            self, self._channels, self._seal, self.statistics, values.max_short_packets
        )
        self._report = None
        if values.stats:
            self._report = Report(self, values.stats, relative=values.stats_relative)
        self._set_limits(values, count)

    @ccall
    def begin_failover(self) -> bool:
        """Complete fragments when the peer has them; another path may do where one breaks."""
        self.flags |= FAILOVER_SUPPORT
        self.sending.wait_for_acks()
        self.paths.keeper.begun = True
        return True

    def _set_limits(self, values: Values, count: int) -> None:
        if count > 1 and values.eager_limit == EAGER_ALONE:
            self.eager_limit = EAGER_SEVERAL
        self.bandwidth = values.bandwidth or self.nic.identity.speed
        self._fragments_max = values.free_list_max
        self._warns_of_routes = values.show_route_failures

    @property
    def record(self) -> modex.ModuleRecord:
        """What peers need to know about it."""
        priority, data = (channel.address for channel in self._channels)
        identity = self.nic.identity
        return modex.ModuleRecord(
            priority.host,
            (priority.port, data.port),
            identity.prefix,
            self.isn,
            self._channels[DATA].max_message,
            identity.speed,
        )

    # -- peers

    @ccall
    def counters(self) -> dict[str, int]:
        """The statistics that have counted anything."""
        return {"retransmissions": self.statistics.num_resends, **self.statistics.nonzero()}

    @property
    def buffers_held(self) -> int:
        """Receive buffers that have been read and not posted again."""
        return sum(channel.held for channel in self._channels)

    @ccall
    def reach(self, proc: Proc) -> UsnicEndpoint | None:
        """Every rank one of whose modules is this one's partner."""
        found = self.endpoints.get(proc.rank)
        if found is not None:
            return found
        partner = interfaces.find_partner(self.context, proc, self.index)
        if self.index == 0 and self._warns_of_routes:
            self._see_route(proc)
        if partner is None:
            return None
        index, record = partner
        self.context.network.introduce(proc.rank, record.addresses)
        endpoint = UsnicEndpoint(
            self,
            self.nic.identity,
            proc,
            record.addresses,
            recipient(proc.rank, index),
            record.isn,
            self._send_depth,
        )
        self.paths.keep(endpoint)
        self.renew(endpoint)
        self.endpoints[proc.rank] = endpoint
        self.connectivity.begin_checking(endpoint)
        return endpoint

    def _see_route(self, proc: Proc) -> None:
        """Warn when none of this rank's NICs can reach those of a peer, which has some."""
        problem = interfaces.unreachable(self.context, proc)
        if problem:
            self.note("NO_ROUTE", peer=proc.rank, reason=problem)
            outputs.tell(
                f"ompy: rank {self.context.rank} cannot reach rank {proc.rank} on {proc.hostname} "
                f"by usnic: {problem} (btl_usnic_show_route_failures 0 silences this)\n",
                "warning",
                "warning",
            )

    def renew(self, endpoint: UsnicEndpoint) -> None:
        """Begin a generation of a path, of which nothing is under way."""
        endpoint.renew(
            Reliability(
                self._limits,
                self.statistics,
                self.sending.resends,
                first=self.isn,
                expected=endpoint.first,
                verdict=lambda: endpoint.path.verdict,
            )
        )

    # -- sending

    @ccall
    def has_room(self, endpoint: Endpoint) -> bool:
        """Fragments may wait up to `free_list_max`, and refused ones may be made at any time."""
        if self._fragments_max < 0:
            return True
        peer = endpoint
        assert isinstance(peer, UsnicEndpoint)
        waiting: int = len(peer.queue) + peer.reliability.outstanding
        return waiting < self._fragments_max or not peer.path.up

    @ccall
    def alloc(self, endpoint: Endpoint, order: int, size: int, flags: int) -> Descriptor | None:
        """A small fragment in its packet, or a large one with memory of its own."""
        if not self.has_room(endpoint):
            return None
        if size > self._max_frag:
            return Fragment(memoryview(bytearray(size)), flags, order, None)
        return self.small_fragment(size, flags, order)

    @ccall
    def small_fragment(self, size: int, flags: int, order: int = NO_ORDER) -> Fragment:
        """A fragment in a packet of its own, whatever is under way."""
        packet: Packet = self.sending.pool.take_packet()
        packet.length = size
        segment = packet.buffer[FRAG_PAYLOAD : FRAG_PAYLOAD + size]
        fragment = Fragment(segment, flags, order, packet)
        packet.fragment = fragment
        return fragment

    @ccall
    def prepare_src(
        self,
        endpoint: Endpoint,
        convertor: Convertor,
        offset: int,
        order: int,
        reserve: int,
        size: int,
        flags: int,
    ) -> Descriptor | None:
        """Refer to contiguous payload in place; other payload is packed now or when it is sent."""
        if not self.has_room(endpoint):
            return None
        size = max(0, min(size, convertor.size - offset, self.max_send_size - reserve))
        pool: PacketPool = self.sending.pool
        if reserve + size <= self._max_frag:
            return prepare.small(pool, convertor, offset, size, order, reserve, flags)
        span = prepare.Span(convertor, offset, size)
        return prepare.large(pool, span, order, reserve, flags, self._max_chunk, self._lazy_from)

    @ccall
    def free(self, descriptor: Descriptor) -> None:
        """Give a fragment back; one that was sent takes care of itself."""
        assert isinstance(descriptor, Fragment)
        if descriptor.accepted:
            return
        for packet in descriptor.unsent:
            self.sending.pool.give_back(packet)
        descriptor.packet = None
        descriptor.filled = None
        descriptor.let_go()

    @ccall
    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Send at once if that can be done, else when its turn comes."""
        peer = endpoint
        assert isinstance(peer, UsnicEndpoint)
        fragment = descriptor
        assert isinstance(fragment, Fragment)
        if not peer.usable():
            return UNREACHABLE
        fragment.tag = tag
        fragment.accepted = True
        if fragment.payload is not None:
            fragment.collapse()
        self.statistics.pml_module_sends += 1
        # what the device has said unasked is dealt with in `poll`, where paths are failed in order;
        # one that is gone may have said so before this path was made
        if not self._news and self.sending.may_send_fast(peer, fragment) and not self.nic.gone:
            now: int = self._engine.now()
            self.sending.send_fast(peer, fragment, now)
            self.timer_at(self.sending.take_due())
            if fragment.flags & BTL_OWNERSHIP:
                fragment.told = True
                return self.finish(peer, fragment)
            return QUEUED
        self.sending.enqueue(peer, fragment)
        return QUEUED

    # -- remote memory

    @ccall
    def put(
        self,
        endpoint: Endpoint,
        local: memoryview,
        remote_address: U64,
        local_handle: object,
        remote_handle: bytes,
        flags: int,
        order: int,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """Send chunks that go straight into the peer's memory."""
        assert isinstance(endpoint, UsnicEndpoint)
        size = len(local)
        if is_unsuitable(size, remote_address, self.put_limit, self.put_alignment):
            return NOT_AVAILABLE
        if remote_address + size > PLACE_MAX or not size:
            return NOT_AVAILABLE
        identity = identity_of(remote_handle, endpoint.proc.rank)
        if not identity or remote_address < 0:
            return BAD_PARAM
        if not endpoint.usable():
            return UNREACHABLE
        if not self.has_room(endpoint):
            return OUT_OF_RESOURCE
        fragment = Fragment(local, flags, order, None)
        fragment.payload_size = size
        fragment.callback = callback
        fragment.context = context
        self.puts.start_put(endpoint, fragment, identity, remote_address)
        return QUEUED

    @ccall
    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        """Remember what peers may write."""
        return self.puts.table.register_memory(memory, flags)

    @ccall
    def deregister_mem(self, handle: object) -> None:
        """Forget it: a put for it is refused from now on."""
        self.puts.table.remove(handle)

    @ccall
    def path(self, endpoint: Endpoint) -> bytes:
        """Both addresses, the lower one first."""
        assert isinstance(endpoint, UsnicEndpoint)
        both = sorted((self._channels[DATA].address, endpoint.addresses[DATA]))
        return b" ".join([f"{host}:{port}".encode() for host, port in both])

    # -- progress

    @ccall
    def poll(self) -> int:
        """Take in what has arrived, send what can be sent."""
        if self._finalized:
            return 0
        if self._news:
            self._take_events()
        if self.nic.gone:
            return self._fail_all(self.nic.gone)
        now: int = self._engine.now()
        events: int = 0
        sent: int = 0
        try:
            events = self.receiving.progress(now)
            if events < 0:
                return 1  # one packet, received fast
            if events and self.paths.doubted:
                self.paths.settle(now)
            if now >= self._due:
                self._expire(now)
            sent = self.sending.progress(now)
            if sent:
                self.timer_at(self.sending.take_due())
            self.receiving.repost()
        except NicError as problem:
            self._fail_all(str(problem))
            return 1
        return events + sent

    @ccall
    def timer_at(self, at: int) -> None:
        """See that timers are looked at when it is `at`."""
        self._due = min(self._due, at)

    @ccall
    def arm(self) -> bool:
        """Sleep until a packet comes or a timer runs out."""
        if self._finalized:
            return True
        if self.nic.gone:
            return not self._has_path()
        if self._news or self.sending.pressing() or self.receiving.ready():
            return False
        if self._due != NEVER and (
            self._timer is None or not self._timer.pending or self._timer.deadline > self._due
        ):
            self._cancel_timer()
            engine = self._engine
            self._timer = engine.call_later(max(0, self._due - engine.now()), _nothing)
        return True

    def _has_path(self) -> bool:
        return any(endpoint.path.up for endpoint in self.endpoints.values())

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @cfunc
    def _expire(self, now: int) -> None:
        """Look at all timers that may run."""
        self._due = NEVER
        self.connectivity.expire(now)
        if self._report is not None:
            self._report.expire(now)
        self.paths.send_words()
        endpoint: UsnicEndpoint
        for endpoint in list(self.sending.active):
            reliability: Reliability = endpoint.reliability
            if reliability.idle() and not endpoint.proc.departed:
                self.paths.trust(endpoint)
                del self.sending.active[endpoint]
                continue
            reliability.expire(now)
            if endpoint.proc.departed:
                endpoint.path.broke(endpoint.proc.departed, told=True)
            elif reliability.failure:
                endpoint.path.broke(reliability.failure)
            elif self.paths.doubted or reliability.in_doubt(now):
                self.paths.look(endpoint, now)
            due = reliability.deadline()
            if due is not None:
                # an ACK that is due goes out in this round, unless there is no credit for it
                self.timer_at(max(due, now + US))

    # -- failures

    def _take_events(self) -> None:
        for event in self.nic.events():
            if event.kind is not EventKind.LINK_UP:
                self._fail_all(event.reason)

    def _fail_all(self, reason: str) -> int:
        """Of the device; returns how many paths could be used till now."""
        usable = 0
        for endpoint in self.endpoints.values():
            path = endpoint.path
            usable += path.up
            if self.nic.gone:
                path.end()
            if path.life.life in (*IN_USE, *TRYING):
                path.broke(reason)
        return usable

    def is_up(self, endpoint: Endpoint) -> bool:
        """Its path can be used."""
        assert isinstance(endpoint, UsnicEndpoint)
        return bool(endpoint.path.up)

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """The peer says over another rail that a generation of a path of ours has failed."""
        self.paths.keeper.gave_up(proc, path, number)

    # -- end

    @ccall
    def finalize(self) -> None:
        """Wait until the peers have everything, tell them so, and close."""
        if not self._finalized:
            self._part()

    def _part(self) -> None:
        self._write_map()
        self.paths.keeper.ending()
        engine = self.context.engine
        every = self.endpoints.values()
        engine.wait_until(lambda: all(self._is_idle(endpoint) for endpoint in every))
        for endpoint in every:
            if endpoint.usable():
                self._send_bye(endpoint)
        linger = LINGER_LOSSY if self.statistics.lossy else LINGER
        engine.wait_until(lambda: all(self._is_idle(endpoint) for endpoint in every), linger)
        for endpoint in list(self.sending.owing):
            if not self.nic.gone:
                self.sending.send_ack(endpoint, engine.now())
        self._finalized = True
        self.paths.close()
        for endpoint in every:
            self.sending.abandon(endpoint)  # BYEs nobody answered
        self._cancel_timer()
        if self._report is not None:
            self._report.write_report(engine.now())
        self.note("STATISTICS", refused=self._seal.refused, **self.statistics.nonzero())
        for channel in self._channels:
            channel.close()
        self.sending.pool.close()
        self.nic.close()

    def _write_map(self) -> None:
        """Before any peer leaves. A map nobody can write down is no reason to fail."""
        try:
            if self.map is not None:
                self.map.finalizing()
        except OSError as problem:
            self.note("NO_MAP", reason=str(problem))
            outputs.tell(f"ompy: btl_usnic_connectivity_map: {problem}\n", "warning", "warning")

    def note(self, name: str, **fields: object) -> None:
        """Say something in the trace."""
        trace = self.context.trace
        if trace.active:
            trace.record("btl.usnic", name, module=self.index, **fields)

    def _is_idle(self, endpoint: UsnicEndpoint) -> bool:
        if endpoint.proc.departed:
            endpoint.path.broke(endpoint.proc.departed, told=True)
        return endpoint.idle()

    def _send_bye(self, endpoint: UsnicEndpoint) -> None:
        endpoint.reliability.leaving = True
        bye = self.alloc(endpoint, NO_ORDER, 0, BTL_OWNERSHIP)
        if bye is not None:
            self.send(endpoint, bye, BYE)


def _nothing() -> None:
    """The rank is awake: its poll looks at the timers."""
