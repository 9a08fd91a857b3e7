"""hca's packets: their headers, and the parser.

    seal         24  MAC and a number that never wraps, see `ompy.net.seals.datagram_seal`
    opcode        1
    flags         1  bit 0: an ACK is asked for; of a SILENT: it is for good
    round         1  how often the requester has gone back; an answer says which round it answers
    reserved      1
    to_lid        2  device and queue pair it is for
    from_lid      2  and those it comes from
    to            4
    source        4
    sequence      4  number of the packet, 24 bits

then, by opcode,

    RETH          address 8, rkey 4, length 4, segment 4 (bytes of each packet of a read's answer)
    AtomicETH     address 8, rkey 4, swap 8, compare 8
    AETH          syndrome 1, message number 3
    AtomicAckETH  the old value, 8

and the payload. Little-endian. Source: InfiniBand specification 1, chapter 9 (base and extended
transport headers, opcodes of the reliable connection, syndromes), where numbers are big-endian, the
LIDs stand in a header of their own, and there is neither seal, round nor segment.
"""

from __future__ import annotations

from enum import Enum
from struct import Struct
from typing import Final, NamedTuple

from ompy.data.header_layout import HeaderLayout
from ompy.net.seals.datagram_seal import SEAL_SIZE

BASE_LAYOUT: Final = HeaderLayout(
    "hca.base",
    "opcode u8, flags u8, round u8, pad 1, to_lid u16, from_lid u16, to u32, source u32, "
    "sequence u32",
)
RETH_LAYOUT: Final = HeaderLayout("hca.reth", "address u64, rkey u32, length u32, segment u32")
ATOMIC_ETH_LAYOUT: Final = HeaderLayout(
    "hca.atomic_eth", "address u64, rkey u32, swap u64, compare u64"
)
AETH_LAYOUT: Final = HeaderLayout("hca.aeth", "answer u32")
ATOMIC_ACK_LAYOUT: Final = HeaderLayout("hca.atomic_ack", "answer u32, original u64")
BASE: Final = BASE_LAYOUT.struct
RETH: Final = RETH_LAYOUT.struct
ATOMIC_ETH: Final = ATOMIC_ETH_LAYOUT.struct
AETH: Final = AETH_LAYOUT.struct
ATOMIC_ACK: Final = ATOMIC_ACK_LAYOUT.struct
WORD: Final = Struct("=Q")  # what atomics work on, as it lies in memory
BEGIN: Final = SEAL_SIZE + BASE.size  # where what depends on the opcode begins
OVERHEAD: Final = BEGIN + RETH.size  # bytes of a packet beside its payload, at most
assert BASE.size == 20
assert OVERHEAD == 64
SENDER: Final = (6, 8)  # bytes of the base header where the sender's LID is

# InfiniBand specification 1, table 38: values of the opcode field, reliable connection
SEND_FIRST: Final = 0x00
SEND_MIDDLE: Final = 0x01
SEND_LAST: Final = 0x02
SEND_ONLY: Final = 0x04  # values of the opcode field, and all below
WRITE_FIRST: Final = 0x06
WRITE_MIDDLE: Final = 0x07
WRITE_LAST: Final = 0x08
WRITE_ONLY: Final = 0x0A
READ_REQUEST: Final = 0x0C
READ_RESPONSE_FIRST: Final = 0x0D
READ_RESPONSE_MIDDLE: Final = 0x0E
READ_RESPONSE_LAST: Final = 0x0F
READ_RESPONSE_ONLY: Final = 0x10
ACKNOWLEDGE: Final = 0x11
ATOMIC_ACKNOWLEDGE: Final = 0x12
COMPARE_SWAP: Final = 0x13
FETCH_ADD: Final = 0x14
SILENT: Final = 0xC0  # arbitrary values of the opcode field, of those left to manufacturers
NOP: Final = 0xC1

ASKS: Final = 1  # flag: an ACK is asked for

# syndromes of an AETH: the kind in the high bits, its value in the low five
ACK: Final = 0x00
RNR_NAK: Final = 0x20  # values of the syndrome
NAK: Final = 0x60
KIND_MASK: Final = 0xE0  # of values of the syndrome, and the next
VALUE_MASK: Final = 0x1F
SEQUENCE_BITS: Final = 24  # reference openmpi.md 5 counts packets as the specification does
SPACE: Final = 1 << SEQUENCE_BITS
LENGTH_MAX: Final = 1 << 31  # bytes of a message; InfiniBand specification 1, 9.4.1, reference


class Refusal(Enum):
    """Values of a NAK."""

    SEQUENCE = 0
    INVALID = 1
    ACCESS = 2
    OPERATION = 3


class BadPacket(Exception):
    """What arrived is no packet of hca's; the text says why."""


class Remote(NamedTuple):
    """RETH: memory of the responder, and how long a read's packets are to be."""

    address: int
    rkey: int
    length: int
    segment: int


class Operands(NamedTuple):
    """AtomicETH."""

    address: int
    rkey: int
    swap: int
    compare: int


class Answer(NamedTuple):
    """AETH, and the old value an atomic found."""

    syndrome: int
    message: int
    original: int = 0

    @property
    def kind(self) -> int:
        """ACK, RNR_NAK or NAK."""
        return self.syndrome & KIND_MASK

    @property
    def value(self) -> int:
        """Timer code of an RNR NAK, `Refusal` of a NAK."""
        return self.syndrome & VALUE_MASK


