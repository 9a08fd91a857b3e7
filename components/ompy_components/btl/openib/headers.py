"""What openib's fragments and messages look like on the wire. All numbers are little-endian.

Every fragment begins with a header:

    tag u8 | cm_seen u8 | credits u16: bit 15 of the ring, 11 to 14 queue, 0 to 10 how many

Under `CONTROL` a message follows, whose first byte is its type. A fragment in a slot of a ring has
a footer at the slot's end: its size in 24 bits, then the byte that says whose the slot is.

Source: reference openmpi.md 5.3 to 5.5 and 5.7.
"""

from __future__ import annotations

from struct import Struct, error
from typing import Final, NamedTuple

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.btl import TAG_BTL

CONTROL: Final = TAG_BTL  # as Open MPI's: the BTLs' own tag

# types of control messages; reference openmpi.md 5.3
CREDITS: Final = 0
RDMA: Final = 1
COALESCED: Final = 2
CTS: Final = 3  # never sent: who is connected may send
EP_BROKEN: Final = 4
EP_EAGER_RDMA_ERROR: Final = 5
BYE: Final = 6  # ours: the sender needs nothing more
RDMA_QUEUE: Final = 7  # ours: a new queue pair for put and get

HEADER_LAYOUT: Final = HeaderLayout("openib.header", "tag u8, cm_seen u8, credits u16")
HEADER: Final = HEADER_LAYOUT.struct
HEADER_SIZE: Final = HEADER.size
assert HEADER_SIZE == 4
FOOTER: Final = Struct("<I")
FOOTER_SIZE: Final = FOOTER.size
assert FOOTER_SIZE == 4
MARGIN: Final = HEADER_SIZE + FOOTER_SIZE  # bytes of a buffer beside its segment
SUBHEADER_LAYOUT: Final = HeaderLayout("openib.subheader", "tag u8, size u32, alloc_size u32")
SUBHEADER: Final = SUBHEADER_LAYOUT.struct
SUBHEADER_SIZE: Final = SUBHEADER.size
assert SUBHEADER_SIZE == 9

# reference openmpi.md 5.3: bits of the header's second word
RING: Final = 1 << 15
QUEUE_SHIFT: Final = 11
CREDITS_MASK: Final = (1 << QUEUE_SHIFT) - 1
CM_MAX: Final = 255

OWNER_LOCAL: Final = 0xFF  # reference openmpi.md 5.4: the slot holds a fragment
OWNER_REMOTE: Final = 0
SIZE_MAX: Final = (1 << 24) - 1

CREDITS_LAYOUT: Final = HeaderLayout(
    "openib.credits", "type u8, queue u8, reserved u16, unused u32"
)
RING_LAYOUT: Final = HeaderLayout(
    "openib.rdma", "type u8, unused u8, slots u16, rkey u32, address u64, slot_size u32"
)
BROKEN_LAYOUT: Final = HeaderLayout(
    "openib.broken",
    "type u8, unused u8, unused_too u16, lid u32, subnet u64, rank u32, connection u32, number u32",
)
QUEUE_LAYOUT: Final = HeaderLayout(
    "openib.rdma_queue",
    "type u8, answer u8, lid u16, number u32, first_packet u32, renewal u32",
)
_CREDITS: Final = CREDITS_LAYOUT.struct
_RDMA: Final = RING_LAYOUT.struct
_BROKEN: Final = BROKEN_LAYOUT.struct
_RDMA_QUEUE: Final = QUEUE_LAYOUT.struct
CONTROL_MAX: Final = max(_CREDITS.size, _RDMA.size, _BROKEN.size, _RDMA_QUEUE.size)


class BadFragment(Exception):
    """Bytes that are no fragment or message of openib."""


class Given(NamedTuple):
    """Credits in a header.

    Attributes:
        queue: of `credits`, unless they are of the ring, and of `seen`.
        credits: buffers, or slots, the receiver has given back.
        seen: messages on reserved buffers it has seen.
        ring: the credits are of the ring.
    """

    queue: int
    credits: int
    seen: int
    ring: bool


NOTHING: Final = Given(0, 0, 0, False)


def pack_header(tag: int, given: Given) -> bytes:
    """The header of a fragment."""
    word = given.credits | given.queue << QUEUE_SHIFT | (RING if given.ring else 0)
    return HEADER.pack(tag, given.seen, word)


