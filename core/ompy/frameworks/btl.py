"""The BTL contract: byte transfer between this rank and its peers (Open MPI's BTL 3.x).

What may be called when, whose the buffers are, when a fragment is complete, and what a module has
to do for put and get, failing over and lent messages: README.md here, "The BTL contract".

`ompy.conformance` tests all of this. Source: reference openmpi.md 3.11 to 3.13, seed ob1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ompy.compiled import U64, ccall, cclass, recycled
from ompy.data.convertor import Convertor
from ompy.data.request import Request
from ompy.engine.base import Poller
from ompy.frameworks.btl_base.btl_component import BtlComponent as BtlComponent  # noqa: PLC0414 - from here
from ompy.frameworks.btl_base.btl_component import apply_common
from ompy.frameworks.btl_base.lent_payload import LentPayload, fetched
from ompy.frameworks.proc import Proc
from ompy.mca.component import ApiVersion
from ompy.mca.component import Component as Component  # noqa: PLC0414 - from here

if TYPE_CHECKING:
    from ompy.frameworks.btl_base.atomics import AtomicOperation
    from ompy.frameworks.context import RankContext

API: Final[ApiVersion] = (3, 1)  # reference openmpi.md 0.6: BTL API 3.1.0 (Open MPI 4.x)

# results of send and sendi; reference openmpi.md 3.8.3, numbers as OPAL's
COMPLETED: Final = 1
QUEUED: Final = 0
OUT_OF_RESOURCE: Final = -2
RESOURCE_BUSY: Final = -4
BAD_PARAM: Final = -5
UNREACHABLE: Final = -12
NOT_AVAILABLE: Final = -16

# module flags; reference openmpi.md 3.11
SEND: Final = 0x1
PUT: Final = 0x2
GET: Final = 0x4
SEND_INPLACE: Final = 0x8
NEED_ACK: Final = 0x10
NEED_CSUM: Final = 0x20
RDMA_COMPLETION: Final = 0x80
HETEROGENEOUS_RDMA: Final = 0x100
FAILOVER_SUPPORT: Final = 0x200
SIGNALED: Final = 0x4000
ATOMIC_OPS: Final = 0x8000
ATOMIC_FOPS: Final = 0x10000
SINGLE_ADD_PROCS: Final = 0x20000
PROGRESS_THREAD: Final = 0x40000
RDMA_FLUSH: Final = 0x80000

# descriptor flags; reference openmpi.md 3.11
PRIORITY: Final = 0x1
BTL_OWNERSHIP: Final = 0x2
SEND_ALWAYS_CALLBACK: Final = 0x4
SIGNAL: Final = 0x40
RETURNABLE: Final = 0x100  # arbitrary: beyond Open MPI's; README.md, "Failover obligations"
UNHURRIED: Final = 0x200  # arbitrary; nobody waits for this fragment alone
# arbitrary; a put may complete as soon as what the endpoint is given next will come after it
IN_ORDER: Final = 0x400

# registration flags: what the memory is for; reference openmpi.md 3.11, numbers as Open MPI's
LOCAL_WRITE: Final = 0x1
REMOTE_READ: Final = 0x2
REMOTE_WRITE: Final = 0x4
REMOTE_ATOMIC: Final = 0x8
ACCESS_ANY: Final = 0xF

NO_ORDER: Final = 255  # reference openmpi.md 3.11
SIZE_MAX: Final = (1 << 63) - 1  # of a put or get: no limit
EXCLUSIVITY_HIGH: Final = 65536  # reference openmpi.md 3.11
EXCLUSIVITY_DEFAULT: Final = 1024
EXCLUSIVITY_LOW: Final = 0
# flags of the error callback; reference openmpi.md 3.11
ERROR_FATAL: Final = 1
ERROR_NONFATAL: Final = 2
TAGS: Final = 256  # reference openmpi.md 3.11: active message tags 0..255
TAG_PML: Final = 0x40  # reference openmpi.md 3.3
TAG_BTL: Final = 0x20  # what a BTL says to its like at the peer
TAG_TRANSFER: Final = 0x21  # arbitrary, as the next: put and get by fragments
TAG_NOTICE: Final = 0x22  # that a path has failed


@cclass
class ReceiveCallback:
    """Receives what peers send under a tag."""

    __slots__ = ()

    @ccall
    def received(self, module: BtlModule, endpoint: Endpoint, tag: int, data: memoryview) -> None:
        """A fragment has arrived.

        Args:
            module: it came through.
            endpoint: who sent it.
            tag: it was sent with.
            data: the whole fragment; valid until this returns.
        """
        raise NotImplementedError

    @ccall
    def lent(
        self,
        module: BtlModule,
        endpoint: Endpoint,
        tag: int,
        header: memoryview,
        payload: LentPayload,
    ) -> None:
        """A fragment has arrived whose payload is still at its sender; by default it is read now.

        Args:
            module: it came through.
            endpoint: who sent it.
            tag: it was sent with.
            header: what the sender's PML wrote; valid until this returns.
            payload: the rest, likewise.
        """
        data = fetched(header, payload)
        if data is not None:
            self.received(module, endpoint, tag, data)


@cclass
class CompletionCallback:
    """Told when a descriptor is done."""

    __slots__ = ()

    @ccall
    def completed(
        self, module: BtlModule, endpoint: Endpoint, descriptor: Descriptor, status: int
    ) -> None:
        """A fragment is done.

        Args:
            module: it went through.
            endpoint: where it was sent.
            descriptor: which; with `BTL_OWNERSHIP` it is freed when this returns.
            status: 0 when the peer has it or will have it, a negative result otherwise.
        """
        raise NotImplementedError


@cclass
class Endpoint:
    """A peer (`proc`) as one module (`module`) reaches it."""

    module: BtlModule
    proc: Proc
    __slots__ = tuple(__annotations__)

    def __init__(self, module: BtlModule, proc: Proc) -> None:
        self.module = module
        self.proc = proc

    @ccall
    def describe(self) -> str:
        """The path, for people."""
        return f"{self.module.name} {self.module.path(self).decode()}".rstrip()

    @ccall
    def ends(self) -> tuple[str, str, str]:
        """Interface it leaves by, its address, and the peer's; all empty without a network."""
        return "", "", ""


