"""The verbs interface of a NIC: reliable-connected queue pairs with remote memory access.

    VerbsNic --domain()--> ProtectionDomain --register()------> MemoryRegion (lkey, rkey)
                                            --shared_queue()--> SharedReceiveQueue
             --completion_queue()-> CompletionQueue
                                            --queue_pair()----> QueuePair

**Work** is posted to a queue and is done some time later, in the order it was posted. Each piece
that is signaled, each receive, and each piece that fails is told once in a completion queue. A
queue has as many entries as it was made with; posting to a full one is an error of the caller, who
counts. A completion queue that overflows is lost with every queue pair on it (`CQ_ERROR`).

**Connecting.** A queue pair is made in RESET. Its maker takes it to INIT, exchanges `Destination`s
with the peer by whatever means, then takes it to RTR, from when it receives, and to RTS, from
when it sends. The device says nothing to the peer: two ends that were told each other's numbers
are connected. `ALLOWED` has the transitions; each but to RESET and ERR says what it needs.

**Reliable.** What is sent arrives once, in order, or the queue pair fails. The device counts its
packets and sends again what is not acknowledged within the timeout, `retry_count` times; a
receiver without a posted buffer answers "not ready", and the sender waits `rnr_timer` and tries
again, `rnr_retry` times (7: for ever). Then the piece of work completes with `RETRY_EXC_ERR` or
`RNR_RETRY_EXC_ERR`, the queue pair goes to ERR, and everything else posted to either of its queues
completes with `WR_FLUSH_ERR`. A failed send may have arrived all the same.

**A completed send** means that the peer's device has it: a message lies in a receive buffer of the
peer, a write in its memory.

**Remote memory.** A write, read or atomic names the peer's memory by address and rkey. The peer's
device checks rkey, protection domain, bounds and access before it touches anything, and answers
with a NAK otherwise: `REM_ACCESS_ERR` here, and both queue pairs go to ERR. Local memory is checked
the same way by its lkey when the work is done: `LOC_PROT_ERR`. Addresses are the region's own:
`MemoryRegion.address` is where it begins.

**Busy peers.** A device answers without its process on real hardware. An emulated one whose
process computes cannot: it must not take that for a dead wire (README of `frameworks`, "Whether a
rail is dead"), so timeouts count as tries only when the path to the peer is not known to be alive.

Source: reference openmpi.md 5; the names are those of libibverbs.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, IntFlag
from typing import Final, NamedTuple

from ompy.frameworks.nic.base import Nic


class State(Enum):
    """Of a queue pair."""

    RESET = "RESET"
    INIT = "INIT"
    RTR = "RTR"  # ready to receive
    RTS = "RTS"  # ready to send
    SQE = "SQE"  # the send queue has failed; a reliable-connected queue pair goes to ERR instead
    ERR = "ERR"


# what `QueuePair.modify` may do; RESET and ERR may be asked for in any state
ALLOWED: Final = frozenset(
    {
        (State.RESET, State.INIT),
        (State.INIT, State.INIT),
        (State.INIT, State.RTR),
        (State.RTR, State.RTS),
        (State.RTS, State.RTS),
        (State.SQE, State.RTS),
    }
)


class Opcode(Enum):
    """What a piece of work, or its completion, is."""

    SEND = "send"
    RDMA_WRITE = "RDMA write"
    RDMA_READ = "RDMA read"
    FETCH_AND_ADD = "fetch and add"
    COMPARE_AND_SWAP = "compare and swap"
    RECEIVE = "receive"


class Status(Enum):
    """How a piece of work ended; names as libibverbs' IBV_WC_*."""

    SUCCESS = "success"
    LOC_LEN_ERR = "local length error"  # a message longer than the buffer, or than the device's
    LOC_PROT_ERR = "local protection error"
    WR_FLUSH_ERR = "work request flushed"
    REM_INV_REQ_ERR = "remote invalid request"  # too long for the peer's buffer; no such operation
    REM_ACCESS_ERR = "remote access error"
    REM_OP_ERR = "remote operation error"
    RETRY_EXC_ERR = "transport retry counter exceeded"
    RNR_RETRY_EXC_ERR = "receiver-not-ready retry counter exceeded"
    FATAL_ERR = "device fatal"


