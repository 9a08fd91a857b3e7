"""An ofi module: one domain of one provider, and the contract's calls."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.convertor import Convertor
from ompy.frameworks.btl import (
    ATOMIC_FOPS,
    ATOMIC_OPS,
    BTL_OWNERSHIP,
    COMPLETED,
    FAILOVER_SUPPORT,
    GET,
    NOT_AVAILABLE,
    PUT,
    REMOTE_READ,
    REMOTE_WRITE,
    SEND_ALWAYS_CALLBACK,
    SIZE_MAX,
    BtlModule,
    CompletionCallback,
    Descriptor,
    Endpoint,
    ReceiveCallback,
)
from ompy.frameworks.btl_base.atomics import SUPPORTS_OWNER, AtomicOperation
from ompy.frameworks.btl_base.transfers import is_unsuitable
from ompy.frameworks.nic.base import EventKind, NicError, NicEvent
from ompy.frameworks.nic.fabric import Completion, CompletionQueue, FabricEndpoint, FabricError
from ompy.frameworks.paths.path_keeper import KeptPath, PathKeeper
from ompy.frameworks.proc import Proc

from ompy_components.btl.ofi import atomic_words, receiving
from ompy_components.btl.ofi.attention import Attention
from ompy_components.btl.ofi.contexts import READ_MAX, Contexts
from ompy_components.btl.ofi.endpoint import OfiEndpoint
from ompy_components.btl.ofi.failures.blame import Blame, blame
from ompy_components.btl.ofi.failures.detection import Failures
from ompy_components.btl.ofi.failures.device import Device
from ompy_components.btl.ofi.failures.failover import Failover
from ompy_components.btl.ofi.headers import HEADER_SIZE, Seal
from ompy_components.btl.ofi.parting import part_from_peers
from ompy_components.btl.ofi.path import FIRST, MS, OPENING, OfiPath, Words
from ompy_components.btl.ofi.peers import Peers
from ompy_components.btl.ofi.receiving import ReceiveEngine
from ompy_components.btl.ofi.registered import HANDLE_SIZE, MemoryTable
from ompy_components.btl.ofi.selection.providers import BtlMode, abilities, owner_makes_atomics
from ompy_components.btl.ofi.sending import SendEngine
from ompy_components.btl.ofi.transfers import TransferEngine
from ompy_components.btl.ofi.waking import WakeUp
from ompy_components.btl.ofi.window import Window
from ompy_components.btl.ofi.work_records import (
    MessagePool,
    OfiFragment,
    Operation,
    ReceiveBuffer,
    fragment_in,
    operation_on,
)

if TYPE_CHECKING:
    from collections import deque

    from ompy.frameworks.nic.fabric import FabricDomain, FabricInfo, FabricNic
    from ompy.mca.parameter import Values
    from ompy.net.base import Interface

    from ompy_components.btl.ofi.selection.bring_up import Opened
    from ompy_components.btl.ofi.selection.module_pairs import Ways

DEPARTURES: Final = 16  # arbitrary: rounds of polling from one look for them to the next


@cclass
class OfiModule(BtlModule):
    """One domain of one rank.

    Attributes:
        nic: the device, open.
        info: the provider.
        domain: of it, open.
        interface: the network interface behind it; without an address where there is none.
        index: among the modules of the rank.
        contexts: endpoint and completion queues.
        mode: one-sided, two-sided or both.
        two_sided: it has messages.
        endpoints: by rank; those of `peers`.
        device: whether it can still be used.
        first: the context that receives, and transmits fragments.
    """

    _finalized: bool
    _handlers: list[ReceiveCallback | None]
    _missing: bool
    _news: deque[NicEvent]
    _queues: list[CompletionQueue]
    _read_max: int
    _reading: bool
    _rounds: int
    _several: bool
    _wake_up: WakeUp
    _ways: Ways
    attention: Attention
    contexts: Contexts
    device: Device
    domain: FabricDomain
    endpoints: dict[int, OfiEndpoint]
    failover: Failover
    failures: Failures
    first: FabricEndpoint
    index: int
    info: FabricInfo
    interface: Interface
    keeper: PathKeeper
    memory: MemoryTable
    mode: BtlMode
    nic: FabricNic
    peers: Peers
    receiving: ReceiveEngine
    sending: SendEngine
    transfers: TransferEngine
    two_sided: bool
    words: Words
    __slots__ = tuple(__annotations__)

    def __init__(self, opened: Opened, values: Values) -> None:
        """Take an open domain into use.

        Raises:
            NicError: the device has no room for what the parameters ask for.
        """
        mode, info, context = opened.mode, opened.info, opened.context
        super().__init__("ofi", context, values, abilities(mode, info.delivery_complete))
        self.nic = opened.nic
        self._news = opened.nic.news
        self.info = info
        self.interface = opened.interface
        self.bandwidth = opened.interface.bandwidth or self.bandwidth
        self.index, self._ways = opened.place
        self.mode = mode
        self.two_sided = mode is not BtlMode.ONE_SIDED
        self.contexts = opened.contexts
        self.first = opened.contexts.first
        self._queues = opened.contexts.queues
        self._several = len(opened.contexts) > 1
        self._handlers = context.active_messages.handlers
        self.domain = opened.domain
        self.device = Device()
        provider, vector = info.provider, opened.contexts.vector
        self.peers = Peers(self, provider, opened.place, vector, self.device, self._keep, self.note)
        self.endpoints = self.peers.endpoints
        self._set_limits()
        self._read_max = min(values.num_cq_read, READ_MAX)  # reference ofi.md A1: no clamp there
        self._reading = self._missing = self._finalized = False
        self._rounds = 0
        self._wake_up = WakeUp(context.engine)
        self.memory = MemoryTable(opened.domain, context.job_key, context.rank, self.index)
        self.keeper = PathKeeper(self, OPENING, values.silence_ms * MS)
        self.attention = Attention(self.keeper)
        self.failures = Failures(self.device, self.endpoints, self.note)
        self._make_engines(opened, values)

    def _make_engines(self, opened: Opened, values: Values) -> None:
        """What sends, moves and receives, and what looks after broken paths between them."""
        context, device, failures, attention = (
            self.context,
            self.device,
            self.failures,
            self.attention,
        )
        now = context.engine.now()
        seal = Seal(
            context.job_key, context.rank, whole=opened.shared_wire, first=now, module=self.index
        )
        pool = MessagePool(HEADER_SIZE + self.eager_limit, HEADER_SIZE + self.max_send_size)
        inject = 0 if values.disable_inject else self.info.inject_size
        self.sending = SendEngine(
            self, self.first, seal, pool, inject, attention, failures, self._refused
        )
        self.sending.keeping = bool(self.flags & FAILOVER_SUPPORT) and self.two_sided
        self.transfers = TransferEngine(
            self,
            self.contexts,
            values.progress_threshold,
            attention,
            failures,
            self.read_completions,
            plain=self.info.delivery_complete,
        )
        sending, keeper = self.sending, self.keeper
        self.words = Words(context.engine, sending, keeper, device, can_speak=self.two_sided)
        self.failover = Failover(self, keeper, failures, sending, self.transfers)
        count = receiving.buffers_needed(opened.window, context.size - 1) if self.two_sided else 0
        self.receiving = ReceiveEngine(
            self, self.first, self.peers, self.words, sending, seal, count
        )

    def _refused(self, endpoint: OfiEndpoint) -> None:
        """The provider had no room for a message."""
        self.words.refused(endpoint)

    def _set_limits(self) -> None:
        """What the provider allows of what the parameters say."""
        most = self.info.max_message
        self.put_limit = min(self.put_limit, most)
        self.get_limit = min(self.get_limit, most)
        room = most - HEADER_SIZE
        self.max_send_size = min(self.max_send_size, room)
        self.eager_limit = min(self.eager_limit, self.max_send_size)
        self.rndv_eager_limit = min(self.rndv_eager_limit, self.max_send_size)
        self.registration_handle_size = HANDLE_SIZE
        self.local_registration_threshold = SIZE_MAX  # FI_MR_LOCAL is never offered
        if self.flags & ATOMIC_OPS:
            plain = self.info.delivery_complete
            valid = self.contexts.first.atomic_valid
            self.atomic_flags = atomic_words.flags_of(valid, plain=plain)
            if self.atomic_flags and owner_makes_atomics(self.info):
                self.atomic_flags |= SUPPORTS_OWNER
        if not self.atomic_flags:  # some providers say that they have atomics, and have none
            self.flags &= ~(ATOMIC_OPS | ATOMIC_FOPS)

    # -- peers

    @ccall
    def reach(self, proc: Proc) -> OfiEndpoint | None:
        """Every rank with a module for this one: on the same provider, and of the same mode."""
        return self.peers.reach(proc)

    def _keep(self, endpoint: OfiEndpoint) -> KeptPath:
        """A path for an endpoint; a path works from the beginning."""
        user = OfiPath(endpoint, self.interface, self.failover, self.words)
        return self.keeper.keep(endpoint, user, FIRST)

    @ccall
    def path(self, endpoint: Endpoint) -> bytes:
        """The names of both ends' endpoints, in an order both agree on."""
        assert isinstance(endpoint, OfiEndpoint)
        ends = sorted((self.contexts.name, endpoint.record.name))
        return b"-".join([end.hex().encode() for end in ends])

    @ccall
    def begin_failover(self) -> bool:
        """From now on fragments are complete when the peer has them, and broken paths mended."""
        self.flags |= FAILOVER_SUPPORT
        self.keeper.begun = True
        self.sending.keeping = self.two_sided
        return True

    def is_up(self, endpoint: Endpoint) -> bool:
        """Its path can be used."""
        assert isinstance(endpoint, OfiEndpoint)
        return bool(endpoint.path.up)

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """The peer has given up a generation of a path."""
        self.keeper.gave_up(proc, path, number)

    @ccall
    def counters(self) -> dict[str, int]:
        """What it has counted."""
        counted = {
            **self.sending.counters(),
            **self.transfers.counters(),
            **self.failover.counted,
            "refused": self.receiving.refused,
            "replayed": self.receiving.replayed,
            "failed_receives": self.receiving.failed,
        }
        return {name: count for name, count in counted.items() if count}

    # -- sending

    @ccall
    def has_room(self, endpoint: Endpoint) -> bool:
        """Whether the peer has a buffer for one more; where it is gone, `send` says so."""
        assert isinstance(endpoint, OfiEndpoint)
        return not endpoint.window.full() or not endpoint.usable()

    @ccall
    def alloc(self, endpoint: Endpoint, order: int, size: int, flags: int) -> Descriptor | None:
        """A fragment with room for our header in front of it."""
        if not self.has_room(endpoint):
            self.attention.waits_for_room()
            return None
        return fragment_in(self.sending.pool.take(HEADER_SIZE + size), flags, order)

    @ccall
    def free(self, descriptor: Descriptor) -> None:
        """Give the memory back."""
        assert isinstance(descriptor, OfiFragment)
        self.sending.release(descriptor)

    @ccall
    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Send it; `OUT_OF_RESOURCE` where the peer or the provider has no room now."""
        assert isinstance(endpoint, OfiEndpoint)
        assert isinstance(descriptor, OfiFragment)
        if not self.two_sided:
            return NOT_AVAILABLE
        return self.sending.offer(endpoint, descriptor, tag)

    @ccall
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
        """Copy it and send it; with failover, if it is lost `returned` says so."""
        assert isinstance(endpoint, OfiEndpoint)
        if not self.two_sided or not endpoint.usable() or endpoint.window.full():
            return NOT_AVAILABLE
        size: int = HEADER_SIZE + len(header) + payload_size
        flags = flags & ~SEND_ALWAYS_CALLBACK | BTL_OWNERSHIP
        fragment: OfiFragment = fragment_in(self.sending.pool.take(size), flags, order)
        fragment.immediate = True
        raw.copy(fragment.message, HEADER_SIZE, header, 0, len(header))
        if payload_size:
            convertor.pack(0, fragment.segment[len(header) :])
        if self.sending.offer(endpoint, fragment, tag) < 0:
            self.sending.release(fragment)
            return NOT_AVAILABLE
        return COMPLETED

    # -- remote memory

    @ccall
    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        """Register it with the device."""
        return self.memory.add(memory, flags)

    @ccall
    def deregister_mem(self, handle: object) -> None:
        """Take it back from the device."""
        self.memory.remove(handle)

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
        """RMA write."""
        if not self.flags & PUT:
            return NOT_AVAILABLE
        if is_unsuitable(len(local), remote_address, self.put_limit, self.put_alignment):
            return NOT_AVAILABLE
        assert isinstance(endpoint, OfiEndpoint)
        one: Operation = operation_on(endpoint, local, flags, order, callback, context)
        return self.transfers.move(
            REMOTE_WRITE, endpoint, one, remote_address, local_handle, remote_handle
        )

    @ccall
    def get(
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
        """RMA read."""
        if not self.flags & GET:
            return NOT_AVAILABLE
        if is_unsuitable(len(local), remote_address, self.get_limit, self.get_alignment):
            return NOT_AVAILABLE
        assert isinstance(endpoint, OfiEndpoint)
        one: Operation = operation_on(endpoint, local, flags, order, callback, context)
        return self.transfers.move(
            REMOTE_READ, endpoint, one, remote_address, local_handle, remote_handle
        )

    @ccall
    def atomic(
        self,
        endpoint: Endpoint,
        operation: AtomicOperation,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """An atomic of the provider."""
        wanted = ATOMIC_OPS if operation.local is None else ATOMIC_FOPS
        if not self.flags & wanted:
            return NOT_AVAILABLE
        assert isinstance(endpoint, OfiEndpoint)
        return self.transfers.change(endpoint, operation, callback, context)

    @ccall
    def flush(self, endpoint: Endpoint | None) -> None:
        """Progress until nothing of put, get and atomics is under way to the peer, or to any."""
        concerned = self.peers.all()
        if endpoint is not None:
            assert isinstance(endpoint, OfiEndpoint)
            concerned = [endpoint]
        self._wait_for_operations(concerned)

    def _wait_for_operations(self, concerned: list[OfiEndpoint]) -> None:
        self.context.engine.wait_until(lambda: not any(one.operations for one in concerned))

    # -- progress

    @ccall
    def poll(self) -> int:
        """Take in what has come, tell what is owed, look after what is broken."""
        if self._finalized:
            return 0
        if self._news:
            self._take_events()
        events: int = self.failures.settle() if self.failures.unsettled else 0
        if self.failover.unsettled:
            events += self.failover.settle()
        if not self.device.dead:
            events += self.read_completions()
            events += self.receiving.deliver()
            self._tend(not events)
        events += self._look_after()
        if events:
            self._wake_up.busy()
        return events

    @ccall
    def read_completions(self) -> int:
        """Handle completions; messages among them wait for `poll`. Returns how many."""
        if self._reading or self.device.dead:
            return 0
        self._reading = True
        count: int = 0
        try:
            queue: CompletionQueue
            for queue in self.contexts.in_order() if self._several else self._queues:
                if count and queue is not self._queues[0] and self._rounds % DEPARTURES:
                    continue  # another thread's; the first one has what is received
                found: list[Completion] = queue.read(self._read_max)
                completion: Completion
                for completion in found:
                    self._handle(completion)
                count += len(found)
        except FabricError as problem:
            if problem.errno != errno.EINTR:
                self.failures.fail_device_soon(str(problem))
            return 0
        except NicError as problem:
            self.failures.fail_device_soon(str(problem))
            return 0
        finally:
            self._reading = False
        return count

    @cfunc
    def _handle(self, completion: Completion) -> None:
        record = completion.context
        if isinstance(record, ReceiveBuffer):
            self.receiving.done(record, completion)
        elif isinstance(record, Operation):
            self.transfers.done(record, completion)
        elif isinstance(record, OfiFragment):
            self.sending.done(record, completion)
        elif completion.error and blame(completion.error) is Blame.PATH:
            self.words.suspect(self.peers.all(), completion.detail or f"errno {completion.error}")
        else:  # no work of ours: what a stranger may have caused breaks nothing
            self.note("UNASKED", errno=completion.error, detail=completion.detail)

    @cfunc
    def _tend(self, idle: bool) -> None:
        """Post receive buffers again, tell peers what was taken."""
        try:
            self.receiving.repost()
        except NicError as problem:
            self.failures.fail_device_soon(str(problem))
        sending: SendEngine = self.sending
        if sending.owing and (sending.pressed or (idle and sending.keeping)):
            self._acknowledge(idle and sending.keeping)

    @cfunc
    def _acknowledge(self, soon: bool) -> None:
        """Tell those peers it is time for, or all that are owed something."""
        sending: SendEngine = self.sending
        sending.pressed = False
        endpoint: OfiEndpoint
        for endpoint in list(sending.owing):
            window: Window = endpoint.window
            pressing: bool = bool(endpoint.bye_number) or 2 * window.owed() >= window.size
            if (soon or pressing) and not sending.acknowledge(endpoint):
                sending.pressed = True

    def _take_events(self) -> None:
        for event in self.nic.events():
            if event.kind is EventKind.LINK_DOWN and self.keeper.begun:
                self.failures.fail_all(event.reason)
            elif event.kind in (EventKind.DEVICE_FATAL, EventKind.CQ_ERROR):
                self.failures.fail_device_soon(event.reason)

    @cfunc
    def _look_after(self) -> int:
        """Peers that have ended while something for them is under way."""
        self._rounds += 1
        if not self._missing and self._rounds % DEPARTURES:
            return 0
        self._missing = False
        self._ways.answer_connects()
        departed = self.peers.departed()
        for endpoint in departed:
            endpoint.path.broke(endpoint.proc.departed, told=True)
        return len(departed)

    @ccall
    def arm(self) -> bool:
        """Sleep until the device has news, where it can tell; else for a moment."""
        if self._finalized:
            return True
        if self.failures.pressing or self._news:
            return False
        if self.peers.departed():
            self._missing = True
            return False
        soon: bool = False
        if not self.device.dead:
            soon = (
                self.attention.starved
                or not self.sending.acknowledge_all()
                or self.receiving.pressing
            )
            answer = self.contexts.arm()
            if answer is False or self.failures.pressing:
                return False
            soon = soon or answer is None
        self.attention.starved = False
        self._wake_up.set(self.failover.due, soon=soon)
        return True

    def note(self, name: str, **fields: object) -> None:
        """A trace event of this module."""
        trace = self.context.trace
        if trace.active:
            trace.record("btl.ofi", name, provider=self.info.provider, **fields)

    # -- end

    @ccall
    def finalize(self) -> None:
        """Wait until the peers have everything, part from them, and close."""
        if not self._finalized:
            self._part_and_close()

    @ccall
    def dispatch(self, endpoint: Endpoint, tag: int, fragment: memoryview) -> None:
        """Hand a fragment that has arrived to whoever registered for its tag."""
        handler: ReceiveCallback | None = self._handlers[tag]
        assert handler is not None, f"nobody registered for tag {tag}"
        handler.received(self, endpoint, tag, fragment)

    def _part_and_close(self) -> None:
        engine = self.context.engine
        self.keeper.ending()
        engine.wait_until(lambda: not any(one.busy() for one in self.peers.all()))
        if self.two_sided and not self.device.dead:
            part_from_peers(engine, self.peers.all(), self.sending, self.device, self.attention)
        self.failover.give_up_all()
        self._finalized = True
        self.note("STATISTICS", **self.counters())
        self._wake_up.cancel()
        self._ways.close()
        self.keeper.close()
        self.words.close()
        self.receiving.close()
        self.contexts.close()
        self.memory.close()
        self.domain.close()
        self.nic.close()