@recycled
@cclass
class Descriptor:
    """One fragment on its way out.

    Attributes:
        segment: the module's memory: header, then payload unless that is sent in place.
        payload: the caller's memory that follows `segment` on the wire, or None.
        payload_size: payload bytes taken from the convertor by `prepare_src`.
        flags: descriptor flags.
        order: ordering tag.
        callback: told on completion, or None.
        context: the PML's own.
        tag: it is sent with; set by `send`.
    """

    callback: CompletionCallback | None
    context: object | None
    flags: int
    order: int
    payload: memoryview[int] | None
    payload_size: int
    segment: memoryview[int]
    tag: int
    __slots__ = tuple(__annotations__)

    def __init__(self, segment: memoryview, flags: int, order: int) -> None:
        self.prepare(segment, flags, order)

    @ccall
    def prepare(self, segment: memoryview, flags: int, order: int) -> None:
        """Set what it begins with, also if used again."""
        self.segment = segment
        self.payload = None
        self.payload_size = 0
        self.flags = flags
        self.order = order
        self.callback = None
        self.context = None
        self.tag = 0


@cclass
class ErrorCallback:
    """Told when a module notices that a path is gone."""

    __slots__ = ()

    @ccall
    def failed(self, module: BtlModule, flags: int, proc: Proc | None, reason: str) -> None:
        """A path failed: to `proc`, or of the whole module when that is None.

        Args:
            module: whose path it was.
            flags: `ERROR_NONFATAL` when another path may do, else `ERROR_FATAL`.
            proc: the peer, or None for every peer.
            reason: in words.
        """
        raise NotImplementedError

    @ccall
    def returned(self, module: BtlModule, proc: Proc, tag: int, fragment: memoryview) -> None:
        """What was completed and may not have arrived, after `failed`; by default it is lost.

        Args:
            module: that took it.
            proc: it was sent to.
            tag: it was sent with.
            fragment: header and payload; valid until this returns.
        """

    @ccall
    def healed(self, module: BtlModule, proc: Proc) -> None:
        """A path that had failed can be used again; by default it is not."""


