"""The wire to NICs of other hosts: a reliable datagram endpoint of a fabric.

A frame is a header and some bytes: job u64 | word u64 | rank u32 | kind u16 | 2. Registered memory
is a region of the fabric whose key is made of the handle and the job, so that a stranger's handle,
even a right one, names nothing. The fabric proves peers, keeps order and says whose memory
has what; a post that it has no room for waits here.
"""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from struct import Struct
from typing import Final

from ompy.frameworks.context import RankContext
from ompy.frameworks.nic.base import NicError
from ompy.frameworks.nic.fabric import (
    Caps,
    Completion,
    FabricError,
    FabricInfo,
    FabricNic,
    Hints,
    MemoryRegion,
)
from ompy.frameworks.nic.gni import MemoryHandle, ReturnCode
from ompy.frameworks.proc import Proc
from ompy.net.base import Link

from ompy_components.nic.gni.clock import GniClock
from ompy_components.nic.gni.host import Kind, Taker

HEADER: Final = Struct("<QQIH2x")
assert HEADER.size == 24

CAPS: Final = Caps.MSG | Caps.RMA
READ: Final = Caps.REMOTE_READ
WRITE: Final = Caps.REMOTE_WRITE
RECEIVES: Final = 64  # arbitrary, as nic_gni_ring_slots: frames that may come between two polls
BATCH: Final = 32  # arbitrary: bounded work a poll
# what a target answers where a key or bounds are wrong; 266 is libfabric's FI_ENOKEY
REFUSALS: Final = frozenset({errno.EACCES, errno.EINVAL, errno.EFAULT, errno.EPERM, 266})
CREDITED: Final = frozenset({Kind.SMSG, Kind.MSGQ})

Told = Callable[[ReturnCode], object]


class _Peer:
    """A rank of another host.

    Attributes:
        proc: it.
        address: of its endpoint.
        by_them, by_us: messages it has released, and we have, by counter.
        under_way: frames that it may not have yet, but for RELEASED.
        leaving: what the clock does not give to the fabric yet.
        waiting: what the fabric had no room for.
        why: it cannot be reached any more, or empty.
    """

    __slots__ = ("address", "by_them", "by_us", "leaving", "proc", "under_way", "waiting", "why")

    def __init__(self, proc: Proc, address: int) -> None:
        self.proc = proc
        self.address = address
        self.by_them = [0, 0]
        self.by_us = [0, 0]
        self.under_way = 0
        self.leaving = 0
        self.waiting: deque[tuple[Callable[[], bool], Told]] = deque()
        self.why = ""


class _Work:
    """Posted work: who is told how it ended, and what it needs until then."""

    __slots__ = ("memory", "told")

    def __init__(self, told: Told, memory: memoryview) -> None:
        self.told = told
        self.memory = memory


def _ignored(_: ReturnCode) -> None:
    """Nobody wants to know."""


