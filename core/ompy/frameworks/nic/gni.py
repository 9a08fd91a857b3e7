"""The gni interface of a NIC: Cray's generic network interface of Gemini and Aries.

    GniNic --domain()--> CommunicationDomain --register()---------> MemoryHandle
                                             --completion_queue()-> CompletionQueue
                                             --endpoint()---------> Endpoint, bound to one peer

A call answers with a `ReturnCode`; it raises only for what is a defect of the caller. The device
loses nothing. It runs out of things instead, and says so: memory handles (ERROR_RESOURCE from
`register`), posts under way (ERROR_RESOURCE from a post), mailbox credits (NOT_DONE from
`smsg_send`), entries of a completion queue (ERROR_RESOURCE from `get_event`: events are lost
then, what they were about is not). Whoever uses it tries again, after having polled.

**Posts.** `post_fma` has the processor move the bytes, `post_rdma` the block transfer engine. Both
take a `PostDescriptor`, which is the device's until its event in the endpoint's completion queue
was read and `completed` gave it back; posts of one endpoint may complete in any order. With
REMOTE_EVENT a put tells the queue the peer bound to its memory as well, and that event may be there
before the bytes are.

**Alignment.** A get needs `GET_ALIGNMENT` of the remote address and the length, and of the local
address too where `local_get_aligned`. A put needs none.

**Progress** is made by reading a completion queue that is empty, and in each round of the rank's
engine. A rank sleeps when nothing is new: a poller that leaves events in a queue returns how many
it has taken, so that the engine asks it again.

**Short messages** (SMSG) go to a mailbox per peer with slots of fixed size and credits of its own;
an event per message comes to the queue of the domain's mailboxes, perhaps in another order than
the messages, which `smsg_next` has in theirs: take all there are at each event. The shared message
queue (MSGQ) is one mailbox of a host for all, of messages up to `MSGQ_MAX` bytes, and not to peers
of the own host.

**Order.** Bytes of different posts, and of one post with relaxed ordering, may become visible in
any order, but a sync flag does after all of its put (`FMA_PUT_W_SYNCFLAG`).

**Threads.** None of the calls may be made while another one runs: users have one big lock. The
engine gives the device its turn with the rank's lock held, so that is the one to take.

Source: seed gasnet (Background, RDMA, Event Processing); reference gasnet.md 3.
"""

from __future__ import annotations

from enum import Enum, IntFlag
from typing import Final, NamedTuple

from ompy.frameworks.nic.base import Nic

GET_ALIGNMENT: Final = 4  # reference gasnet.md 3: bytes
MSGQ_MAX: Final = 128  # seed gasnet: bytes of a shared message queue's message
RDMA_MAX: Final = (1 << 32) - 1  # reference gasnet.md 3: bytes of one block transfer
CQ_DATA_BITS: Final = 56  # arbitrary: what fits beside an event's kind in one 64-bit entry


class ReturnCode(Enum):
    """How a call went. SUCCESS, NOT_DONE and ERROR_RESOURCE are daily business."""

    SUCCESS = "success"
    NOT_DONE = "not done"
    INVALID_PARAM = "invalid parameter"
    ERROR_RESOURCE = "out of a resource"
    PERMISSION_ERROR = "permission denied"
    ALIGNMENT_ERROR = "not aligned"
    INVALID_STATE = "wrong state"
    SIZE_ERROR = "too large"
    TRANSACTION_ERROR = "transaction failed"


class PostType(Enum):
    """What a post does."""

    FMA_PUT = "fma put"
    FMA_GET = "fma get"
    FMA_PUT_W_SYNCFLAG = "fma put, then a flag"
    RDMA_PUT = "rdma put"
    RDMA_GET = "rdma get"
    AMO = "atomic"
    FETCHING_AMO = "atomic that fetches"
    CQWRITE = "completion queue write"


class AtomicCommand(Enum):
    """What an AMO computes, on words of 64 bits; those of Aries also on 32."""

    ADD = "add"
    AND = "and"
    OR = "or"
    XOR = "xor"
    SWAP = "swap"  # Aries only
    CSWAP = "compare and swap"
    MIN = "min"  # Aries only; of numbers with a sign
    MAX = "max"  # Aries only; of numbers with a sign


class CqMode(IntFlag):
    """Which events a post makes."""

    SILENT = 0
    GLOBAL_EVENT = 1  # here, once the peer's memory has it, or the local memory what was read
    LOCAL_EVENT = 2  # here, once the local memory may be used again
    REMOTE_EVENT = 4  # at the peer, in the queue bound to its memory


class Ordering(Enum):
    """In which order the bytes of puts into a region become visible there."""

    STRICT = "strict"
    RELAXED = "relaxed"
    DEFAULT = "default"