@cclass
class BtlModule(Poller):
    """One way to reach peers. In-tree and strangers' modules derive from it.

    Attributes:
        name, context: of the component; the rank it works for.
        eager_limit: bytes of a fragment that needs no rendezvous, PML header included.
        rndv_eager_limit: bytes of payload a rendezvous carries at most.
        max_send_size: bytes of any fragment, PML header included.
        rdma_pipeline_send_length, rdma_pipeline_frag_size, min_rdma_pipeline_size: bytes.
        exclusivity: only modules of the highest class that reaches a peer are used for it.
        latency: us, to choose which are used for small messages.
        lend_least: bytes of payload from which on `lend` may be worth it.
        bandwidth: Mbit/s, to share large messages out.
        flags: what it can do.
        atomic_flags: which atomic operations it can do (`btl_base/atomics.py`).
        get_limit, put_limit: bytes one get or put moves at most.
        get_alignment, put_alignment: of addresses and sizes, bytes.
        registration_handle_size: bytes of a registration handle as peers get it.
        local_registration_threshold: puts and gets of up to so many bytes need no local handle.
        registration_free: registering memory costs nothing worth hiding behind a transfer.
        split_least: bytes from which on both ranks move half, if the sender waits; 0 for never.
    """

    atomic_flags: int
    bandwidth: int
    context: RankContext
    eager_limit: int
    error_callback: ErrorCallback | None
    exclusivity: int
    flags: int
    get_alignment: int
    get_limit: int
    latency: int
    lend_least: int
    local_registration_threshold: int
    max_send_size: int
    min_rdma_pipeline_size: int
    name: str
    put_alignment: int
    put_limit: int
    rdma_pipeline_frag_size: int
    rdma_pipeline_send_length: int
    registration_free: bool
    registration_handle_size: int
    rndv_eager_limit: int
    split_least: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, name: str, context: RankContext, values: object = None, flags: int = SEND
    ) -> None:
        """Make a module for one rank.

        Args:
            name: of the component.
            context: the rank.
            values: those of `common_parameters` to set the attributes from, or None.
            flags: what it can do.
        """
        self.name = name
        self.context = context
        self.eager_limit = self.rndv_eager_limit = self.max_send_size = 0
        self.rdma_pipeline_send_length = self.rdma_pipeline_frag_size = 0
        self.min_rdma_pipeline_size = 0
        self.exclusivity = EXCLUSIVITY_DEFAULT
        self.latency = self.bandwidth = 0
        self.flags = flags
        self.atomic_flags = 0
        self.get_limit = self.put_limit = self.registration_handle_size = 0
        self.get_alignment = self.put_alignment = 1
        self.local_registration_threshold = self.split_least = 0
        self.lend_least = SIZE_MAX
        self.registration_free = False
        self.error_callback = None
        if values is not None:
            apply_common(self, values)
            if self.flags & PUT:  # reference openmpi.md 3.12
                least = self.eager_limit + self.rdma_pipeline_send_length
                self.min_rdma_pipeline_size = max(self.min_rdma_pipeline_size, least)

    @ccall
    def add_procs(self, procs: Sequence[Proc]) -> list[Endpoint | None]:
        """Say which of `procs` can be reached: an endpoint each, or None.

        May be called again, for other peers or for the same. Only a BTL that reaches nobody
        else has an endpoint for the own rank. By default each other rank is what `reach` says.
        """
        own = self.context.me
        return [None if proc is own else self.reach(proc) for proc in procs]

    @ccall
    def reach(self, proc: Proc) -> Endpoint | None:
        """The endpoint for one other rank, the same each time, or None: for `add_procs`."""
        raise NotImplementedError

    @ccall
    def del_procs(self, endpoints: Sequence[Endpoint]) -> None:
        """Give endpoints back."""

    @ccall
    def alloc(self, endpoint: Endpoint, order: int, size: int, flags: int) -> Descriptor | None:
        """A descriptor whose segment has `size` bytes, or None when there is none now.

        By default fresh private memory, while `has_room` says so.
        """
        if not self.has_room(endpoint):
            return None
        return Descriptor(memoryview(bytearray(size)), flags, order)

    @ccall
    def has_room(self, endpoint: Endpoint) -> bool:
        """Whether one more fragment to a peer may be begun: for `alloc`. By default always."""
        return True

    @ccall
    def free(self, descriptor: Descriptor) -> None:
        """Give back a descriptor that was not sent."""

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
        """A descriptor with room for a header, and payload; None when there is none now.

        By default one from `alloc` with a copy of as much payload as `max_send_size` allows.

        Args:
            endpoint: where it will go.
            convertor: the message.
            offset: its first byte to send.
            order: ordering tag, or `NO_ORDER`.
            flags: descriptor flags.
            reserve: bytes to leave for the PML's header at the start of `segment`.
            size: payload bytes wanted; fewer may be taken, see `payload_size`.
        """
        size = min(size, convertor.size - offset, self.max_send_size - reserve)
        descriptor = self.alloc(endpoint, order, reserve + size, flags)
        if descriptor is not None and size > 0:
            descriptor.payload_size = convertor.pack(offset, descriptor.segment[reserve:])
        return descriptor

    @ccall
    def send(self, endpoint: Endpoint, descriptor: Descriptor, tag: int) -> int:
        """Send a fragment. See the module's docstring for the results."""
        raise NotImplementedError

    @ccall
    def counters(self) -> dict[str, int]:
        """What it has counted, by name; a transport of its own has `retransmissions`."""
        return {}

    @ccall
    def finish(self, endpoint: Endpoint, descriptor: Descriptor) -> int:
        """For a `send` that is done already: tell who wants to be told, return `COMPLETED`."""
        if descriptor.flags & SEND_ALWAYS_CALLBACK and descriptor.callback is not None:
            descriptor.callback.completed(self, endpoint, descriptor, 0)
        return COMPLETED

    @ccall
    def dispatch(self, endpoint: Endpoint, tag: int, fragment: memoryview) -> None:
        """For `poll`: hand a fragment that has arrived to whoever registered for its tag."""
        handler = self.context.active_messages.handlers[tag]
        assert handler is not None, f"nobody registered for tag {tag}"
        handler.received(self, endpoint, tag, fragment)

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
        """Send header and payload at once, copying both; `NOT_AVAILABLE` when it cannot now.

        Args:
            endpoint: where it goes.
            convertor: the message; its first bytes are the payload.
            header: the PML's.
            payload_size: bytes of payload; with the header at most `eager_limit`.
            order: ordering tag, or `NO_ORDER`.
            flags: descriptor flags.
            tag: it is sent with.
        """
        return NOT_AVAILABLE

    @ccall
    def lend(
        self, endpoint: Endpoint, memory: memoryview, header: bytes, tag: int
    ) -> Request | None:
        """Send header and payload, which the peer may read where it is (`ReceiveCallback.lent`).

        The peer has all of it as soon as it looks, whether the PML there wants it or not. Nobody
        calls it for less than `lend_least` bytes; no module has to have it.

        Args:
            endpoint: where it goes.
            memory: the payload; the caller's again when the request is complete.
            header: the PML's; with the payload at most `eager_limit`.
            tag: it is sent with.

        Returns:
            A request; None when it cannot be lent now.
        """
        return None

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
        """Write `local` into the peer's registered memory. Modules with the `PUT` flag.

        Args:
            endpoint: the peer.
            local: what to write; must stay as it is until the completion.
            remote_address: where to, in bytes from the beginning of the memory registered there.
            local_handle: of memory that contains `local`; None where
                `local_registration_threshold` allows that.
            remote_handle: bytes of the peer's handle.
            flags: descriptor flags; without `IN_ORDER` a put is complete when it is in the peer's
                memory.
            order: ordering tag, or `NO_ORDER`.
            callback: told on completion, as for `send`.
            context: the PML's own, handed to the callback.
        """
        return NOT_AVAILABLE

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
        """Read the peer's registered memory into `local`. Modules with the `GET` flag.

        The arguments are those of `put`; `local` is undefined until the completion.
        """
        return NOT_AVAILABLE

    @ccall
    def get_now(
        self, endpoint: Endpoint, local: memoryview, remote_address: U64, remote_handle: bytes
    ) -> int:
        """A `get` that is done when this returns, and that nobody else is told of.

        Returns:
            `COMPLETED`. Else the bytes of `local` are undefined, and `get` will say why, or do it.
        """
        return NOT_AVAILABLE

    @ccall
    def atomic(
        self,
        endpoint: Endpoint,
        operation: AtomicOperation,
        callback: CompletionCallback,
        context: object,
    ) -> int:
        """Change a word of the peer's memory. Modules with ATOMIC_OPS; to fetch, ATOMIC_FOPS.

        Results, completion, `callback` and `context` are those of `put`; the descriptor's segment
        is `operation.local`, or empty. What `atomic_flags` lack is `NOT_AVAILABLE`.
        """
        return NOT_AVAILABLE

    @ccall
    def path(self, endpoint: Endpoint) -> bytes:
        """Names the path to a peer: the same bytes at both ends, and of no other path.

        A module that may have siblings of its name has to say it, or put and get of one message
        use one of them only. Empty: there are no siblings, or it is not known.
        """
        return b""

    @ccall
    def register_mem(self, endpoint: Endpoint | None, memory: memoryview, flags: int) -> object:
        """Register memory for put and get; `bytes()` of the handle goes to the peer.

        `flags` say what for (`REMOTE_READ`, ...). None says that there is no room for it now.
        The memory belongs to the caller, who keeps it until `deregister_mem`.
        """
        raise NotImplementedError

    @ccall
    def deregister_mem(self, handle: object) -> None:
        """Give a registration back."""

    @ccall
    def flush(self, endpoint: Endpoint | None) -> None:
        """Complete outstanding RDMA to `endpoint`, or to all."""

    @ccall
    def register_error(self, callback: ErrorCallback) -> None:
        """Tell `callback` when a path fails."""
        self.error_callback = callback

    @ccall
    def begin_failover(self) -> bool:
        """Keep the failover obligations from now on, whatever that costs. Returns whether it does.

        PMLs that fail over call it before the first peer is asked for. By default it is the flag.
        """
        return bool(self.flags & FAILOVER_SUPPORT)

    def is_up(self, endpoint: Endpoint) -> bool:
        """Whether what is sent to a peer goes at once: no connection has to be made before."""
        return True

    def peer_gave_up(self, proc: Proc, path: bytes, number: int) -> None:
        """A peer says over another rail that a path has failed at its end.

        Args:
            proc: the peer.
            path: as `path` has it, which may be one of a sibling's.
            number: which of the connections, or generations, of that path has.
        """

    @ccall
    def finalize(self) -> None:
        """Deliver what was accepted, then give everything back. May progress meanwhile."""
