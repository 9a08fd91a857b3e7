"""The wire between the NICs of one host: rings, counters, a doorbell.

An entry of a ring has a kind, a word, some bytes, and the time at which it is there where a clock
runs. A rank that sleeps has said so in its line,
and whoever has news for it rings its doorbell.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Final

from ompy import raw
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.net.base import Doorbell
from ompy.net.memory.ring import SLOT_HEADER, RingReader, RingWriter

from ompy_components.nic.gni.layout import DUE_SIZE, GONE, JOB, PARKED, Layout

FEW: Final = 2  # arbitrary: so many rings are looked at sooner than hints
UNHINTED: Final = 64  # arbitrary: takes; a rank looks at all rings before it sleeps, too
AWAKE: Final = 0
ASLEEP: Final = 1

# of an entry: rank, kind, word, when it is there, bytes, which last for the call
Taker = Callable[[int, int, int, int, memoryview], object]


class Kind(IntEnum):
    """What an entry is."""

    SMSG = 1
    MSGQ = 2
    REMOTE = 3  # a put into memory that has a queue; the word is its slot
    CQWRITE = 4  # the word is the data, the bytes the handle
    AMO = 5  # the word is the post's number
    AMO_DONE = 6
    RELEASED = 7  # between hosts: messages released, place << 32 | count


class _Peer:
    """A rank of this host.

    Attributes:
        proc: it.
        writer, reader: the rings to it and from it.
        parked, job: which words say whether it sleeps, and in which communication domain it is.
        hint: byte that says to it that there is something in our ring.
        by_them, by_us: the first of the counters of messages it has released, and we have.
        bell: its doorbell, once it was needed.
    """

    __slots__ = ("bell", "by_them", "by_us", "hint", "job", "parked", "proc", "reader", "writer")

    def __init__(
        self, proc: Proc, here: int, layout: Layout, writer: RingWriter, reader: RingReader
    ) -> None:
        there = proc.local_rank
        self.proc = proc
        self.writer = writer
        self.reader = reader
        self.parked = layout.line(there) + PARKED
        self.job = layout.line(there) + JOB
        self.hint = layout.hint(there, here)
        self.by_them = layout.released(there, here)
        self.by_us = layout.released(here, there)
        self.bell: Doorbell | None = None


class HostWire:
    """This rank's ends of the rings.

    Attributes:
        layout, words: of the shared segment.
        room: bytes one entry carries.
    """

    def __init__(
        self, context: RankContext, name: str, layout: Layout, slots: int, *, timed: bool
    ) -> None:
        """Make them.

        Args:
            context: of the rank.
            name: of the segment.
            layout: of it.
            slots: of a ring.
            timed: a clock runs, which says when something is there.
        """
        self._context = context
        self._timed = timed
        self.layout = layout
        self._memory = context.network.segment(name, layout.size)
        self.words = self._memory.cast("Q")
        self._line = layout.line(context.me.local_rank)
        self._peers: dict[int, _Peer] = {}
        here, size = context.me.local_rank, layout.slot_size
        for proc in context.local_procs():
            if proc is context.me:
                continue
            there = proc.local_rank
            writer = RingWriter(self._memory, layout.ring(there, here), slots, size)
            reader = RingReader(self._memory, layout.ring(here, there), slots, size)
            self._peers[proc.rank] = _Peer(proc, here, layout, writer, reader)
        self._job = 0
        self._readers = list(self._peers.values())
        begin = layout.hint(here, 0)
        self._hints = self._memory[begin : begin + layout.hint(here + 1, 0) - begin]
        self._no_hints = bytes(len(self._hints))
        self._takes = 0
        self.room = size - SLOT_HEADER - DUE_SIZE
        context.network.doorbell(here)  # arms it as what wakes this rank

    def reaches(self, rank: int) -> bool:
        """Whether it is on this host, and not this one itself."""
        return rank in self._peers

    def proc(self, rank: int) -> Proc:
        """A peer."""
        return self._peers[rank].proc

    def join(self, job: int) -> None:
        """Say which communication domain this rank is in."""
        self._job = self.words[self._line + JOB] = job

    def show(self, *, gone: bool) -> None:
        """Have peers know that this rank's NIC is gone, or is back."""
        self.words[self._line + JOB] = GONE if gone else self._job

    def gone(self, rank: int) -> bool:
        """Whether a peer's NIC is gone now, by a fault script."""
        return bool(self.words[self._peers[rank].job] == GONE)

    def lost(self, rank: int) -> str:
        """Why a peer cannot be reached any more, empty while it can."""
        return self._peers[rank].proc.departed

    def job_at(self, rank: int) -> int:
        """Which word says which communication domain a peer is in, 0 while it is in none."""
        return self._peers[rank].job

    def has_room(self, rank: int, kind: Kind) -> bool:
        """Whether an entry for a peer would be taken now."""
        return self._peers[rank].writer.reserve(0) >= 0

    def send(self, rank: int, kind: Kind, word: int, due: int, *parts: memoryview | bytes) -> bool:
        """Put an entry into the ring to a peer, that is there at `due`; false: there is no room."""
        peer = self._peers[rank]
        at = peer.writer.reserve(DUE_SIZE + sum(map(len, parts)))
        if at < 0:
            return False
        self.words[at >> 3] = due
        size = DUE_SIZE
        for part in parts:
            length = len(part)
            if length:
                raw.copy(self._memory, at + size, part, 0, length)
                size += length
        peer.writer.publish(size, 0, kind, word)
        self._memory[peer.hint] = 1
        self._wake(peer, due)
        return True

    def take(self, taker: Taker) -> int:
        """Hand over what has come from this job, and what is about to be there.

        Returns:
            How many entries there were.
        """
        count = 0
        self._takes += 1
        if len(self._readers) > FEW:
            # now and then without one, should a processor have cleared it after it was set again
            if self._takes % UNHINTED and self._hints.tobytes() == self._no_hints:
                return 0
            self._hints[:] = self._no_hints
        for peer in self._readers:
            reader = peer.reader
            while reader.peek():
                at, due = reader.payload, self.words[reader.payload >> 3]
                payload = self._memory[at + DUE_SIZE : at + reader.length]
                job = self.words[peer.job]
                try:
                    # 0: it has left after it sent this; GONE: its NIC has gone
                    if job in (self._job, 0, GONE):
                        taker(peer.proc.rank, reader.kind, reader.reference, due, payload)
                finally:
                    reader.release()
                count += 1
        return count

    def release(self, rank: int, place: int) -> None:
        """Tell a peer that one more of its messages has been released.

        Args:
            rank: the peer.
            place: which of the counters: `SMSG_RELEASED`, `MSGQ_RELEASED`.
        """
        peer = self._peers[rank]
        self.words[peer.by_us + place] += 1
        self._wake(peer)

    def released(self, rank: int, place: int) -> int:
        """How many of our messages a peer has released in all."""
        released: int = self.words[self._peers[rank].by_them + place]
        return released

    def wake(self, rank: int) -> None:
        """Have a peer look, if it sleeps."""
        self._wake(self._peers[rank])

    def _wake(self, peer: _Peer, due: int = 0) -> None:
        if self.words[peer.parked]:
            self.words[peer.parked] = AWAKE
            if peer.bell is None:
                peer.bell = self._context.network.doorbell(peer.proc.local_rank)
            if self._timed:
                peer.bell.ring_after(max(due - self._context.engine.now(), 0))
            else:
                peer.bell.ring()

    # -- the rank's sleep

    def arm(self) -> bool:
        """Say that this rank sleeps, then look once more whether there is something."""
        self.words[self._line + PARKED] = ASLEEP
        return not any(peer.reader.pending() for peer in self._peers.values())

    def disarm(self) -> None:
        """Say that it is awake."""
        self.words[self._line + PARKED] = AWAKE