class Packet(NamedTuple):
    """A packet, parsed.

    Attributes:
        opcode: what it is.
        asks: an ACK is asked for; of a SILENT: it is for good.
        round: of the requester.
        to_lid, to: device and queue pair it is for.
        from_lid, source: those it comes from.
        sequence: its number, 24 bits.
        extension: what stands behind the base header.
        payload: the rest; a view of what was parsed.
    """

    opcode: int
    asks: bool
    round: int
    to_lid: int
    to: int
    from_lid: int
    source: int
    sequence: int
    extension: Remote | Operands | Answer | None
    payload: memoryview


# how a packet of each opcode goes on behind the base header, and whether it has a payload
_PLAIN: Final = {SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_ONLY, WRITE_MIDDLE, WRITE_LAST}
_REMOTE: Final = {WRITE_FIRST, WRITE_ONLY, READ_REQUEST}
_ATOMIC: Final = {COMPARE_SWAP, FETCH_ADD}
_ANSWERED: Final = {
    READ_RESPONSE_FIRST,
    READ_RESPONSE_LAST,
    READ_RESPONSE_ONLY,
    ACKNOWLEDGE,
}
_BARE: Final = {READ_RESPONSE_MIDDLE, SILENT, NOP}
_NO_PAYLOAD: Final = {READ_REQUEST, ACKNOWLEDGE, SILENT, NOP, ATOMIC_ACKNOWLEDGE} | _ATOMIC
REQUESTS: Final = frozenset(_PLAIN | _REMOTE | _ATOMIC)
READ_RESPONSES: Final = frozenset(
    {READ_RESPONSE_FIRST, READ_RESPONSE_MIDDLE, READ_RESPONSE_LAST, READ_RESPONSE_ONLY}
)
OPCODES: Final = frozenset(_PLAIN | _REMOTE | _ATOMIC | _ANSWERED | _BARE | {ATOMIC_ACKNOWLEDGE})


def header_size(opcode: int) -> int:
    """Bytes in front of the payload, seal included."""
    if opcode in _REMOTE:
        return BEGIN + RETH.size
    if opcode in _ATOMIC:
        return BEGIN + ATOMIC_ETH.size
    if opcode in _ANSWERED:
        return BEGIN + AETH.size
    if opcode == ATOMIC_ACKNOWLEDGE:
        return BEGIN + ATOMIC_ACK.size
    return BEGIN


def pack_extension(extension: Remote | Operands | Answer, opcode: int, room: bytearray) -> None:
    """Write what stands behind the base header."""
    if isinstance(extension, Remote):
        RETH.pack_into(room, BEGIN, *extension)
    elif isinstance(extension, Operands):
        ATOMIC_ETH.pack_into(room, BEGIN, *extension)
    elif opcode == ATOMIC_ACKNOWLEDGE:
        word = extension.syndrome << SEQUENCE_BITS | extension.message % SPACE
        ATOMIC_ACK.pack_into(room, BEGIN, word, extension.original)
    else:
        word = extension.syndrome << SEQUENCE_BITS | extension.message % SPACE
        AETH.pack_into(room, BEGIN, word)


def parse(packet: memoryview) -> Packet:
    """Take a packet apart, seal and all.

    Raises:
        BadPacket: it is none.
    """
    size = len(packet)
    if size < BEGIN:
        raise BadPacket(f"{size} bytes are too few for a header")
    opcode, flags, round_, to_lid, from_lid, to, source, sequence = BASE.unpack_from(
        packet, SEAL_SIZE
    )
    if opcode not in OPCODES:
        raise BadPacket(f"there is no opcode {opcode:#04x}")
    if to >= SPACE or source >= SPACE or sequence >= SPACE:
        raise BadPacket("a number has more than 24 bits")
    begin = header_size(opcode)
    if size < begin:
        raise BadPacket(f"{size} bytes are too few for opcode {opcode:#04x}")
    if size > begin and opcode in _NO_PAYLOAD:
        raise BadPacket(f"opcode {opcode:#04x} has no payload")
    return Packet(
        opcode,
        bool(flags & ASKS),
        round_,
        to_lid,
        to,
        from_lid,
        source,
        sequence,
        _extension(opcode, packet),
        packet[begin:],
    )


def _extension(opcode: int, packet: memoryview) -> Remote | Operands | Answer | None:
    if opcode in _REMOTE:
        return Remote._make(RETH.unpack_from(packet, BEGIN))
    if opcode in _ATOMIC:
        return Operands._make(ATOMIC_ETH.unpack_from(packet, BEGIN))
    if opcode in _ANSWERED:
        (word,) = AETH.unpack_from(packet, BEGIN)
        return Answer(word >> SEQUENCE_BITS, word % SPACE)
    if opcode == ATOMIC_ACKNOWLEDGE:
        word, original = ATOMIC_ACK.unpack_from(packet, BEGIN)
        return Answer(word >> SEQUENCE_BITS, word % SPACE, original)
    return None


def unwrapped(sequence: int, near: int) -> int:
    """The full number of a packet, of which 24 bits are known and whose neighbour is `near`.

    Numbers are compared within half their range.
    """
    half = SPACE >> 1
    return near + (sequence - near + half) % SPACE - half