class Access(IntFlag):
    """What a memory region may be used for; local reads always. Numbers as libibverbs'."""

    LOCAL_WRITE = 1
    REMOTE_WRITE = 2
    REMOTE_READ = 4
    REMOTE_ATOMIC = 8


class Destination(NamedTuple):
    """Where the other end of a connection is; it has `pack` for the modex.

    Attributes:
        lid: of the device, unique in the job: 16 bits.
        number: of the queue pair on that device: 24 bits.
        host: address of the device, as the network has it.
        port: of the device's socket.
        first_packet: number of the first packet that end will send: 24 bits.
    """

    lid: int
    number: int
    host: str
    port: int
    first_packet: int


class Timing(NamedTuple):
    """How long a queue pair tries.

    Attributes:
        timeout: 4.096 us * 2**timeout until a packet is sent again; 0 for never. 0 to 31.
        retry_count: how often, 0 to 7.
        rnr_retry: how often when the receiver is not ready, 0 to 7; 7: for ever.
        rnr_timer: what this end asks of a sender it is not ready for: code 0 to 31 of the
            specification (1: 10 us, 12: 640 us, 25: 61.44 ms, 0: 655.36 ms).
    """

    timeout: int
    retry_count: int
    rnr_retry: int
    rnr_timer: int


class Span(NamedTuple):
    """Local memory of a piece of work: bytes of a region.

    Attributes:
        memory: the bytes; they lie in the region of `lkey`. The caller keeps them as they are,
            or unread, until the completion.
        lkey: of their region; of an inline send it is not looked at.
    """

    memory: memoryview
    lkey: int


class SendWork(NamedTuple):
    """One entry of a send queue.

    Attributes:
        opcode: any but RECEIVE.
        spans: what is sent or written, one after the other; where what is read goes. Of an atomic
            one span of 8 bytes, for the old value.
        context: the caller's own, handed back in the completion.
        signaled: tell the completion; failures are told in any case.
        inline: the bytes are copied now, and the memory is the caller's again at once.
        remote_address, rkey: of the peer's memory, where it is concerned.
        compare, swap: operands of an atomic; `swap` is what FETCH_AND_ADD adds. 64 bits unsigned.
    """

    opcode: Opcode
    spans: Sequence[Span]
    context: object
    signaled: bool = True
    inline: bool = False
    remote_address: int = 0
    rkey: int = 0
    compare: int = 0
    swap: int = 0


class Completion(NamedTuple):
    """A piece of work that is done.

    Attributes:
        opcode: what it was. After a failure it says only whether it was a receive.
        status: how it ended; what is not SUCCESS has carried nothing that can be used.
        context: what it was posted with.
        size: bytes received or read.
        number: of the queue pair, which a shared receive queue does not tell otherwise.
        detail: of a failure, for people; else empty.
    """

    opcode: Opcode
    status: Status
    context: object
    size: int
    number: int
    detail: str = ""


class MemoryRegion:
    """Memory the device may use, until `close`.

    Attributes:
        memory: which.
        address: where it begins, as peers and work name it; no two regions of a device overlap,
            unless their memory does.
        lkey, rkey: 32 bits each; never used again for another region of the process.
        access: what for.
    """

    memory: memoryview
    address: int
    lkey: int
    rkey: int
    access: Access

    def close(self) -> None:
        """Take the memory back: work that names it from now on fails."""
        raise NotImplementedError


class CompletionQueue:
    """Where queue pairs report what is done."""

    def poll(self, most: int) -> list[Completion]:
        """Up to `most` completions, oldest first; makes the device look for news.

        Raises:
            NicError: the device is gone, or the queue has overflowed.
        """
        raise NotImplementedError

    def ready(self) -> bool:
        """Whether `poll` would find something now. A rank that sleeps is woken by news."""
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; its queue pairs are closed already."""
        raise NotImplementedError


class SharedReceiveQueue:
    """Receive buffers that several queue pairs take from.

    Attributes:
        depth: entries.
        posted: buffers in it now.
    """

    depth: int
    posted: int

    def post_receive(self, span: Span, context: object) -> None:
        """Give the device a buffer for one message. Raises NicError when the queue is full."""
        raise NotImplementedError

    def arm(self, limit: int) -> None:
        """Have SRQ_LIMIT_REACHED reported once, when fewer than `limit` buffers are left."""
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; its queue pairs are closed already."""
        raise NotImplementedError