def unpack_header(data: memoryview) -> tuple[int, Given]:
    """Tag and credits. Raises BadFragment when it is shorter than a header."""
    if len(data) < HEADER_SIZE:
        raise BadFragment(f"{len(data)} bytes are no fragment")
    tag, seen, word = HEADER.unpack_from(data)
    queue = (word & ~RING) >> QUEUE_SHIFT
    return tag, Given(queue, word & CREDITS_MASK, seen, bool(word & RING))


def pack_footer(size: int) -> bytes:
    """The footer of a fragment of `size` bytes, header included; it makes the slot full."""
    assert size <= SIZE_MAX, f"{size} bytes do not fit a footer"
    return FOOTER.pack(size | OWNER_LOCAL << 24)


class Broken(NamedTuple):
    """EP_BROKEN, or EP_EAGER_RDMA_ERROR: about a connection of another module.

    Attributes:
        lid, subnet: of the sender's port whose connection it is about.
        rank: of the sender.
        connection: the sender's number for it.
        number: of the eager RDMA write that failed.
    """

    lid: int
    subnet: int
    rank: int
    connection: int
    number: int = 0


def pack_credits(queue: int, *, reserved: bool) -> bytes:
    """CREDITS: what it brings is in the header. It may take a reserved buffer of its queue."""
    return _CREDITS.pack(CREDITS, queue, reserved, 0)


class RingOffer(NamedTuple):
    """RDMA: a ring the receiver of this message may write to.

    Attributes:
        slots: how many.
        rkey, address: of its memory.
        slot_size: bytes of each.
    """

    slots: int
    rkey: int
    address: int
    slot_size: int


def pack_ring(offer: RingOffer) -> bytes:
    """RDMA."""
    return _RDMA.pack(RDMA, 0, offer.slots, offer.rkey, offer.address, offer.slot_size)


def pack_broken(kind: int, broken: Broken) -> bytes:
    """EP_BROKEN or EP_EAGER_RDMA_ERROR."""
    return _BROKEN.pack(kind, 0, 0, *broken)


class QueueOffer(NamedTuple):
    """RDMA_QUEUE: the sender's new queue pair for put and get.

    Attributes:
        lid, number, first_packet: as `Destination` has them.
        renewal: which one it is, from 1.
        answer: it is for what the receiver of this message asks, else for what its sender does.
    """

    lid: int
    number: int
    first_packet: int
    renewal: int
    answer: bool


def pack_queue(offer: QueueOffer) -> bytes:
    """RDMA_QUEUE."""
    return _RDMA_QUEUE.pack(RDMA_QUEUE, offer.answer, *offer[:4])


def pack_bye() -> bytes:
    """BYE."""
    return bytes([BYE])


def control_type(message: memoryview) -> int:
    """The type of a message. Raises BadFragment when there is none."""
    if not len(message):
        raise BadFragment("a control message without a type")
    return message[0]


def took_reserve(message: memoryview) -> bool:
    """Whether it is a CREDITS message on a reserved buffer. Raises BadFragment."""
    if control_type(message) != CREDITS:
        return False
    return bool(_unpack(_CREDITS, message)[2])


def unpack_ring(message: memoryview) -> RingOffer:
    """The offer in an RDMA message. Raises BadFragment."""
    _, _, slots, rkey, address, slot_size = _unpack(_RDMA, message)
    if slots < 1 or slot_size <= HEADER_SIZE + FOOTER_SIZE:
        raise BadFragment(f"a ring of {slots} slots of {slot_size} bytes")
    return RingOffer(slots, rkey, address, slot_size)


def unpack_broken(message: memoryview) -> Broken:
    """What EP_BROKEN or EP_EAGER_RDMA_ERROR is about. Raises BadFragment."""
    return Broken(*_unpack(_BROKEN, message)[3:])


def unpack_queue(message: memoryview) -> QueueOffer:
    """What RDMA_QUEUE tells. Raises BadFragment."""
    _, answer, lid, number, first_packet, renewal = _unpack(_RDMA_QUEUE, message)
    return QueueOffer(lid, number, first_packet, renewal, bool(answer))


def _unpack(layout: Struct, message: memoryview) -> tuple[int, ...]:
    try:
        return layout.unpack(message)
    except error:
        raise BadFragment(
            f"a control message of type {message[0] if len(message) else '?'} has "
            f"{len(message)} bytes, not {layout.size}"
        ) from None
