"""The fabric interface of a NIC: libfabric's reliable datagram endpoints, with RMA and atomics.

    FabricNic --infos(hints)--> [FabricInfo]
              --domain(info)--> FabricDomain --register()--------> MemoryRegion (key, descriptor)
                                             --address_vector()--> AddressVector
                                             --completion_queue()> CompletionQueue
                                             --endpoint()--------> FabricEndpoint
                                             --scalable_endpoint() > ScalableEndpoint, of contexts

The device is a library of providers, and which provider can do what is asked by `infos`. Names,
bits and numbers are libfabric's own, so that who knows one knows the other.

**Reliable, not connected.** An endpoint reaches every peer in its address vector. What is sent
arrives once or its completion tells an error; order holds only where the provider says so.

**Work.** A call that posts work returns False where the provider says FI_EAGAIN: its queue is full,
or a connection is being made. Then nothing was posted; read the completion queue, which is what
moves things, and try again. Other refusals raise `FabricError`. Each piece of posted work ends as
one completion with its context; `inject` has none, and gives the memory back when it returns.

**Memory.** What is posted belongs to the device until its completion has been read; the
implementation keeps buffers, contexts and registrations alive until then. `descriptor` names the
local memory where the provider wants it registered; this interface takes None otherwise.

**Completion** means what the work was posted with: with DELIVERY_COMPLETE that the peer's memory
has it, otherwise that the local buffer may be used again. Whether a provider honours the flag is
`FabricInfo.delivery_complete`.

**Progress** may be manual: then both ends have to read their completion queues for anything to
move, the target of a one-sided operation as well.

**Remote memory** is named by a key and an address: with VIRT_ADDR the virtual address, otherwise
the offset from the beginning of the region. `MemoryRegion.base` is what to add to such an offset
in either case. With PROV_KEY the provider chooses the key, otherwise whoever registers.

Source: reference ofi.md B1, A3 to A6.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import NamedTuple

from ompy.compiled import U64, ccall, cclass
from ompy.frameworks.nic.base import Nic, NicError
from ompy.net.base import Link


class Caps(IntFlag):
    """What an endpoint can do, and flags of operations. reference ofi.md B1."""

    MSG = 1 << 1
    RMA = 1 << 2
    TAGGED = 1 << 3
    ATOMIC = 1 << 4
    READ = 1 << 8
    WRITE = 1 << 9
    RECV = 1 << 10
    SEND = 1 << 11
    REMOTE_READ = 1 << 12
    REMOTE_WRITE = 1 << 13
    COMPLETION = 1 << 24
    INJECT = 1 << 25
    TRANSMIT_COMPLETE = 1 << 27
    DELIVERY_COMPLETE = 1 << 28
    SOURCE = 1 << 57


class Mode(IntFlag):
    """What a provider asks of the application."""

    CONTEXT2 = 1 << 52
    MSG_PREFIX = 1 << 58
    CONTEXT = 1 << 59


class MrMode(IntFlag):
    """How memory is registered."""

    BASIC = 1
    SCALABLE = 2
    LOCAL = 4
    RAW = 8
    VIRT_ADDR = 16
    ALLOCATED = 32
    PROV_KEY = 64
    MMU_NOTIFY = 128
    RMA_EVENT = 256
    ENDPOINT = 512
    HMEM = 1024


class Progress(IntEnum):
    """Who moves things."""

    UNSPEC = 0
    AUTO = 1
    MANUAL = 2


class Datatype(IntEnum):
    """Of an atomic's words. libfabric: enum fi_datatype."""

    INT32 = 4
    UINT32 = 5
    INT64 = 6
    UINT64 = 7


class Op(IntEnum):
    """What an atomic computes. libfabric: enum fi_op."""

    MIN = 0
    MAX = 1
    SUM = 2
    PROD = 3
    LOR = 4
    LAND = 5
    BOR = 6
    BAND = 7
    LXOR = 8
    BXOR = 9
    ATOMIC_READ = 10
    ATOMIC_WRITE = 11
    CSWAP = 12


class AtomicCall(IntEnum):
    """The three ways to call an atomic."""

    ATOMIC = 0
    FETCH = 1
    COMPARE = 2


class FabricError(NicError):
    """The library or a provider refuses.

    Attributes:
        errno: positive; an operating system's number or one of libfabric's own (from 256).
    """

    def __init__(self, errno: int, text: str) -> None:
        super().__init__(text)
        self.errno = errno


