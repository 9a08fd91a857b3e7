"""Both ends of an eager RDMA channel: a ring of slots in the receiver's memory.

The sender writes fragment and footer so that the footer ends where the slot ends; the last byte
makes the slot full, and it is written last. The receiver looks at the slot whose turn it is,
empties it and gives it back as a credit. Writes have running numbers, which the wire does not
carry: number n goes to slot n modulo the slots.

A write that has failed leaves its slot empty, and the receiver would wait there for ever while
later ones, through other queue pairs, have arrived: the sender tells the number, and the receiver
passes that slot over.

Source: reference openmpi.md 5.4 and 5.7; a number cannot be taken for that of another lap.
"""

from __future__ import annotations

from collections.abc import Iterator

from ompy_components.btl.openib.headers import (
    FOOTER,
    FOOTER_SIZE,
    HEADER_SIZE,
    OWNER_LOCAL,
    OWNER_REMOTE,
    SIZE_MAX,
    BadFragment,
    RingOffer,
)


class SendRing:
    """The peer's ring, as its sender sees it.

    Attributes:
        offer: where it is.
        tokens: slots that may be written.
        next: number of the next write.
    """

    __slots__ = ("next", "offer", "tokens")

    def __init__(self, offer: RingOffer) -> None:
        self.offer = offer
        self.tokens = offer.slots - 1  # one stays empty, so that a full ring is no empty one
        self.next = 0

    @property
    def largest(self) -> int:
        """Bytes of a fragment that fits, header included."""
        return self.offer.slot_size - FOOTER_SIZE

    def take_slot(self, size: int) -> tuple[int, int] | None:
        """A slot for a fragment of `size` bytes, header included.

        Returns:
            The number of the write and the address it goes to; None: it does not fit, or there is
            no slot.
        """
        if not self.tokens or size > self.largest:
            return None
        self.tokens -= 1
        number = self.next
        self.next += 1
        end = self.offer.address + (number % self.offer.slots + 1) * self.offer.slot_size
        return number, end - FOOTER_SIZE - size

    def gained(self, count: int) -> None:
        """The peer has emptied slots."""
        self.tokens += count
        assert self.tokens < self.offer.slots, "more slots than the ring has"


class ReceiveRing:
    """A ring of ours that one peer writes to.

    Attributes:
        memory: registered, all slots.
        owed: slots the peer is to get back.
        next: number of the write whose turn it is.
        missing: numbers of writes that the peer has said failed.
    """

    __slots__ = ("_slot_size", "_slots", "memory", "missing", "next", "owed")

    def __init__(self, memory: memoryview, slots: int) -> None:
        self.memory = memory
        self.owed = self.next = 0
        self.missing: set[int] = set()
        self._slots = slots
        self._slot_size = len(memory) // slots

    @property
    def full(self) -> bool:
        """Whether the slot whose turn it is holds a fragment, or is to be passed over."""
        return self._is_full(self.next) or self.next in self.missing

    def take_fragment(self) -> memoryview | None:
        """The fragment whose turn it is, header included, or None.

        It is to be read before `done`, which has to be called for each.

        Raises:
            BadFragment: the footer makes no sense.
        """
        self._pass_over()
        if not self._is_full(self.next):
            return None
        end = self._end(self.next) - FOOTER_SIZE
        size = FOOTER.unpack_from(self.memory, end)[0] & SIZE_MAX
        if not HEADER_SIZE <= size <= self._slot_size - FOOTER_SIZE:
            raise BadFragment(f"a slot of {self._slot_size} bytes says it holds {size}")
        return self.memory[end - size : end]

    def done(self) -> None:
        """The fragment has been read: its slot is the peer's again."""
        self.memory[self._end(self.next) - 1] = OWNER_REMOTE
        self._advance()
        self._pass_over()

    def give(self, most: int) -> int:
        """Credits that go with the next header, up to `most`."""
        given = min(self.owed, most)
        self.owed -= given
        return given

    def failed(self, number: int) -> None:
        """The peer says that this write has failed. What has been passed already is no news."""
        if number >= self.next:
            self.missing.add(number)
            self._pass_over()

    @property
    def pressing(self) -> bool:
        """So many slots are owed that they are worth a message of their own."""
        return self.owed >= max(1, self._slots // 2)

    def rest(self) -> Iterator[memoryview]:
        """What lies in the ring of a connection that nobody writes to any more, in order.

        What is empty now was never acknowledged to the peer, so its sender knows that it failed.
        """
        for _ in range(self._slots):
            if self._is_full(self.next):
                fragment = self.take_fragment()
                assert fragment is not None
                yield fragment
                self.memory[self._end(self.next) - 1] = OWNER_REMOTE
            self._advance()

    def _is_full(self, number: int) -> bool:
        return self.memory[self._end(number) - 1] == OWNER_LOCAL

    def _end(self, number: int) -> int:
        return (number % self._slots + 1) * self._slot_size

    def _advance(self) -> None:
        self.missing.discard(self.next)
        self.next += 1
        self.owed += 1

    def _pass_over(self) -> None:
        while self.next in self.missing and not self._is_full(self.next):
            self._advance()
