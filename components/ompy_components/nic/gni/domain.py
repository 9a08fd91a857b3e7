"""One rank's part of a communication domain."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.gni import (
    CommunicationDomain,
    CompletionQueue,
    Endpoint,
    Event,
    EventKind,
    MemoryHandle,
    Ordering,
    ReturnCode,
)
from ompy.mca.parameter import Values
from ompy.net.faults.work import UNTOUCHED, Work

from ompy_components.nic.gni import atomics
from ompy_components.nic.gni.clock import GniClock
from ompy_components.nic.gni.completions import EventQueue
from ompy_components.nic.gni.endpoint import GniEndpoint
from ompy_components.nic.gni.far import FarWire
from ompy_components.nic.gni.generations import Generation
from ompy_components.nic.gni.host import HostWire, Kind
from ompy_components.nic.gni.lateness import Lateness
from ompy_components.nic.gni.layout import MSGQ_RELEASED
from ompy_components.nic.gni.mailbox import Mailbox, mailbox_size
from ompy_components.nic.gni.memory import FarMemory, OwnMemory, PeerMemory
from ompy_components.nic.gni.posts import Posts

if TYPE_CHECKING:
    from ompy_components.nic.gni.device import GniDevice

# members of an enum are slow to find
SUCCESS, SMSG_EVENT = ReturnCode.SUCCESS, EventKind.SMSG
SMSG, MSGQ, REMOTE, CQWRITE, AMO, AMO_DONE = (
    int(kind) for kind in (Kind.SMSG, Kind.MSGQ, Kind.REMOTE, Kind.CQWRITE, Kind.AMO, Kind.AMO_DONE)
)


class GniDomain(CommunicationDomain):
    """This rank in a communication domain.

    Attributes:
        generation: which NIC it is.
        job: protection tag and cookie in one number, never 0.
        wire: to the peers of the host.
        far: to those of other hosts, if there are any.
        memory: what this rank has registered.
        endpoints: those that are bound, by rank.
        posts: those under way.
        unsaid: what peers are to be told and waits for room, by rank: so long no post tells them
            more.
        clock: when things happen, in the virtual world.
        late: what comes later than it has to, behind that.
        msgq_share: messages one peer may have in another's shared queue.
        refuses_some: posts, messages and registrations are refused now and then.
        scripted: a fault script may strike work that stays on the host.
        plain: nothing is late, refused or fails by a parameter or script, and nothing takes time.
        news: what has come from peers, or become of posts, in all.
    """

    def __init__(
        self,
        device: GniDevice,
        context: RankContext,
        job: int,
        wire: HostWire,
        far: FarWire | None,
        values: Values,
    ) -> None:
        self._device = device
        self._context = context
        self._values = values
        self.generation: Generation = device.kind
        self.job = job
        self.wire = wire
        self.far = far
        self.losses = far.losses if far is not None else []
        self._copy = device.copy
        self.memory = OwnMemory(context, wire, far, self._copy)
        self.endpoints: dict[int, GniEndpoint] = {}
        self.clock: GniClock = device.clock
        self.late = Lateness(context.engine, values.late)
        self.refuses_some = bool(values.refuse_every or values.refuse)
        self.scripted = context.network.disturbed
        disturbed = values.late or values.fail or self.refuses_some or self.scripted
        self.plain = not (disturbed or self.clock.runs)
        self._gone = False  # by the script, as peers know it
        self._abandoned = False
        self.posts = Posts(self, values.posts)
        self.msgq_share = 0
        self.news = 0
        self._mailbox_queue: EventQueue | None = None
        self._msgq_queue: EventQueue | None = None
        self._msgq: deque[tuple[int, bytes]] = deque()
        # messages for mailboxes that are not there yet, and when they may be seen
        self._early: dict[int, list[tuple[int, bytes]]] = {}
        self.unsaid: dict[int, deque[tuple[Kind, int, int, bytes]]] = {}
        self._calls = 0
        self._refused = False
        self._inside = False
        wire.join(job)
        if far is not None:
            far.join(job)

    # -- memory and queues

    def register(
        self,
        memory: memoryview,
        ordering: Ordering = Ordering.RELAXED,
        queue: CompletionQueue | None = None,
    ) -> tuple[ReturnCode, MemoryHandle | None]:
        """Register memory, if there is a slot left."""
        handle = None if self.refuses() else self.memory.register_memory(memory, ordering, queue)
        if handle is None:
            return ReturnCode.ERROR_RESOURCE, None
        self.clock.works("register", memory.nbytes)
        return SUCCESS, handle

    def deregister(self, handle: MemoryHandle) -> ReturnCode:
        """Take it back."""
        if not self.memory.remove(handle):
            return ReturnCode.INVALID_PARAM
        self.clock.works("deregister", 0)
        return SUCCESS

    def processor_copies(self, size: int) -> None:
        """The processor copies bytes that are to be posted, or were."""
        self.clock.works("copy", size)

    def completion_queue(self, depth: int) -> EventQueue:
        """One with room for `depth` events."""
        return EventQueue(depth, self.look)

    def endpoint(self, queue: CompletionQueue | None) -> Endpoint:
        """An endpoint, not bound yet."""
        assert queue is None or isinstance(queue, EventQueue), "a queue of another device"
        return GniEndpoint(self, queue)

    def address_of(self, rank: int) -> int:
        """Of the NIC that a rank has."""
        return self._device.address_of(rank)

    def wire_to(self, rank: int) -> HostWire | FarWire | None:
        """The wire that leads to a rank; None: there is none."""
        if self.wire.reaches(rank):
            return self.wire
        far = self.far
        return far if far is not None and far.reaches(rank) and far.meet(rank) else None

    def peer_memory(self, rank: int) -> PeerMemory | FarMemory:
        """What a peer has registered."""
        if self.far is not None and self.far.reaches(rank):
            return FarMemory(self.far, rank)
        proc, wire = self.wire.proc(rank), self.wire
        return PeerMemory(proc, wire.layout, wire.words, self._copy, self.job)

    def expect_nothing(self) -> None:
        """Have the device leave its rank's rounds out."""
        self._device.rest()

    def bound(self, endpoint: GniEndpoint) -> None:
        """For the endpoint: it has a peer."""
        self.endpoints[endpoint.rank] = endpoint
        self._device.wake()

    # -- short messages

    def mailbox_queue(self, queue: CompletionQueue) -> None:
        """Say who is told of short messages."""
        assert isinstance(queue, EventQueue), "a queue of another device"
        self._mailbox_queue = queue

    def smsg_mailbox_size(self, max_credit: int, max_size: int) -> int:
        """Bytes of a mailbox."""
        return mailbox_size(max_credit, max_size)

    def mailbox_opened(self, endpoint: GniEndpoint) -> None:
        """For the endpoint: what came before the mailbox was there comes now."""
        for due, message in self._early.pop(endpoint.rank, []):
            self._smsg(endpoint.rank, due, memoryview(message))

    def msgq_init(self, queue: CompletionQueue, slots: int) -> ReturnCode:
        """Take part in the shared message queue."""
        assert isinstance(queue, EventQueue), "a queue of another device"
        if self._msgq_queue is not None:
            return ReturnCode.INVALID_STATE
        self._msgq_queue = queue
        self.msgq_share = max(1, slots // max(1, self._context.size - 1))
        return ReturnCode.SUCCESS

    def msgq_reaches(self, rank: int) -> bool:
        """Whether the shared queue leads there: not within a host, unless a parameter says so."""
        return bool(self._values.msgq_on_host) or not self.wire.reaches(rank)

    def msgq_next(self) -> tuple[ReturnCode, int, bytes]:
        """The oldest message in the shared queue."""
        self.progress()
        if not self._msgq:
            return ReturnCode.NOT_DONE, -1, b""
        rank, message = self._msgq.popleft()
        self.release(rank, MSGQ_RELEASED)
        return ReturnCode.SUCCESS, rank, message

    def release(self, rank: int, place: int) -> None:
        """Give a peer the credit of a message back."""
        wire = self.wire_to(rank)
        assert wire is not None, "it has sent something"
        if self.clock.runs:
            self.clock.at(self.clock.now() + self.clock.way, partial(wire.release, rank, place))
        else:
            wire.release(rank, place)

    # -- when

    def at(self, when: int, effect: Callable[[], object], *, held: bool = False) -> None:
        """Have something happen when the clock says, at once without one; it is news then.

        With `held` a fault script says when, whether a clock runs or not.
        """
        if held:
            delay = max(when - self.clock.now(), 0)
            self._context.engine.device_later(delay, partial(self._happens, effect))
        elif self.clock.runs:
            self.clock.at(when, partial(self._happens, effect))
        else:
            effect()

    def _happens(self, effect: Callable[[], object]) -> None:
        if not self._abandoned:
            self.news += 1
            effect()

    # -- a fault script

    def work(self, endpoint: GniEndpoint) -> Work:
        """What the script makes of the next piece of work for a peer of this host.

        What goes to other hosts it strikes on its way there.
        """
        if not self.scripted or endpoint.wire is not self.wire:
            return UNTOUCHED
        network = self._context.network
        struck = network.work(endpoint.rank, self._device.identity.name, retries=True)
        gone = self.wire.gone(endpoint.rank)
        return Work(errno.ENETDOWN, 0) if gone and not struck.error else struck

    def _look_at_link(self) -> None:
        gone = self._context.network.receiving_blocked(self._device.identity.name)
        if gone is not self._gone:
            self._gone = gone
            self.wire.show(gone=gone)

    def abandon(self) -> None:
        """For the device: what is held has nowhere to go any more."""
        self._abandoned = True

    # -- what runs out

    def refuses(self) -> bool:
        """Whether this call is one of those that the parameters have refused."""
        if not self.refuses_some:
            return False
        values, chance = self._values, self._context.engine.random
        self._calls += 1
        refused = bool(values.refuse_every) and not self._calls % values.refuse_every
        refused = refused or (bool(values.refuse) and chance.randrange(100) < values.refuse)
        self._refused |= refused
        return refused

    def fails(self) -> bool:
        """Whether this post is one of those that the parameters have fail."""
        percent = self._values.fail
        return bool(percent) and self._context.engine.random.randrange(100) < percent

    def has_room(self, rank: int, kind: Kind) -> bool:
        """Whether `send` would send now; if not, try again soon."""
        wire = self.wire_to(rank)
        assert wire is not None, "it is bound"
        if wire.has_room(rank, kind):
            return True
        self._refused = True
        return False

    def send(self, rank: int, kind: Kind, word: int, due: int, *parts: memoryview | bytes) -> bool:
        """Send something to a peer; false when there is no room, so try again soon.

        It is there at `due`, and one to another host a link later.
        """
        wire = self.wire_to(rank)
        assert wire is not None, "it is bound"
        if wire.send(rank, kind, word, due, *parts):
            return True
        self._refused = True
        return False

    def not_now(self) -> ReturnCode:
        """What a sender is told who is to try again: for want of credit, or of room."""
        self._refused = True
        return ReturnCode.NOT_DONE

    def send_when_room(
        self, rank: int, kind: Kind, word: int, due: int, payload: bytes = b""
    ) -> None:
        """Tell a peer's device something, as `send`, as soon as there is room."""
        if rank in self.unsaid or not self.send(rank, kind, word, due, payload):
            self.unsaid.setdefault(rank, deque()).append((kind, word, due, payload))

    def has_unsaid(self, rank: int) -> bool:
        """Whether something waits for room at a peer that is there."""
        wire = self.wire_to(rank) if rank in self.unsaid else None
        return wire is not None and not wire.lost(rank)

    def _say_on(self) -> None:
        for rank, waiting in list(self.unsaid.items()):
            wire = self.wire_to(rank)
            assert wire is not None, "it was tried before"
            while waiting and (wire.lost(rank) or wire.send(rank, *waiting[0])):
                waiting.popleft()
            if not waiting:
                del self.unsaid[rank]

    # -- progress

    def look(self) -> None:
        """For a queue that is empty: take in what is near, as the device's turn asks for the rest.

        An engine's round has several queues asked, and asking the way to other hosts costs most.
        """
        if not self._device.awake:
            self.progress()
        elif not self._inside:
            self._inside = True
            try:
                self._take_near()
            finally:
                self._inside = False

    def _take_near(self) -> None:
        if self.unsaid:
            self._say_on()
        if len(self.late):
            self.news += self.late.round()
        self.news += self.wire.take(self._take)

    def progress(self) -> None:
        """Take in what peers have sent, and do some of what is late."""
        if self._inside:
            return  # a queue is asked from within
        self._inside = True
        try:
            if self.scripted:
                self._look_at_link()
            self._take_near()
            if self.far is not None:
                self.news += self.far.take(self._take)
            if self.posts.asks:
                self.posts.look_for_the_dead()
        finally:
            self._inside = False

    def _take(self, rank: int, kind: int, word: int, due: int, payload: memoryview) -> None:
        clock = self.clock
        if kind == SMSG:
            self._smsg(rank, due + clock.event, payload)
        elif not clock.runs:
            self._taken(rank, kind, word, payload)
        else:
            takes = 0 if kind == AMO_DONE else clock.atomic if kind == AMO else clock.event
            entry = memoryview(bytes(payload))
            self.at(due + takes, partial(self._taken, rank, kind, word, entry))

    def _taken(self, rank: int, kind: int, word: int, payload: memoryview) -> None:
        if kind == MSGQ:
            self._msgq.append((rank, bytes(payload)))
            self._tell(self._msgq_queue, Event(EventKind.MSGQ, rank))
        elif kind == REMOTE:
            self._tell(self.memory.queue_of(word), Event(EventKind.REMOTE, rank))
        elif kind == CQWRITE:
            first, second = (int.from_bytes(payload[at : at + 8], "little") for at in (0, 8))
            known = self.memory.find(MemoryHandle(first, second))
            event = Event(EventKind.CQWRITE, rank, word)
            self._tell(known.queue if known is not None else None, event)
        elif kind == AMO:
            answer = atomics.answer_question(payload, self._words_of)
            self.send_when_room(
                rank, Kind.AMO_DONE, word, self.clock.now() + self.clock.way, answer
            )
        else:
            self.posts.answered(word, payload)

    def _words_of(self, handle: MemoryHandle) -> memoryview | None:
        known = self.memory.find(handle)
        return known.memory if known is not None else None

    def _smsg(self, rank: int, due: int, message: memoryview) -> None:
        endpoint = self.endpoints.get(rank)
        if endpoint is None or endpoint.mailbox is None:
            self._early.setdefault(rank, []).append((due, bytes(message)))
            return
        mailbox = endpoint.mailbox
        arrival = partial(self._arrived, mailbox, mailbox.deliver(message), rank)
        if self.late.percent:
            self.at(due, partial(self.late.do, arrival))
        else:
            self.at(due, arrival)

    def _arrived(self, mailbox: Mailbox, number: int, rank: int) -> None:
        mailbox.show(number)
        if self._mailbox_queue is not None:
            self._mailbox_queue.push(tuple.__new__(Event, (SMSG_EVENT, rank, 0, None, SUCCESS)))

    def _tell(self, queue: CompletionQueue | None, event: Event) -> None:
        if isinstance(queue, EventQueue):
            self.late.do(partial(queue.push, event))

    @property
    def busy(self) -> bool:
        """Whether something is late or unsaid, or was refused for the moment since last asked."""
        refused, self._refused = self._refused, False
        far = self.far is not None and self.far.waits
        return refused or far or bool(len(self.late)) or bool(self.unsaid)

    def destroy(self) -> ReturnCode:
        """Give everything back."""
        if self.endpoints:
            return ReturnCode.INVALID_STATE
        self.late.finish()
        self.memory.close()
        self.wire.join(0)
        if self.far is not None:
            self.far.join(0)
        self._device.domain_gone()
        return ReturnCode.SUCCESS
