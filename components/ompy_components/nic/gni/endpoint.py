"""The way to one peer: posts, short messages."""

from __future__ import annotations

import errno
from functools import partial
from typing import TYPE_CHECKING

from ompy.frameworks.nic.gni import (
    MSGQ_MAX,
    Endpoint,
    PostDescriptor,
    ReturnCode,
    SmsgAttributes,
)

from ompy_components.nic.gni.completions import EventQueue
from ompy_components.nic.gni.far import FarWire
from ompy_components.nic.gni.host import HostWire, Kind
from ompy_components.nic.gni.layout import GONE, MSGQ_RELEASED, SMSG_RELEASED
from ompy_components.nic.gni.mailbox import Mailbox, mailbox_size
from ompy_components.nic.gni.memory import FarMemory, PeerMemory

if TYPE_CHECKING:
    from ompy_components.nic.gni.domain import GniDomain

SUCCESS, SMSG = ReturnCode.SUCCESS, Kind.SMSG  # members of an enum are slow to find


class GniEndpoint(Endpoint):
    """The way from one rank to another.

    Attributes:
        queue: told what became of posts.
        rank: the peer, -1 before `bind`.
        memory: what it has registered.
        wire: that leads to it.
        mailbox: where its short messages arrive, after `smsg_init`.
        under_way: posts.
        strict: until when no put with strict ordering may become visible, ns of the clock.
    """

    memory: PeerMemory | FarMemory
    wire: HostWire | FarWire

    def __init__(self, domain: GniDomain, queue: EventQueue | None) -> None:
        self._domain = domain
        self.queue = queue
        self.rank = -1
        self.mailbox: Mailbox | None = None
        self.under_way = 0
        self.strict = 0
        self._words: memoryview | None = None
        self._job_at = 0
        self._remote: SmsgAttributes | None = None
        self._sent = 0
        self._queued = 0
        self._held = 0  # messages that a fault script holds up
        self._held_until = 0

    def bind(self, address: int, rank: int) -> ReturnCode:
        """Say who the peer is."""
        if self.rank >= 0:
            return ReturnCode.INVALID_STATE
        wire = self._domain.wire_to(rank)
        if wire is None or address != self._domain.address_of(rank):
            return ReturnCode.INVALID_PARAM
        self.rank = rank
        self.wire = wire
        if isinstance(wire, HostWire):
            self._words, self._job_at = wire.words, wire.job_at(rank)
        self.memory = self._domain.peer_memory(rank)
        self._queued = wire.released(rank, MSGQ_RELEASED)  # of those sent before
        self._domain.bound(self)
        return ReturnCode.SUCCESS

    @property
    def stranger(self) -> bool:
        """Whether the peer is in another communication domain, or in none."""
        return self._words is not None and self._words[self._job_at] not in (
            self._domain.job,
            GONE,
        )

    # -- posts

    def post_fma(self, post: PostDescriptor) -> ReturnCode:
        """Puts, gets, atomics and queue writes."""
        if self.rank >= 0 and self._domain.posts.at_once(self, post):
            return SUCCESS
        return self._post(post, rdma=False)

    def post_rdma(self, post: PostDescriptor) -> ReturnCode:
        """Block transfers."""
        return self._post(post, rdma=True)

    def _post(self, post: PostDescriptor, *, rdma: bool) -> ReturnCode:
        if self.rank < 0:
            return ReturnCode.INVALID_STATE
        posts = self._domain.posts
        code = posts.refusal(post, rdma=rdma)
        if code is ReturnCode.SUCCESS:
            self.under_way += 1
            code = posts.begin_post(self, post)
            if code is not ReturnCode.SUCCESS:
                self.under_way -= 1
        return code

    # -- short messages

    def smsg_init(self, local: SmsgAttributes, remote: SmsgAttributes) -> ReturnCode:
        """Say where both mailboxes are."""
        if self.rank < 0 or self.mailbox is not None:
            return ReturnCode.INVALID_STATE
        known = self._domain.memory.find(local.handle)
        size = mailbox_size(local.max_credit, local.max_size)
        if known is None or local.offset + size > len(known.memory):
            return ReturnCode.INVALID_PARAM
        if max(local.max_size, remote.max_size) > self.wire.room:
            return ReturnCode.SIZE_ERROR
        self._remote = remote
        self._sent = self.wire.released(self.rank, SMSG_RELEASED)  # of those sent before
        self.mailbox = Mailbox(known.memory[local.offset : local.offset + size], local)
        self._domain.mailbox_opened(self)
        return ReturnCode.SUCCESS

    def smsg_send(self, header: memoryview, payload: memoryview) -> ReturnCode:
        """Send a short message, if there is credit."""
        remote = self._remote
        if remote is None:
            return ReturnCode.INVALID_STATE
        if len(header) + len(payload) > remote.max_size:
            return ReturnCode.SIZE_ERROR
        domain = self._domain
        if self.wire.lost(self.rank):
            return ReturnCode.TRANSACTION_ERROR
        taken = self._sent - self.wire.released(self.rank, SMSG_RELEASED)
        if taken >= remote.max_credit or domain.refuses():
            return domain.not_now()
        if domain.scripted and self.wire is domain.wire:
            return self._sends_under_script(header, payload)
        sent = self._sends(SMSG, header, payload)
        self._sent += sent
        return SUCCESS if sent else domain.not_now()

    def _sends_under_script(self, header: memoryview, payload: memoryview) -> ReturnCode:
        """Send a message unless a fault script has something else in mind.

        It stays in its order: who is behind one that is held up waits with it.
        """
        domain, rank = self._domain, self.rank
        struck = domain.work(self)
        if struck.error == errno.EAGAIN or rank in domain.unsaid:
            return domain.not_now()
        if struck.error:
            domain.losses.append((rank, "a short message to it was lost: transaction failed"))
            domain.news += 1
            return SUCCESS
        now = domain.clock.now()
        self._held_until = max(self._held_until, now + struck.hold)
        if self._held_until > now or self._held:
            self._held += 1
            message = b"".join((header, payload))
            domain.at(self._held_until, partial(self._goes_on, message), held=True)
        elif not self._sends(SMSG, header, payload):
            return domain.not_now()
        self._sent += 1
        return SUCCESS

    def _goes_on(self, message: bytes) -> None:
        """A message that was held up is sent."""
        self._held -= 1
        domain = self._domain
        due = domain.clock.stores("smsg", len(message)).last + domain.clock.way
        domain.send_when_room(self.rank, SMSG, 0, due, message)

    def _sends(self, kind: Kind, header: memoryview, payload: memoryview) -> bool:
        """Send a message, by the processor's stores."""
        clock, due = self._domain.clock, 0
        if clock.runs:
            if not self.wire.has_room(self.rank, kind):
                return False
            due = clock.stores("smsg", len(header) + len(payload)).last + clock.way
        return self.wire.send(self.rank, kind, 0, due, header, payload)

    def smsg_next(self) -> tuple[ReturnCode, memoryview | None]:
        """The oldest message that can be seen."""
        if self.mailbox is None:
            return ReturnCode.INVALID_STATE, None
        if not self.mailbox.waiting:
            self._domain.progress()
        return self.mailbox.take_oldest()

    def smsg_release(self) -> ReturnCode:
        """Give back its place, and the sender a credit."""
        if self.mailbox is None:
            return ReturnCode.INVALID_STATE
        code = self.mailbox.release()
        if code is ReturnCode.SUCCESS:
            self._domain.release(self.rank, SMSG_RELEASED)
        return code

    def msgq_send(self, header: memoryview, payload: memoryview) -> ReturnCode:
        """Send to the peer's shared message queue."""
        if self.rank < 0 or not self._domain.msgq_reaches(self.rank):
            return ReturnCode.INVALID_PARAM
        if len(header) + len(payload) > MSGQ_MAX:
            return ReturnCode.SIZE_ERROR
        domain = self._domain
        if self.wire.lost(self.rank):
            return ReturnCode.TRANSACTION_ERROR
        taken = self._queued - self.wire.released(self.rank, MSGQ_RELEASED)
        if taken >= domain.msgq_share or domain.refuses():
            return domain.not_now()
        error = domain.work(self).error
        if error and error != errno.EAGAIN:
            return ReturnCode.TRANSACTION_ERROR
        sent = not error and self._sends(Kind.MSGQ, header, payload)
        self._queued += sent
        return SUCCESS if sent else domain.not_now()

    def is_busy(self) -> bool:
        """Whether posts are under way, what the peer's ring has no room for, or far messages."""
        far = self._domain.far
        if self._held or self._domain.has_unsaid(self.rank):
            return True
        if self.under_way or self.rank < 0 or far is None or not far.reaches(self.rank):
            return bool(self.under_way)
        return bool(far.under_way(self.rank)) and not far.lost(self.rank)

    def destroy(self) -> ReturnCode:
        """Give it back, when nothing is under way."""
        if self.is_busy():
            self._domain.progress()
        if self.is_busy():
            return ReturnCode.ERROR_RESOURCE
        self._domain.endpoints.pop(self.rank, None)
        self.rank = -1
        return ReturnCode.SUCCESS