class Hints(NamedTuple):
    """What an endpoint has to be able to do.

    Attributes:
        caps: needed.
        mode: what the caller is ready to do for the provider.
        mr_mode: what the caller is ready to do when it registers memory.
        op_flags: default flags of what is transmitted.
        provider: only this one; empty for all.
        progress: who should move things.
        datagram: an unreliable datagram endpoint instead of a reliable one.
    """

    caps: Caps
    mode: Mode = Mode(0)
    mr_mode: MrMode = MrMode(0)
    op_flags: Caps = Caps(0)
    provider: str = ""
    progress: Progress = Progress.UNSPEC
    datagram: bool = False


class FabricInfo(NamedTuple):
    """One way to do what was asked for: a provider on one domain.

    Attributes:
        provider: its name, `tcp;ofi_rxm` for one on top of another.
        fabric, domain: names of the network and of the device in it.
        caps, mode, mr_mode, op_flags: what it does and asks for.
        delivery_complete: it honours DELIVERY_COMPLETE when asked to, as far as is known.
        inject_size: bytes `inject` takes at most.
        tx_size, rx_size: work entries of a transmit and a receive context.
        max_message: bytes of one message or transfer.
        tx_contexts_max: transmit contexts of a scalable endpoint; 1: there is none.
        progress: of data.
        version: of the interface that is in use, `1.17`.
        source: address it would have, as bytes; empty when not known before it is opened.
        native: the implementation's own.
        exposed: what strangers who reach its ports can do to a process that uses it, in words;
            empty where nothing is known. Nobody takes such a provider who was not told to.
    """

    provider: str
    fabric: str
    domain: str
    caps: Caps
    mode: Mode
    mr_mode: MrMode
    op_flags: Caps
    delivery_complete: bool
    inject_size: int
    tx_size: int
    rx_size: int
    max_message: int
    tx_contexts_max: int
    progress: Progress
    version: str
    source: bytes
    native: object
    exposed: str = ""


@cclass
class Completion:
    """One piece of work that is done.

    Attributes:
        context: what it was posted with; None with an error that belongs to no work.
        size: bytes received; of other work 0.
        error: 0, or what went wrong (positive).
        detail: libfabric's and the provider's own words about an error; else empty.
    """

    context: object
    detail: str
    error: int
    size: int
    __slots__ = tuple(__annotations__)

    def __init__(self, context: object, size: int = 0, error: int = 0, detail: str = "") -> None:
        self.context = context
        self.size = size
        self.error = error
        self.detail = detail


class MemoryRegion:
    """Memory that the device and, with its key, peers may use, until `close`.

    Attributes:
        memory: which.
        key: 64 bits.
        base: add it to an offset from the beginning to get the address for an operation.
        descriptor: names it in local work.
    """

    memory: memoryview
    key: int
    base: int
    descriptor: object

    def close(self) -> None:
        """Take the memory back."""
        raise NotImplementedError


