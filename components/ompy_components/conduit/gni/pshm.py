"""PSHM: active messages between ranks of one host, by rings in memory they share.

    0         a line per rank: its parked word
    rings     per ordered pair (receiver, sender), of slots for one message each

All zero is the valid initial state. Nothing of the NIC is used. A ring has room for all that the
contract of `Transport` lets a peer have under way, so sending never fails for long.

Source: seed gasnet (Active Message design); reference gasnet.md 5.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.frameworks.context import RankContext
from ompy.frameworks.proc import Proc
from ompy.net.memory.ring import CACHE_LINE, RingReader, RingWriter, ring_size, slot_size_for

from ompy_components.conduit.gni.transport import Transport

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from ompy.net.base import Doorbell

AWAKE: Final = 0
ASLEEP: Final = 1
LINE_WORDS: Final = CACHE_LINE // 8


class Layout:
    """Where everything lies, for one host.

    Attributes:
        slots: of a ring.
        slot_size: bytes of one.
        size: of all.
    """

    def __init__(self, ranks: int, slots: int, message: int) -> None:
        """For so many ranks, and messages of up to so many bytes."""
        self._ranks = ranks
        self.slots = slots
        self.slot_size = slot_size_for(message)
        self._ring = ring_size(slots, self.slot_size)
        self._rings = ranks * CACHE_LINE
        self.size = self._rings + ranks * ranks * self._ring

    def parked(self, rank: int) -> int:
        """Index of a rank's parked word."""
        return rank * LINE_WORDS

    def ring(self, receiver: int, sender: int) -> int:
        """Byte offset of a ring."""
        return self._rings + (receiver * self._ranks + sender) * self._ring


class _Neighbour:
    """The way to one rank of the host, and from it."""

    __slots__ = ("bell", "parked", "proc", "reader", "writer")

    def __init__(self, memory: memoryview, layout: Layout, proc: Proc, here: int) -> None:
        there = proc.local_rank
        rings = layout.ring(there, here), layout.ring(here, there)
        self.proc = proc
        self.parked = layout.parked(there)
        self.writer = RingWriter(memory, rings[0], layout.slots, layout.slot_size)
        self.reader = RingReader(memory, rings[1], layout.slots, layout.slot_size)
        self.bell: Doorbell | None = None


class PshmTransport(Transport):
    """Messages to the other ranks of this host.

    Attributes:
        nodes: these.
    """

    name = "PSHM"

    def __init__(
        self,
        context: RankContext,
        lock: AbstractContextManager[object],
        *,
        name: str,
        message: int,
        depth: int,
        burst: int,
    ) -> None:
        """Have rings to the ranks of this host; all of them do.

        Args:
            context: the rank.
            lock: held around what several threads must not do at once.
            name: of the memory they share.
            message: bytes of the largest message.
            depth: requests a rank may have under way to each other.
            burst: messages one poll delivers.

        Raises:
            LinkError: there is no such memory.
        """
        self.max_message = self.max_packed = message
        self._context = context
        self._lock = lock
        self._burst = burst
        procs = context.local_procs()
        # two messages a credit: the request, and what answers it; one for each round of the exit
        layout = Layout(len(procs), 2 * depth + context.size.bit_length(), message)
        self._memory = context.network.segment(name, layout.size)
        self._words = self._memory.cast("Q")
        here = context.me.local_rank
        self._parked = layout.parked(here)
        others = [proc for proc in procs if proc is not context.me]
        self._neighbours = {
            proc.rank: _Neighbour(self._memory, layout, proc, here) for proc in others
        }
        self._order = list(self._neighbours.values())
        self.nodes = tuple(self._neighbours)
        self._asleep = False
        context.network.doorbell(here)  # arms it as what wakes this rank

    def send(self, node: int, message: bytearray) -> bool:
        """Put a message into the ring to a neighbour, if there is room."""
        if len(message) > self.max_message:
            text = f"a message of {len(message)} bytes is larger than {self.max_message}"
            raise MPIError(ERR_INTERN, text)
        neighbour = self._neighbours[node]
        at = neighbour.writer.reserve(len(message))
        if at < 0:
            return False
        raw.copy(self._memory, at, memoryview(message), 0, len(message))
        neighbour.writer.publish(len(message), 0, 0, 0)
        raw.fence()
        if self._words[neighbour.parked]:
            self._wake(neighbour)
        return True

    def _wake(self, neighbour: _Neighbour) -> None:
        self._words[neighbour.parked] = AWAKE
        if neighbour.bell is None:
            network = self._context.network
            neighbour.bell = network.doorbell(neighbour.proc.local_rank)
        neighbour.bell.ring()

    def poll(self) -> int:
        """Deliver up to a burst of messages, of one neighbour after the other."""
        if self._asleep:
            self._words[self._parked] = AWAKE
            self._asleep = False
        count = 0
        for place, neighbour in enumerate(self._order):
            while count < self._burst:
                message = self._take(neighbour)
                if message is None:
                    break
                count += 1
                self.deliver(neighbour.proc.rank, message)
            if count >= self._burst:  # who had no turn comes first the next time
                self._order = [*self._order[place:], *self._order[:place]]
                break
        return count

    def _take(self, neighbour: _Neighbour) -> memoryview | None:
        """The oldest message of a neighbour, copied: its place is free."""
        reader = neighbour.reader
        if not reader.pending():
            return None
        with self._lock:
            if not reader.peek():
                return None
            message = raw.part(self._memory, reader.payload, reader.length)
            reader.release()
        return memoryview(bytearray(message))  # the handler's to change

    def ready(self) -> bool:
        """Whether there are messages; if not, whoever sends one rings."""
        self._words[self._parked] = ASLEEP
        self._asleep = True
        raw.fence()
        return any(neighbour.reader.pending() for neighbour in self._order)

    def close(self) -> None:
        """The memory goes with the ranks that have it."""
        self._neighbours.clear()
        self._order.clear()