class QueuePair:
    """One end of a connection.

    Attributes:
        number: on this device, 24 bits; unique while it lives, and not used again soon.
        state: of it.
        send_depth, receive_depth: work entries; the latter 0 with a shared receive queue.
        inline_max: bytes an inline send has room for.
    """

    number: int
    state: State
    send_depth: int
    receive_depth: int
    inline_max: int

    def here(self) -> Destination:
        """What the peer has to be told.

        Its `first_packet` is drawn when the queue pair is made, and again when it goes to RESET:
        packets of an earlier connection must not be taken for those of the next one.
        """
        raise NotImplementedError

    def modify(
        self, state: State, *, there: Destination | None = None, timing: Timing | None = None
    ) -> None:
        """Take it to another state.

        Args:
            state: to go to. RESET forgets all work without a word; ERR flushes it.
            there: the peer's end; RTR needs it.
            timing: RTR needs it for `rnr_timer`, RTS for the rest.

        Raises:
            NicError: no such transition, or something is missing for it.
        """
        raise NotImplementedError

    def post_send(self, work: SendWork) -> None:
        """Put an entry into the send queue. In ERR it completes with WR_FLUSH_ERR.

        Raises:
            NicError: the queue is full, the state is not RTS or ERR, inline bytes are too many, or
                the device is gone.
        """
        raise NotImplementedError

    def post_receive(self, span: Span, context: object) -> None:
        """Give the device a buffer for one message, from INIT on.

        Raises:
            NicError: the queue is full, there is a shared one instead, or the device is gone.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Destroy it: nothing completes any more."""
        raise NotImplementedError


class ProtectionDomain:
    """What may be used together: regions, queues, queue pairs."""

    def register(self, memory: memoryview, access: Access) -> MemoryRegion:
        """Let the device use `memory`, contiguous bytes that the caller keeps.

        Raises:
            NicError: the device has no room for it; it is read-only and to be written.
        """
        raise NotImplementedError

    def shared_queue(self, depth: int) -> SharedReceiveQueue:
        """A shared receive queue. Raises NicError when the device has no room for it."""
        raise NotImplementedError

    def queue_pair(
        self,
        send_queue: CompletionQueue,
        receive_queue: CompletionQueue,
        *,
        send_depth: int,
        receive_depth: int = 0,
        shared: SharedReceiveQueue | None = None,
        inline_max: int = 0,
    ) -> QueuePair:
        """A reliable-connected queue pair in RESET.

        Args:
            send_queue: told what became of sends.
            receive_queue: told what was received; may be the same.
            send_depth: entries of the send queue.
            receive_depth: entries of the receive queue, without `shared`.
            shared: of this domain; receives are taken from it.
            inline_max: bytes wanted for inline sends.

        Raises:
            NicError: the device has no room for it, or not so many entries.
        """
        raise NotImplementedError


class VerbsNic(Nic):
    """A NIC with reliable-connected queue pairs.

    Events beside those of every NIC: SRQ_LIMIT_REACHED and CQ_ERROR; LINK_DOWN and LINK_UP are the
    specification's PORT_ERR and PORT_ACTIVE.

    Attributes:
        lid: of the device, as `Destination.lid`.
        subnet: 64-bit prefix: two devices with the same one can reach each other.
        mtu: bytes of payload in one packet.
        depth_max, inline_max, queue_pairs_max: what there is at most.
        reads_max: RDMA reads and atomics of one queue pair under way; more wait.
        failover: whoever uses it may have other paths to go on over, so that it is better to know
            soon when one is dead; theirs to set, before anything is sent.
    """

    lid: int
    subnet: int
    mtu: int
    depth_max: int
    inline_max: int
    queue_pairs_max: int
    reads_max: int
    failover: bool = False

    def completion_queue(self, depth: int) -> CompletionQueue:
        """A completion queue with room for `depth` completions. Raises NicError for no room."""
        raise NotImplementedError

    def domain(self) -> ProtectionDomain:
        """A protection domain of its own, each time."""
        raise NotImplementedError