class AddressVector:
    """The peers of endpoints."""

    def insert(self, name: bytes) -> int:
        """The address for the endpoint called `name` by its peer.

        Raises:
            FabricError: there is no such address.
        """
        raise NotImplementedError

    def remove(self, address: int) -> None:
        """Forget a peer; nothing may be under way to it."""
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; its endpoints are closed already."""
        raise NotImplementedError


@cclass
class CompletionQueue:
    """Where the work of endpoints ends."""

    __slots__ = ()

    @ccall
    def read(self, most: int) -> list[Completion]:
        """Up to `most` completions, good and bad; makes the provider move things.

        Raises:
            FabricError: the queue has overflowed (FI_EOVERRUN) or the device is gone.
        """
        raise NotImplementedError

    def arm(self) -> bool | None:
        """Before the rank sleeps: see to it that news will wake it.

        Returns:
            True: it will be woken. False: there is something to read now. None: this provider has
            nothing that could wake anybody, or has timers of its own, so look again soon.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; its endpoints are closed already."""
        raise NotImplementedError


@cclass
class FabricEndpoint:
    """What sends and receives: an endpoint, or one context of a scalable endpoint."""

    __slots__ = ()

    @ccall
    def send(self, memory: memoryview, descriptor: object, to: U64, context: object) -> bool:
        """Send one message to a peer's posted receive."""
        raise NotImplementedError

    @ccall
    def inject(self, memory: memoryview, to: U64) -> bool:
        """Send up to `inject_size` bytes without a completion; the memory is free at once."""
        raise NotImplementedError

    @ccall
    def receive(self, memory: memoryview, descriptor: object, context: object) -> bool:
        """Post a buffer for one message of any peer."""
        raise NotImplementedError

    @ccall
    def write(
        self,
        memory: memoryview,
        descriptor: object,
        to: U64,
        address: U64,
        key: U64,
        context: object,
    ) -> bool:
        """Write into a peer's memory."""
        raise NotImplementedError

    @ccall
    def read(
        self,
        memory: memoryview,
        descriptor: object,
        to: U64,
        address: U64,
        key: U64,
        context: object,
    ) -> bool:
        """Read a peer's memory."""
        raise NotImplementedError

    @ccall
    def atomic(
        self,
        operand: memoryview,
        to: U64,
        address: U64,
        key: U64,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """Change one word of a peer's memory.

        Args:
            operand: as many bytes as the word has; not to be changed until the completion.
            to: the peer.
            address: of the word.
            key: of its region.
            datatype: of it.
            op: any but ATOMIC_READ and CSWAP.
            context: handed back in the completion.
        """
        raise NotImplementedError

    @ccall
    def fetch_atomic(
        self,
        operand: memoryview,
        result: memoryview,
        descriptor: object,
        to: U64,
        address: U64,
        key: U64,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """Change one word of a peer's memory; the old value comes to `result`."""
        raise NotImplementedError

    @ccall
    def compare_atomic(
        self,
        operand: memoryview,
        compare: memoryview,
        result: memoryview,
        descriptor: object,
        to: U64,
        address: U64,
        key: U64,
        datatype: Datatype,
        op: Op,
        context: object,
    ) -> bool:
        """Write `operand` if the word is `compare` (CSWAP); the old value comes to `result`."""
        raise NotImplementedError

    def atomic_valid(self, call: AtomicCall, datatype: Datatype, op: Op) -> bool:
        """Whether the provider can do it."""
        raise NotImplementedError

    def enable(self) -> None:
        """Begin: before anything is posted."""
        raise NotImplementedError

    def name(self) -> bytes:
        """Its address for peers' `AddressVector.insert`; of a context that of the whole."""
        raise NotImplementedError

    def close(self) -> None:
        """Give it back: work under way is lost or ends badly."""
        raise NotImplementedError


class ScalableEndpoint:
    """One address with several transmit and receive contexts."""

    def context(self, index: int, queue: CompletionQueue) -> FabricEndpoint:
        """The transmit and receive context of that number, reporting to `queue`."""
        raise NotImplementedError

    def enable(self) -> None:
        """Begin, before any context does."""
        raise NotImplementedError

    def name(self) -> bytes:
        """Its address for peers."""
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; its contexts are closed already."""
        raise NotImplementedError


class FabricDomain:
    """The resources of one info that this process has."""

    info: FabricInfo

    def register(self, memory: memoryview, access: Caps, key: int) -> MemoryRegion:
        """Let the device use `memory`, contiguous bytes that the caller keeps.

        Args:
            memory: which.
            access: READ, WRITE, SEND, RECV, REMOTE_READ and REMOTE_WRITE.
            key: for peers, unless the provider chooses; of no other region of the domain.

        Raises:
            FabricError: the device has no room, the key is taken, or access is refused.
        """
        raise NotImplementedError

    def address_vector(self) -> AddressVector:
        """An empty one."""
        raise NotImplementedError

    def completion_queue(self, depth: int = 0) -> CompletionQueue:
        """A queue for `depth` completions; 0 for what the provider likes."""
        raise NotImplementedError

    def endpoint(self, vector: AddressVector, queue: CompletionQueue) -> FabricEndpoint:
        """An endpoint that reports all to `queue`; not enabled."""
        raise NotImplementedError

    def scalable_endpoint(self, vector: AddressVector, contexts: int) -> ScalableEndpoint:
        """One with `contexts` transmit and receive contexts; not enabled.

        Raises:
            FabricError: the provider has none, or not so many contexts.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; all made of it is closed already."""
        raise NotImplementedError


class FabricNic(Nic):
    """A library of fabric providers.

    Attributes:
        clocked: it has a clock of its own. Whoever builds another NIC on it says no before a domain
            is opened, where that NIC's clock has been turned off.
        carries: the link of that NIC, where its clock runs: what is sent goes over that link, and
            there is no other clock. None: its own, or with no clock the network's.
    """

    clocked: bool = True
    carries: Link | None = None

    def infos(self, hints: Hints) -> Sequence[FabricInfo]:
        """What can do all of `hints`, the provider's best first; none when nothing can.

        Raises:
            FabricError: the library cannot say.
        """
        raise NotImplementedError

    def domain(self, info: FabricInfo) -> FabricDomain:
        """Open the fabric and domain of an info that `infos` of this device returned.

        Raises:
            FabricError: it cannot be opened.
        """
        raise NotImplementedError