class EventKind(Enum):
    """What an event is about."""

    POST = "post"  # one of ours is done
    REMOTE = "remote"  # a peer's put into memory bound to this queue
    SMSG = "smsg"  # a short message
    MSGQ = "msgq"  # a message in the shared queue
    CQWRITE = "cq write"  # a peer's CQWRITE


class Event(NamedTuple):
    """One entry of a completion queue.

    Attributes:
        kind: what it is about.
        peer: rank of the endpoint it concerns; of a REMOTE or CQWRITE who posted it.
        data: of a CQWRITE what was written; else 0.
        post: of a POST the descriptor, the caller's again; else None.
        status: of a POST how it ended; else SUCCESS.
    """

    kind: EventKind
    peer: int
    data: int = 0
    post: PostDescriptor | None = None
    status: ReturnCode = ReturnCode.SUCCESS


class MemoryHandle(NamedTuple):
    """Names registered memory to peers: two words of 64 bits, nothing to anybody else.

    Attributes:
        qword1, qword2: as they go over the wire.
    """

    qword1: int
    qword2: int


class PostDescriptor:
    """One post.

    Attributes:
        type: what to do.
        cq_mode: which events it makes.
        local: the memory here: what is put, or where what is got goes. Of a FETCHING_AMO as
            many bytes as the word has, for the old value.
        local_handle: of registered memory that contains `local`; only block transfers need it.
        remote_address: bytes from the beginning of the memory registered at the peer.
        remote_handle: of that memory.
        command: of an AMO.
        amo_size: of an AMO, bytes of the word: 8, or 4.
        first_operand, second_operand: of an AMO; of CSWAP what to compare with, and the new value.
        sync_flag: of FMA_PUT_W_SYNCFLAG the word written last.
        sync_flag_address: where to, like `remote_address`.
        cq_data: of a CQWRITE, up to `CQ_DATA_BITS` bits.
        context: the caller's own.
    """

    __slots__ = (
        "amo_size",
        "command",
        "context",
        "cq_data",
        "cq_mode",
        "first_operand",
        "local",
        "local_handle",
        "remote_address",
        "remote_handle",
        "second_operand",
        "sync_flag",
        "sync_flag_address",
        "type",
    )

    def __init__(self, type_: PostType = PostType.FMA_PUT) -> None:
        self.type = type_
        self.cq_mode = CqMode.GLOBAL_EVENT
        self.local = memoryview(b"")
        self.local_handle: MemoryHandle | None = None
        self.remote_address = 0
        self.remote_handle: MemoryHandle | None = None
        self.command: AtomicCommand | None = None
        self.amo_size = 8
        self.first_operand = self.second_operand = 0
        self.sync_flag = self.sync_flag_address = 0
        self.cq_data = 0
        self.context: object = None


class SmsgAttributes(NamedTuple):
    """One side's mailbox, as the other side has to know it.

    Attributes:
        handle: of the memory it lies in.
        offset: of the mailbox there, bytes.
        max_credit: messages it has room for.
        max_size: bytes of a message, header and payload.
    """

    handle: MemoryHandle
    offset: int
    max_credit: int
    max_size: int


class CompletionQueue:
    """Events, oldest first."""

    depth: int

    def get_event(self) -> tuple[ReturnCode, Event | None]:
        """The next event; makes the device look for news.

        Returns:
            SUCCESS and the event, or NOT_DONE. ERROR_RESOURCE once after events were lost because
            the queue was full, with the event that was next; the queue works on.
        """
        raise NotImplementedError

    def ready(self) -> bool:
        """Whether there is an event now. A rank that sleeps is woken by news."""
        raise NotImplementedError

    def count(self) -> int:
        """Events in it. Unlike `ready` this does not make the device look for news."""
        raise NotImplementedError

    def close(self) -> None:
        """Give it back; nothing is bound to it any more."""
        raise NotImplementedError