class FarWire:
    """This rank's way to the ranks of other hosts.

    Attributes:
        room: bytes one frame carries behind its header.
        losses: as of a `CommunicationDomain`.
    """

    def __init__(
        self, context: RankContext, name: str, fabric: str, room: int, clock: GniClock
    ) -> None:
        """Open a fabric and publish where peers find it.

        Args:
            context: of the rank.
            name: of the wire, for the modex.
            fabric: the nic component that has it.
            room: bytes one frame carries.
            clock: of the device: its link is the fabric's, which has no time of its own then.

        Raises:
            NicError: there is no such fabric, or it refuses.
        """
        self.room = room
        self.losses: list[tuple[int, str]] = []
        self._context = context
        self._clock = clock
        self._name = name
        self._job = 0
        self._peers: dict[int, _Peer] = {}
        self._procs = {proc.rank: proc for proc in context.procs if proc.node != context.me.node}
        self._nic, info = _choose(context, fabric, clock.link if clock.runs else None)
        self._most = info.max_message
        self._domain = self._nic.domain(info)
        self._vector = self._domain.address_vector()
        self._queue = self._domain.completion_queue()
        self._dead = ""
        self._endpoint = self._domain.endpoint(self._vector, self._queue)
        self._endpoint.enable()
        for _ in range(min(RECEIVES, info.rx_size)):
            self._receive(memoryview(bytearray(HEADER.size + room)))
        context.wireup.publish(name, self._endpoint.name())

    # -- peers

    def reaches(self, rank: int) -> bool:
        """Whether it is on another host."""
        return rank in self._procs

    def proc(self, rank: int) -> Proc:
        """A peer."""
        return self._procs[rank]

    def lost(self, rank: int) -> str:
        """Why a peer cannot be reached any more, empty while it can."""
        peer = self._peers.get(rank)
        return self._procs[rank].departed or (peer.why if peer is not None else "")

    def join(self, job: int) -> None:
        """Say which communication domain this rank is in."""
        self._job = job

    def meet(self, rank: int) -> bool:
        """Find a peer; false where it has no such NIC."""
        if rank not in self._peers:
            # not `context.modex`: what that remembers may be older than the peer's device
            name = self._context.wireup.lookup(rank).get(self._name)
            if name is None:
                return False
            self._peers[rank] = _Peer(self._procs[rank], self._vector.insert(name))
        return True

    # -- memory

    def register(self, memory: memoryview, handle: MemoryHandle) -> MemoryRegion | None:
        """Let peers of this job reach memory; None when the fabric has no room for it.

        What cannot be written here is not to be written by them either: a put's source may be so.
        """
        access = READ if memory.readonly else READ | WRITE
        try:
            return self._domain.register(memory, access, self._key(handle))
        except FabricError:
            return None

    def _key(self, handle: MemoryHandle) -> int:
        return handle.qword1 ^ handle.qword2 ^ self._job

    def write(
        self, rank: int, handle: MemoryHandle, offset: int, data: memoryview, told: Told
    ) -> None:
        """Write to registered memory; `told` is called when that has it, or cannot."""
        self._move(rank, handle, offset, data, told, put=True)

    def read(
        self, rank: int, handle: MemoryHandle, offset: int, into: memoryview, told: Told
    ) -> None:
        """Read registered memory; `told` is called when all is here, or cannot be."""
        self._move(rank, handle, offset, into, told, put=False)

    def _move(
        self,
        rank: int,
        handle: MemoryHandle,
        offset: int,
        local: memoryview,
        told: Told,
        *,
        put: bool,
    ) -> None:
        peer = self._peers[rank]
        call = self._endpoint.write if put else self._endpoint.read
        key = self._key(handle)
        starts = range(0, max(len(local), 1), self._most)
        codes: list[ReturnCode] = []

        def piece_done(code: ReturnCode) -> None:
            codes.append(code)
            if code is ReturnCode.TRANSACTION_ERROR:
                self._has_lost(rank, "a transfer between hosts was lost with the connection")
            if len(codes) == len(starts):
                bad = [other for other in codes if other is not ReturnCode.SUCCESS]
                told(bad[0] if bad else ReturnCode.SUCCESS)

        for start in starts:
            piece = local[start : start + self._most]
            work = _Work(piece_done, piece)
            begin = partial(call, piece, None, peer.address, offset + start, key, work)
            self._submit(peer, begin, piece_done)

    # -- frames

    def has_room(self, rank: int, kind: Kind) -> bool:
        """Whether a frame would be taken now."""
        peer = self._peers[rank]
        return kind not in CREDITED or len(peer.waiting) + peer.leaving < RECEIVES

    def send(self, rank: int, kind: Kind, word: int, due: int, *parts: memoryview | bytes) -> bool:
        """Give a frame to the link at `due`; false where too many wait.

        What needs no credit is always taken.
        """
        if not self.has_room(rank, kind):
            return False
        peer = self._peers[rank]
        head = HEADER.pack(self._job, word, self._context.rank, kind)
        frame = memoryview(b"".join((head, *parts)))
        counts = kind != Kind.RELEASED  # a peer that ends can do without
        peer.under_way += counts
        told = partial(self._sent, rank, counts)
        begin = partial(self._endpoint.send, frame, None, peer.address, _Work(told, frame))
        if due > self._clock.now():
            peer.leaving += 1
            self._clock.at(due, partial(self._leave, peer, begin, told))
        else:
            self._submit(peer, begin, told)
        return True

    def _leave(self, peer: _Peer, begin: Callable[[], bool], told: Told) -> None:
        peer.leaving -= 1
        self._submit(peer, begin, told)

    def release(self, rank: int, place: int) -> None:
        """Tell a peer that one more of its messages has been released."""
        counts = self._peers[rank].by_us
        counts[place] += 1
        self.send(rank, Kind.RELEASED, place << 32 | counts[place] & 0xFFFFFFFF, 0)

    def released(self, rank: int, place: int) -> int:
        """How many of our messages a peer has released in all."""
        return self._peers[rank].by_them[place]

    def wake(self, rank: int) -> None:
        """Nothing to do: its sockets wake a rank of another host."""

    def under_way(self, rank: int) -> int:
        """Frames to a peer that it may not have yet."""
        return self._peers[rank].under_way

    def _sent(self, rank: int, counts: bool, code: ReturnCode) -> None:
        peer = self._peers[rank]
        peer.under_way -= counts
        if code is not ReturnCode.SUCCESS:
            peer.why = peer.why or "a message was lost with the connection"
            self._has_lost(rank, peer.why)

    def _has_lost(self, rank: int, why: str) -> None:
        self.losses.append((rank, why))

    def _submit(self, peer: _Peer, begin: Callable[[], bool], told: Told) -> None:
        if peer.waiting or not self._begun(begin, told):
            peer.waiting.append((begin, told))

    def _begun(self, begin: Callable[[], bool], told: Told) -> bool:
        """Whether it has begun, or has ended already."""
        try:
            return begin()
        except FabricError:
            told(ReturnCode.TRANSACTION_ERROR)
            return True

    # -- progress

    @property
    def waits(self) -> bool:
        """Whether something waits for room, which nothing wakes the rank for."""
        return any(peer.waiting for peer in self._peers.values())

    def take(self, taker: Taker) -> int:
        """Hand over what has come for this job, and tell what became of work.

        Returns:
            How many frames and ends of work there were.
        """
        completions = self._read()
        for done in completions:
            work = done.context
            if isinstance(work, _Work):
                work.told(_code(done.error))
            elif isinstance(work, memoryview):
                if not done.error and done.size >= HEADER.size:
                    self._frame(work[: done.size], taker)
                self._receive_again(work)
        for peer in self._peers.values():
            while peer.waiting and self._begun(*peer.waiting[0]):
                peer.waiting.popleft()
        return len(completions)

    def _frame(self, frame: memoryview, taker: Taker) -> None:
        job, word, rank, kind = HEADER.unpack_from(frame)
        if job != self._job or rank not in self._procs:
            return
        if kind == Kind.RELEASED:
            self._has_released(rank, word)
        else:
            taker(rank, kind, word, self._clock.now(), frame[HEADER.size :])

    def _read(self) -> list[Completion]:
        if not self._dead:
            try:
                return self._queue.read(BATCH)
            except FabricError as problem:  # its device has gone, or it has overflowed: for good
                self._dead = str(problem)
        for rank, peer in self._peers.items():  # also one that is met later
            if not peer.why:
                peer.why = self._dead
                self._has_lost(rank, peer.why)
        return []

    def _receive(self, memory: memoryview) -> None:
        self._endpoint.receive(memory, None, memory)

    def _receive_again(self, memory: memoryview) -> None:
        # a device that has gone meanwhile takes no buffer; reading its queue tells whom that costs
        with suppress(FabricError):
            self._receive(memory)

    def _has_released(self, rank: int, word: int) -> None:
        if self.meet(rank):
            counts, place = self._peers[rank].by_them, word >> 32
            counts[place] += (word - counts[place]) & 0xFFFFFFFF

    def arm(self) -> bool | None:
        """Before the rank sleeps; as `CompletionQueue.arm` of a fabric."""
        return True if self._dead else self._queue.arm()

    def close(self) -> None:
        """Give everything back."""
        for thing in (self._endpoint, self._queue, self._vector, self._domain, self._nic):
            thing.close()


def _code(number: int) -> ReturnCode:
    if not number:
        return ReturnCode.SUCCESS
    return ReturnCode.PERMISSION_ERROR if number in REFUSALS else ReturnCode.TRANSACTION_ERROR


def _choose(context: RankContext, name: str, link: Link | None) -> tuple[FabricNic, FabricInfo]:
    """A device, open, and its provider that takes our keys and tells of delivery.

    Its streams go over `link` in the virtual world, or the network's own, and have no other clock.
    """
    why: list[str] = []
    for nic in context.find_nics(FabricNic, name):
        nic.clocked, nic.carries = False, link
        nic.open()
        infos = nic.infos(Hints(CAPS, op_flags=Caps.DELIVERY_COMPLETE))
        usable = [info for info in infos if info.delivery_complete]
        safe = [info for info in usable if not info.exposed]
        if safe:
            return nic, safe[0]
        why += [f"; not {info.provider}: {info.exposed}" for info in usable]
        nic.close()
    raise NicError(
        f"gni: nic {name} has no provider that leads to other hosts{''.join(dict.fromkeys(why))}"
    )
