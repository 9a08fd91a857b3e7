"""An openib module: one port of one device, and the contract's calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ompy.data.convertor import Convertor
from ompy.frameworks.btl import (
    BAD_PARAM,
    BTL_OWNERSHIP,
    COMPLETED,
    FAILOVER_SUPPORT,
    GET,
    NOT_AVAILABLE,
    PUT,
    QUEUED,
    RDMA_COMPLETION,
    REMOTE_READ,
    REMOTE_WRITE,
    SEND,
    UNREACHABLE,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
)
from ompy.frameworks.btl_base.device_memory import RegisteredMemory
from ompy.frameworks.btl_base.transfers import is_unsuitable
from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import EventKind, NicError, NicEvent
from ompy.frameworks.nic.verbs import Completion, Opcode, VerbsNic
from ompy.frameworks.paths.path_keeper import PathKeeper
from ompy.frameworks.paths.path_life import Opening
from ompy.frameworks.proc import Proc
from ompy.mca.parameter import Values

from ompy_components.btl.openib import interfaces, modex
from ompy_components.btl.openib.connections.broken_notices import BrokenNotices
from ompy_components.btl.openib.connections.connecting import ConnectionManager
from ompy_components.btl.openib.connections.deferred import DeferredFailures
from ompy_components.btl.openib.connections.draining import Draining
from ompy_components.btl.openib.connections.failover import Failover
from ompy_components.btl.openib.connections.renewal import Renewals
from ompy_components.btl.openib.endpoint import OpenibEndpoint
from ompy_components.btl.openib.fragments import OpenibFragment, Transfer
from ompy_components.btl.openib.headers import (
    EP_BROKEN,
    EP_EAGER_RDMA_ERROR,
    MARGIN,
    RDMA_QUEUE,
    pack_bye,
)
from ompy_components.btl.openib.memory.free_lists import FreeLists
from ompy_components.btl.openib.memory.receive_buffers import ReceiveBuffer, SharedBuffers
from ompy_components.btl.openib.memory.registered import (
    HANDLE_SIZE,
    MemoryTable,
    remote_of,
)
from ompy_components.btl.openib.path import OpenibPath
from ompy_components.btl.openib.queues.completions import ROUND_MAX, Completions, Pace
from ompy_components.btl.openib.queues.credits import Tokens
from ompy_components.btl.openib.queues.queue_pairs import QueuePairs
from ompy_components.btl.openib.queues.receive_queues import Entry, Shared
from ompy_components.btl.openib.receiving import ReceiveEngine
from ompy_components.btl.openib.sending import SendEngine
from ompy_components.btl.openib.timing import Limits, RingLimits, ring_limits

# what a module can do, of which the parameter takes some
ABILITIES: Final = SEND | PUT | GET | RDMA_COMPLETION | FAILOVER_SUPPORT
DEPARTURES: Final = 16  # arbitrary: rounds of polling from one look for them to the next
US: Final = 1_000  # ns; Linux counts so
LINGER: Final = 1_000_000_000  # ns; arbitrary: how long the end waits for BYEs


class OpenibModule(BtlModule):
    """One port of one rank.

    Attributes:
        nic: the device, open.
        record: what peers know of it.
        limits: the `ib_` parameters.
        entries: of `receive_queues`.
        endpoints: by rank.
        domain: of everything here.
        completions: both completion queues.
        rooms: of them, of each entry's queue and of the one for put and get.
        lists: what is sent is taken from.
        deferred: endpoints that fail with the next poll.
        shared: buffers of each entry, None for `P`.
        tokens: of each entry, None for `P`.
        inline_max: bytes that are sent inline.
    """

    def __init__(
        self,
        context: RankContext,
        values: Values,
        nic: VerbsNic,
        entries: Sequence[Entry],
        limits: Limits,
    ) -> None:
        """Take an open device into use.

        Args:
            context: the rank.
            values: of the component's parameters.
            nic: the device.
            entries: of `receive_queues`.
            limits: the `ib_` parameters.

        Raises:
            NicError: the device has no room for what the parameters ask for.
        """
        super().__init__("openib", context, values, ABILITIES)
        self.nic = nic
        self.limits = limits
        self.entries = list(entries)
        self.record = modex.PortRecord(
            nic.subnet, nic.lid, nic.identity.speed, nic.identity.address
        )
        self.endpoints: dict[int, OpenibEndpoint] = {}
        self.bandwidth = values.bandwidth or nic.identity.speed
        self.registration_handle_size = HANDLE_SIZE
        inline = values.max_inline_data
        self.inline_max = min(nic.inline_max, inline if inline >= 0 else nic.inline_max)
        self.domain = nic.domain()
        self._ours: list[modex.PortRecord] = []
        self._index = 0
        self._rounds = 0
        self._missing = False  # a peer has ended while something for it was under way
        self._finalized = False
        self._make_queues(values)
        self.deferred = DeferredFailures()
        self._memory = MemoryTable(self.domain, context.rank)
        self.sending = SendEngine(
            self.lists, nic, self.deferred, coalesce=values.use_message_coalescing
        )
        opening = _opening(values)
        self.keeper = PathKeeper(self, opening, 0)  # the device says itself when nobody answers
        self._connect_parts(ring_limits(values), port_error=values.port_error_failover)
        self.connecting: ConnectionManager

    def _connect_parts(self, rings: RingLimits, *, port_error: bool) -> None:
        """Give each part those that it needs."""
        nic, sending = self.nic, self.sending
        self.pairs = QueuePairs(
            self.domain,
            self.entries,
            self.rooms,
            self.shared,
            self.tokens,
            self.limits,
            self.inline_max,
        )
        self.renewals = Renewals(self.pairs, sending, self.deferred, self.note)
        rank = self.context.rank
        self.notices = BrokenNotices(nic, rank, self.record, self.endpoints, sending)
        self.notices.keeper = self.keeper
        handlers = {
            EP_BROKEN: self.notices.told_broken,
            EP_EAGER_RDMA_ERROR: self.notices.told_missing,
            RDMA_QUEUE: self.renewals.offered,
        }
        self.receiving = ReceiveEngine(
            self.pairs, sending, self.domain, self.eager_limit, rings, handlers
        )
        self.draining = Draining(
            nic, self.completions, self.pairs, self.receiving, sending, self.limits.reads
        )
        self.failover = Failover(
            self, nic, self.keeper, self.renewals, self.notices, port_error=port_error
        )

    def _make_queues(self, values: Values) -> None:
        """Completion queues, shared buffers with their tokens, and free lists."""
        pace = Pace(values.poll_cq_batch, values.hp_cq_poll_per_progress, values.cq_poll_ratio)
        self.completions = Completions(self.nic, values.cq_size, pace)
        high, low = self.completions.high, self.completions.low
        self.rooms = [high if entry.size <= self.eager_limit else low for entry in self.entries]
        self.rooms.append(low)
        self.shared = [
            SharedBuffers(
                self.domain,
                entry,
                entry.size + MARGIN,
                room,
                resize=values.enable_srq_resize,
            )
            if isinstance(entry, Shared)
            else None
            for entry, room in zip(self.entries, self.rooms, strict=False)
        ]
        self.tokens = [
            Tokens(entry.sd_max) if isinstance(entry, Shared) else None for entry in self.entries
        ]
        lists = values.free_list_num, values.free_list_max, values.free_list_inc
        self.lists = FreeLists(self.domain, self.entries, *lists)

    def open_connections(self, ours: Sequence[modex.PortRecord], index: int) -> None:
        """Open the way for connections; this is port `index` of ours."""
        self._ours = list(ours)
        self._index = index
        at = interfaces.position(ours, index)
        name = f"{modex.KEY}.{self.record.subnet:x}.{at}"
        self.connecting = ConnectionManager(self.context, self.nic, name, self.reach, self.note)

    # -- peers

    def reach(self, proc: Proc) -> OpenibEndpoint | None:
        """Every rank with a port that is ours' partner, and with the same `receive_queues`."""
        found = self.endpoints.get(proc.rank)
        if found is not None:
            return found
        blob = self.context.modex(self.context.me).get(modex.KEY, b"")
        own = blob.decode().partition("\n")[0].partition(" ")[2]
        theirs = modex.unpack_records(self.context.modex(proc).get(modex.KEY, b""), own)
        record = interfaces.find_partner(self._ours, self._index, theirs)
        if record is None:
            return None
        endpoint = OpenibEndpoint(
            self, self.nic.identity, proc, record, len(self.entries), self.limits.reads
        )
        endpoint.path = self.keeper.keep(endpoint, self._path_of(endpoint))
        self.endpoints[proc.rank] = endpoint
        return endpoint

    def _path_of(self, endpoint: OpenibEndpoint) -> OpenibPath:
        return OpenibPath(
            endpoint,
            self.pairs,
            self.connecting,
            self.sending,
            self.draining,
            self.notices,
            self.deferred,
            self.note,
        )

    def path(self, endpoint: Endpoint) -> bytes:
        """Both ports, the one with the lower LID first."""
        assert isinstance(endpoint, OpenibEndpoint)
        ends = sorted((one.lid, one.host) for one in (self.record, endpoint.record))
        return b" ".join(f"{host}/{lid}".encode() for lid, host in ends)

    def begin_failover(self) -> bool:
        """From now on failures are not fatal, and broken paths are mended."""
        self.nic.failover = self.keeper.begun = bool(self.flags & FAILOVER_SUPPORT)
        return self.nic.failover

    def is_up(self, endpoint: Endpoint) -> bool:
        """Its path can be used."""
        assert isinstance(endpoint, OpenibEndpoint)
        return bool(endpoint.path.up)

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """The peer's end of a connection has failed; it says so over a rail of another BTL."""
        self.keeper.gave_up(proc, path, number)

    def counters(self) -> dict[str, int]:
        """What it has counted."""
        counted = {
            **self.sending.counted,
            "hellos": self.connecting.sent,
            "replayed_hellos": self.connecting.replayed,
            "srq_resizes": sum(one.resizes for one in self.shared if one is not None),
            "failover_messages": self.notices.told,
            "queue_renewals": self.renewals.count,
        }
        return {name: count for name, count in counted.items() if count}

    # -- sending

    def alloc(self, endpoint: Endpoint, order: int, size: int, flags: int) -> Descriptor | None:
        """A fragment in registered memory; for a path that is broken, one that is refused."""
        assert isinstance(endpoint, OpenibEndpoint)
        if not endpoint.usable:
            return OpenibFragment(memoryview(bytearray(size)), flags, order, None, 0)
        return self.lists.allocate_fragment(self.lists.queue_for(size), size, flags, order)

    def free(self, descriptor: Descriptor) -> None:
        """Give the buffer back."""
        assert isinstance(descriptor, OpenibFragment)
        descriptor.release()

    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Send it, or have it wait for its turn; it is complete when the peer's device has it."""
        assert isinstance(endpoint, OpenibEndpoint)
        assert isinstance(descriptor, OpenibFragment)
        if not endpoint.usable or descriptor.buffer is None:
            return UNREACHABLE
        descriptor.tag = tag
        self.sending.accept(endpoint, descriptor)
        return QUEUED

    def sendi(
        self,
        endpoint: Endpoint,
        convertor: Convertor,
        header: bytes,
        payload_size: int,
        order: int,
        flags: int,
        tag: int,
    ) -> int:
        """Copy it and send it; if it is lost, `returned` says so."""
        assert isinstance(endpoint, OpenibEndpoint)
        size = len(header) + payload_size
        if not endpoint.usable or not endpoint.path.up or endpoint.waiting:
            return NOT_AVAILABLE
        queue = self.lists.queue_for(size)
        fragment = self.lists.allocate_fragment(queue, size, flags | BTL_OWNERSHIP, order)
        if fragment is None:
            return NOT_AVAILABLE
        fragment.segment[: len(header)] = header
        if payload_size:
            convertor.pack(0, fragment.segment[len(header) :])
        fragment.tag = tag
        fragment.immediate = True
        self.sending.accept(endpoint, fragment)
        return COMPLETED

    # -- remote memory

    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        """Register it with the device."""
        return self._memory.register_region(memory, flags)

    def deregister_mem(self, handle: object) -> None:
        """Take it back: what names it from now on is refused by the device."""
        self._memory.remove(handle)

    def put(
        self,
        endpoint: Endpoint,
        local: memoryview,
        remote_address: int,
        local_handle: object,
        remote_handle: bytes,
        flags: int,
        order: int,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """RDMA write."""
        if is_unsuitable(len(local), remote_address, self.put_limit, self.put_alignment):
            return NOT_AVAILABLE
        one = Transfer(Opcode.RDMA_WRITE, local, flags, order)
        one.callback, one.context = callback, context
        return self._transfer(endpoint, one, remote_address, local_handle, remote_handle)

    def get(
        self,
        endpoint: Endpoint,
        local: memoryview,
        remote_address: int,
        local_handle: object,
        remote_handle: bytes,
        flags: int,
        order: int,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """RDMA read."""
        if is_unsuitable(len(local), remote_address, self.get_limit, self.get_alignment):
            return NOT_AVAILABLE
        one = Transfer(Opcode.RDMA_READ, local, flags, order)
        one.callback, one.context = callback, context
        return self._transfer(endpoint, one, remote_address, local_handle, remote_handle)

    def _transfer(
        self,
        endpoint: Endpoint,
        one: Transfer,
        offset: int,
        local_handle: object,
        remote_handle: bytes,
    ) -> int:
        assert isinstance(endpoint, OpenibEndpoint)
        if not len(one.segment):
            return NOT_AVAILABLE
        there = remote_of(remote_handle, endpoint.proc.rank)
        access = REMOTE_READ if one.opcode is Opcode.RDMA_READ else REMOTE_WRITE
        if there is None or not there.allows(offset, len(one.segment), access):
            return BAD_PARAM
        region = local_handle.region if isinstance(local_handle, RegisteredMemory) else None
        if region is None:
            return BAD_PARAM
        if not endpoint.usable:
            return UNREACHABLE
        one.lkey = region.lkey
        one.address, one.rkey = there.base + offset, there.key
        self.sending.accept(endpoint, one)
        return QUEUED

    # -- progress

    def poll(self) -> int:
        """Take in what has come, send what can be sent, look after what is broken."""
        if self._finalized:
            return 0
        if self.nic.eventful:
            for event in self.nic.events():
                self._event(event)
        events = self.connecting.poll()
        try:
            events += self._poll_queues()
        except NicError as problem:
            self.failover.fail_all(str(problem))
        events += self.receiving.poll_rings(ROUND_MAX)
        self.receiving.return_credits()
        if self.sending.waiting:
            events += self.sending.serve()
        events += self._look_after()
        return events

    def _event(self, event: NicEvent) -> None:
        """The device says something unasked."""
        if event.kind is EventKind.SRQ_LIMIT_REACHED:
            for shared in self.shared:
                if shared is not None and shared.queue is event.subject:
                    shared.few_left()
            return
        if event.kind is EventKind.LINK_DOWN:
            self.note("PORT_ERROR", reason=event.reason)
        self.failover.event(event.kind, event.reason)

    def _poll_queues(self) -> int:
        if self.nic.gone:
            return 0
        return self.completions.poll(self._handle, thorough=self._draining)

    def _draining(self) -> bool:
        return bool(self.draining.draining)

    def _handle(self, completion: Completion) -> None:
        if isinstance(completion.context, ReceiveBuffer):
            self.receiving.reported(completion)
            return
        failed = self.sending.reported(completion)
        if failed is not None:
            assert isinstance(completion.context, tuple)
            self.failover.work_failed(completion.context[0], failed, completion)

    def _look_after(self) -> int:
        """Departures, broken connections."""
        self._rounds += 1
        if self._missing or self._rounds % DEPARTURES == 0:
            self._missing = False
            for endpoint in self._departed():
                endpoint.path.broke(endpoint.proc.departed, told=True)
        return self.deferred.settle() + self.draining.settle()

    def arm(self) -> bool:
        """Sleep until the device or a HELLO has something."""
        if self._finalized:
            return True
        broken = self.deferred or self.draining.pressing
        if broken or self.nic.eventful or self.connecting.ready():
            return False
        if not self.nic.gone:
            if self.completions.ready():
                return False
            if self.receiving.rings_ready() or self.nic.eventful:
                return False
        if self._departed():
            self._missing = True
            return False
        return True

    def _departed(self) -> list[OpenibEndpoint]:
        """Peers that have ended while something for them is under way."""
        return [
            endpoint
            for endpoint in self.endpoints.values()
            if endpoint.proc.departed and not endpoint.broken and endpoint.busy
        ]

    def note(self, name: str, **fields: object) -> None:
        """A trace event of this module."""
        trace = self.context.trace
        if trace.active:
            trace.record("btl.openib", name, lid=self.record.lid, **fields)

    # -- end

    def finalize(self) -> None:
        """Wait until the peers have everything, part from them, and close."""
        if self._finalized:
            return
        self.keeper.ending()
        engine = self.context.engine
        every = list(self.endpoints.values())
        engine.wait_until(lambda: all(_is_idle(endpoint) for endpoint in every))
        for endpoint in every:
            if endpoint.path.up and endpoint.usable:
                self.sending.send_control(endpoint, pack_bye())
                endpoint.parted = True
        engine.wait_until(lambda: all(_has_parted(endpoint) for endpoint in every), LINGER)
        self._finalized = True
        self.note("STATISTICS", **self.counters())
        self.keeper.close()
        self.connecting.close()
        self.deferred.clear()
        self.draining.close(self.endpoints.values())
        for shared in self.shared:
            if shared is not None:
                shared.close()
        self.lists.close()
        self._memory.close()
        self.completions.close()
        self.nic.close()


def _opening(values: Values) -> Opening:
    again = values.connect_udcm_timeout * US
    return Opening(False, again, again, values.connect_udcm_max_retry)


def _is_idle(endpoint: OpenibEndpoint) -> bool:
    return not endpoint.busy


def _has_parted(endpoint: OpenibEndpoint) -> bool:
    """The peer has all of ours, and needs nothing more, or is not there any more."""
    gone = endpoint.broken or endpoint.proc.departed or not endpoint.parted
    return bool(gone) or (endpoint.left and not endpoint.busy)
