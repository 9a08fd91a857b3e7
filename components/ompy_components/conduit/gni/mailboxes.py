"""Variant M: active messages by puts into mailboxes of the conduit's own.

A mailbox of a peer has a place for each of two messages per credit, used one after the other from
the last to the first. A message is one put with a flag: its first eight bytes are the flag, which
the NIC writes last, and an event tells the queue of the mailboxes' memory whose it is. The event
may come first: then its source is looked at again later. A place is free when its flag is zero;
that it is by the time it is needed again follows from the credits.

Credits that no reply has brought back are banked: one bit per peer, which goes along in the next
message to it. If there is one in the bank already the two are returned by a control message, an
entry written into the peer's event queue:

    argument 16 | operation 8 | 1 | sender 23        from the highest bit on

The first word of a message differs from `headers.py`'s in its lowest four bits, which are

    command 2 | is a request 1 | credit 1            from the lowest bit on

Source: reference gasnet.md 5.1, 5.2, 5.4.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final

from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.nic.gni import (
    CqMode,
    Endpoint,
    Event,
    EventKind,
    MemoryHandle,
    PostDescriptor,
    PostType,
    ReturnCode,
)

from ompy_components.conduit.gni import headers
from ompy_components.conduit.gni.resources import Resources
from ompy_components.conduit.gni.segment import register_segment
from ompy_components.conduit.gni.transport import Transport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ompy_components.conduit.gni.rdma.descriptors import Descriptor

SLOT_SIZE: Final = 640  # reference gasnet.md 5.1
FLAG_SIZE: Final = 8  # reference gasnet.md 5.4
PACKED_MAX: Final = {"gemini": 128, "aries": SLOT_SIZE}  # reference gasnet.md 5.5
TOLD: Final = CqMode.GLOBAL_EVENT | CqMode.REMOTE_EVENT  # reference gasnet.md 5.4
SOURCES: Final = 20  # reference gasnet.md 5.4: pending ones

# reference gasnet.md 5.1: the lowest bits of the first word
REQUEST: Final = 4
CREDIT: Final = 8
KIND: Final = 3
assert KIND | REQUEST | CREDIT == (1 << headers.COMMAND_BITS) - 1

# reference gasnet.md 5.2: a control message
OPERATION_AT: Final = 24
ARGUMENT_AT: Final = 32
SENDER_BITS: Final = 23
MARK: Final = 1 << SENDER_BITS
RETURN_CREDITS: Final = 0
SHUTDOWN: Final = 1
CODE_BITS: Final = 8


def mailbox_word(word: int, *, credit: bool) -> int:
    """The first word of a message as it lies in a mailbox."""
    command = word & 15
    low = (command + 1) >> 1 | (command & 1) * REQUEST | credit * CREDIT
    return word & ~15 | low


def message_word(word: int) -> int:
    """The inverse, without the credit."""
    kind, request = word & KIND, (word & REQUEST) // REQUEST
    return word & ~15 | (2 * kind - request)


class _Mailboxes:
    """A peer, and the mailboxes to it and from it."""

    __slots__ = ("base", "endpoint", "handle", "here", "in_slot", "out_slot")

    def __init__(self, endpoint: Endpoint, handle: MemoryHandle, base: int, here: int) -> None:
        self.endpoint = endpoint
        self.handle = handle
        self.base = base  # of the mailbox in the peer's memory
        self.here = here  # of the mailbox in ours
        self.in_slot = self.out_slot = 0


class MailboxTransport(Transport):
    """Puts into mailboxes, to the peers that have an endpoint.

    Attributes:
        size: bytes of this rank's mailboxes.
        handle: of their memory.
    """

    name = "mailbox"
    max_message = SLOT_SIZE

    def __init__(self, resources: Resources, peers: Sequence[int], depth: int, burst: int) -> None:
        """Make mailboxes.

        Args:
            resources: of the rank.
            peers: in the order of their mailboxes.
            depth: credits of a peer.
            burst: events that are read at a time.

        Raises:
            MPIError: they cannot be registered.
        """
        self._resources = resources
        self.max_packed = PACKED_MAX[resources.nic.generation]
        self._depth = depth
        self._slots = 2 * depth
        self._burst = burst
        domain = resources.domain
        self.size = max(1, len(peers)) * self._slots * SLOT_SIZE
        self._memory = memoryview(bytearray(self.size))
        rounds = resources.context.size.bit_length()
        self._queue = domain.completion_queue(len(peers) * self._slots + rounds)
        self.handle = register_segment(domain, self._memory, resources.ordering, self._queue)
        self._peers: dict[int, _Mailboxes] = {}
        self._sources: deque[int] = deque()
        self._banked = [False] * resources.context.size

    def connect(self, node: int, handle: MemoryHandle, place: int, here: int) -> None:
        """Say where the mailboxes of a peer are.

        Args:
            node: the peer, which has an endpoint.
            handle: of its mailboxes.
            place: of ours among them.
            here: of its among ours.
        """
        endpoint = self._resources.endpoints[node]
        assert endpoint is not None, "messages to it do not go by the NIC"
        each = self._slots * SLOT_SIZE
        self._peers[node] = _Mailboxes(endpoint, handle, place * each, here * each)

    # -- sending

    def send(self, node: int, message: bytearray) -> bool:
        """Put a message into the peer's mailbox."""
        peer = self._peers[node]
        head = message[:FLAG_SIZE].ljust(FLAG_SIZE, b"\0")
        word = mailbox_word(headers.WORD.unpack_from(head)[0], credit=self._banked[node])
        headers.WORD.pack_into(head, 0, word)
        post = PostDescriptor(PostType.FMA_PUT_W_SYNCFLAG)
        post.cq_mode = TOLD
        post.local = memoryview(message)[FLAG_SIZE:]
        post.sync_flag_address = peer.base + (self._slots - 1 - peer.out_slot) * SLOT_SIZE
        post.remote_address = post.sync_flag_address + FLAG_SIZE
        post.sync_flag = int.from_bytes(head, "little")
        if not self._post(peer, post):
            return False
        peer.out_slot = (peer.out_slot + 1) % self._slots
        self._banked[node] = False
        return True

    def _post(self, peer: _Mailboxes, post: PostDescriptor) -> bool:
        """Begin a post; it has a descriptor until it is known to be done."""
        pool = self._resources.descriptors
        made = pool.take_descriptor() if pool is not None else None
        if made is None and pool is not None:
            return False
        post.remote_handle = peer.handle
        post.context = partial(self._sent, made)
        code = peer.endpoint.post_fma(post)
        if code is ReturnCode.SUCCESS:
            return True
        self._release(made)
        if code is not ReturnCode.ERROR_RESOURCE:
            raise MPIError(ERR_INTERN, f"a message cannot be put: {code.value}")
        self._resources.counters["post_fma_retries"] += 1
        return False

    def _release(self, made: Descriptor | None) -> None:
        """Give a descriptor back; those who end before `attach` have none."""
        if made is not None:
            assert self._resources.descriptors is not None, "it is of this pool"
            self._resources.descriptors.give(made)

    def _sent(self, made: Descriptor | None, event: Event) -> None:
        """What became of a message; one for a rank that turns out to have ended was no loss."""
        self._release(made)
        if event.status is ReturnCode.SUCCESS:
            return
        what = f"a message to it could not be put: {event.status.value}"
        if event.status is not ReturnCode.TRANSACTION_ERROR:
            raise MPIError(ERR_INTERN, f"rank {event.peer}: {what}")
        self._resources.domain.losses.append((event.peer, what))

    def returning(self, node: int) -> int:
        """None where it goes to the bank, else with the one that is there."""
        if self._depth == 1:
            return 1
        return 2 if self._banked[node] else 0

    def return_credit(self, node: int) -> bool:
        """Bank it, or return it with the one in the bank."""
        if self._depth > 1 and not self._banked[node]:
            self._banked[node] = True
            return True
        count = 2 if self._banked[node] else 1
        if not self._control(node, RETURN_CREDITS, count):
            return False
        self._banked[node] = False
        return True

    def tell_exit(self, node: int, shift: int, code: int) -> bool:
        """By a control message."""
        return self._control(node, SHUTDOWN, shift << CODE_BITS | code)

    def _control(self, node: int, operation: int, argument: int) -> bool:
        post = PostDescriptor(PostType.CQWRITE)
        post.cq_mode = CqMode.GLOBAL_EVENT
        sender = MARK | self._resources.context.rank
        post.cq_data = argument << ARGUMENT_AT | operation << OPERATION_AT | sender
        return self._post(self._peers[node], post)

    # -- receiving

    def poll(self) -> int:
        """Read events, then look at those who have sent something."""
        count = self._read_events()
        for _ in range(len(self._sources)):
            with self._resources.lock:
                if not self._sources:  # another thread has been here
                    break
                node = self._sources.popleft()
                message = self._next(node)
                if message is None:
                    self._sources.append(node)
                    continue
            count += 1
            credit = message[0] & CREDIT
            word = message_word(headers.WORD.unpack_from(message)[0])
            headers.WORD.pack_into(message, 0, word)
            self.deliver(node, memoryview(message))
            if credit:
                self.credited(node, 1)
        return count

    def _next(self, node: int) -> bytearray | None:
        """The next message of a peer, out of its place; None while its flag is not there."""
        peer = self._peers[node]
        at = peer.here + (self._slots - 1 - peer.in_slot) * SLOT_SIZE
        place = self._memory[at : at + SLOT_SIZE]
        word = headers.WORD.unpack_from(place)[0]
        if not word:
            return None
        message = bytearray(place[: headers.message_size(place, message_word(word))])
        headers.WORD.pack_into(place, 0, 0)
        peer.in_slot = (peer.in_slot + 1) % self._slots
        return message

    def _read_events(self) -> int:
        """Read a burst of events at most. Returns how many told something by themselves."""
        told = []
        with self._resources.lock:
            for _ in range(min(self._burst, SOURCES - len(self._sources))):
                code, event = self._queue.get_event()
                if code is ReturnCode.ERROR_RESOURCE:
                    text = "events of messages were lost, though their queue has room for all"
                    raise MPIError(ERR_INTERN, text)
                if event is None:
                    break
                if event.kind is EventKind.REMOTE:
                    self._sources.append(event.peer)
                else:
                    told.append(event.data)
        for data in told:
            self._told(data)
        return len(told)

    def _told(self, data: int) -> None:
        """A control message."""
        node = data & (MARK - 1)
        operation = data >> OPERATION_AT & 0xFF
        argument = data >> ARGUMENT_AT
        if operation == RETURN_CREDITS:
            self.credited(node, argument)
        else:
            shift, code = argument >> CODE_BITS, argument & ((1 << CODE_BITS) - 1)
            self.deliver(node, memoryview(headers.shutdown(shift, code)))

    def banked(self, node: int) -> int:
        """A peer's credits in the bank."""
        return int(self._banked[node])

    def ready(self) -> bool:
        """Whether there are events."""
        return self._queue.ready()

    def expects(self) -> bool:
        """Whether flags are missing: they come after the event, and without one of their own."""
        return bool(self._sources)

    def waiting(self) -> list[str]:
        """Flags that are missing."""
        return [f"the flag of a message of rank {node}" for node in [*self._sources]]

    def close(self) -> None:
        """The queue is given back with the endpoints."""