class Endpoint:
    """The way to one peer."""

    def bind(self, address: int, rank: int) -> ReturnCode:
        """Say who the peer is.

        Args:
            address: of its NIC (`GniNic.address`).
            rank: its instance in the communication domain there.
        """
        raise NotImplementedError

    def post_fma(self, post: PostDescriptor) -> ReturnCode:
        """Have it done by the processor: puts, gets, AMOs and CQWRITEs.

        Returns:
            SUCCESS, ERROR_RESOURCE (try again), ALIGNMENT_ERROR or INVALID_PARAM. A wrong remote
            handle or bounds end as the event's status, and touch nothing.
        """
        raise NotImplementedError

    def post_rdma(self, post: PostDescriptor) -> ReturnCode:
        """Have it done by the block transfer engine: RDMA_PUT and RDMA_GET; as `post_fma`."""
        raise NotImplementedError

    def smsg_init(self, local: SmsgAttributes, remote: SmsgAttributes) -> ReturnCode:
        """Say where both mailboxes are."""
        raise NotImplementedError

    def smsg_send(self, header: memoryview, payload: memoryview) -> ReturnCode:
        """Send a short message, copying both.

        Returns:
            SUCCESS; NOT_DONE when the peer's mailbox has no room; TRANSACTION_ERROR when the peer
            has ended.
        """
        raise NotImplementedError

    def smsg_next(self) -> tuple[ReturnCode, memoryview | None]:
        """The oldest message of the peer that has arrived, in its slot until `smsg_release`."""
        raise NotImplementedError

    def smsg_release(self) -> ReturnCode:
        """Give back the slot of the last `smsg_next`."""
        raise NotImplementedError

    def msgq_send(self, header: memoryview, payload: memoryview) -> ReturnCode:
        """Send through the shared message queue; SIZE_ERROR beyond `MSGQ_MAX`."""
        raise NotImplementedError

    def destroy(self) -> ReturnCode:
        """Give it back; ERROR_RESOURCE while something is under way."""
        raise NotImplementedError


class CommunicationDomain:
    """This process on one NIC.

    Attributes:
        losses: ranks the way to which has broken under something that was sent, and why. Whoever
            takes one out deals with it: nobody else is told of lost messages and events.
    """

    losses: list[tuple[int, str]]

    def register(
        self,
        memory: memoryview,
        ordering: Ordering = Ordering.RELAXED,
        queue: CompletionQueue | None = None,
    ) -> tuple[ReturnCode, MemoryHandle | None]:
        """Let the device and peers that have the handle use `memory`, which the caller keeps.

        Args:
            memory: contiguous bytes.
            ordering: of peers' puts into it.
            queue: told of peers' puts with REMOTE_EVENT, and of their CQWRITEs.

        Returns:
            SUCCESS and the handle, or ERROR_RESOURCE: there is none left now.
        """
        raise NotImplementedError

    def deregister(self, handle: MemoryHandle) -> ReturnCode:
        """Take memory back; INVALID_PARAM when it is not registered."""
        raise NotImplementedError

    def processor_copies(self, size: int) -> None:
        """Say that the processor copies so many bytes for a post, as to a bounce buffer.

        It takes time where the device's is modelled: what is posted next begins later.
        """

    def completion_queue(self, depth: int) -> CompletionQueue:
        """One with room for `depth` events."""
        raise NotImplementedError

    def endpoint(self, queue: CompletionQueue | None) -> Endpoint:
        """An endpoint that tells `queue` what became of its posts."""
        raise NotImplementedError

    def expect_nothing(self) -> None:
        """Say that nothing comes: no peer has an endpoint to this rank, nor this rank to a peer.

        The device has no turn in its rank's rounds from then on, until an endpoint is bound.
        """

    def mailbox_queue(self, queue: CompletionQueue) -> None:
        """Say which queue is told of short messages that arrive."""
        raise NotImplementedError

    def smsg_mailbox_size(self, max_credit: int, max_size: int) -> int:
        """Bytes of memory a mailbox needs."""
        raise NotImplementedError

    def msgq_init(self, queue: CompletionQueue, slots: int) -> ReturnCode:
        """Take part in the shared message queue, with room for so many messages."""
        raise NotImplementedError

    def msgq_next(self) -> tuple[ReturnCode, int, bytes]:
        """The oldest message in the shared queue for this rank: who sent it, and what."""
        raise NotImplementedError

    def destroy(self) -> ReturnCode:
        """Give it back; all made of it is given back already."""
        raise NotImplementedError


class GniNic(Nic):
    """A Gemini or Aries NIC.

    Attributes:
        generation: `gemini` or `aries`.
        address: of the NIC, for peers' endpoints.
        local_get_aligned: a get needs an aligned local address as well (Gemini).
        fma_put_is_local: an FMA put has let go of the local memory when the post returns (Gemini).
        registrations_max: memory handles one process may have.
        atomics: what it computes, each with the bytes of the word.
    """

    generation: str
    address: int
    local_get_aligned: bool
    fma_put_is_local: bool
    registrations_max: int
    atomics: frozenset[tuple[AtomicCommand, int]]

    def domain(self, rank: int, protection_tag: int, cookie: int) -> CommunicationDomain:
        """Join the communication domain of a job.

        Args:
            rank: instance of this process in it.
            protection_tag: 8 bits, of the job; others are not heard.
            cookie: 32 bits, the same.
        """
        raise NotImplementedError
