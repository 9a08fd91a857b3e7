"""usnic's packets: their headers, and the parser.

    seal     24 bytes: MAC and a number that never wraps, see `seal.py`
    sender    4  rank of who sent it
    epoch     4  generation of the path: packets of another one are not taken (`path.py`)
    pkt_seq   2  number of the packet; of an ACK nothing, of a PING or PONG which size is asked for,
                 of an OPEN the sender's stage
    ack_seq   2  acknowledges this number and all before it, if ack_present
    length    2  bytes of payload: the wire may pad
    type      1  ACK, FRAG or CHUNK; PING or PONG; OPEN
    ack_present 1
    put_addr  8  registration a PUT goes to; 0 is no PUT
    tag       1  active message tag

and of a CHUNK further

    padding   3
    frag_id   4  of the fragment it is a piece of
    frag_size 4  bytes of the whole fragment
    frag_offset 4  of this piece; of a PUT, in the receiver's memory

The payload of an ACK says what has arrived behind the first number that has not, `ack_seq` + 1: a
bit for each number from `ack_seq` + 2 on, the lowest bit of the first byte first, as far as the
highest that has arrived, at most 512 bytes for a window of 4096. Without a gap there is none.

Little-endian. Source: reference usnic.md 4, where numbers are in host order, there is no seal, and
the sender's name has all of the first 8 bytes, and an ACK no payload; the MAC is made with the
job's key, so the name of the job needs no room. Bits: as the SACK option of RFC 2018, whose ranges
would take eight times the room for single losses.
"""

from __future__ import annotations

from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.btl import TAG_BTL, TAG_NOTICE, TAG_TRANSFER
from ompy.net.seals import datagram_seal

from ompy_components.btl.usnic.reliability.sequence import WINDOW

SEAL_SIZE: Final = datagram_seal.SEAL_SIZE
PACKET_LAYOUT: Final = HeaderLayout(
    "usnic.packet",
    "sender u32, epoch u32, sequence u16, acknowledged u16, length u16, type u8, ack_present u8, "
    "put_address u64, tag u8",
)
BTL_HEADER: Final = PACKET_LAYOUT.struct
CHUNK_LAYOUT: Final = HeaderLayout(
    "usnic.chunk", "pad 3, fragment u32, fragment_size u32, fragment_offset u32"
)
CHUNK_FIELDS: Final = CHUNK_LAYOUT.struct
HEADER_SIZE: Final = BTL_HEADER.size
CHUNK_HEADER_SIZE: Final = HEADER_SIZE + CHUNK_FIELDS.size
SENDER: Final = (0, 4)  # reference usnic.md 4: the sender's name is the first field; ours is a rank

ACK: Final = 1
FRAG: Final = 2
CHUNK: Final = 3  # reference usnic.md 1: payload types on the wire
PING: Final = (
    4  # reference usnic.md 14 has pings on a socket of their own; here they share this one
)
PONG: Final = 5  # values of the same field: the answer
OPEN: Final = 6  # another one: a path is to be taken back
# reference usnic.md 4: tags 0x20 on are BTLs' own. Those of the contract go over usnic as well
BYE: Final = 0x2E  # its sender needs nothing more
DONE: Final = 0x2F  # arbitrary, as the one before: what became of a put
PAYLOAD_MAX: Final = 0xFFFF  # reference usnic.md 4: payload_len has 16 bits
GAPS_MAX: Final = WINDOW // 8  # bytes of an ACK's payload; a bit for each number of the window
FRAGMENT_MAX: Final = 0xFFFF_FFFF  # reference usnic.md 4: frag_size has 32 bits

assert not {BYE, DONE} & {TAG_BTL, TAG_TRANSFER, TAG_NOTICE}, "what others send is not ours"
assert HEADER_SIZE == 25, "reference usnic.md 4"
assert CHUNK_HEADER_SIZE == 40, "reference usnic.md 4"
# the fields lie in words of 64 bits: rank and epoch; five short ones; put_addr; tag and frag_id;
# frag_size and frag_offset
_WORD: Final = 8  # Linux: bytes of 64 bits
_HALF: Final = 0xFFFF_FFFF  # Linux: 32 bits
_SHORT: Final = 0xFFFF  # Linux: 16 bits


class BadPacket(Exception):
    """What arrived is no packet of usnic's; the text says why."""


@cclass
class Header:
    """A packet's header.

    Attributes:
        sender: rank.
        kind: `ACK`, `FRAG`, `CHUNK`, `PING`, `PONG` or `OPEN`.
        sequence: of the packet; 0 in an ACK.
        acknowledged: number acknowledged, or None.
        length: bytes of payload.
        put_address: registration a PUT goes to, or 0.
        tag: active message tag.
        fragment: id of the fragment a CHUNK is a piece of, or 0.
        total: bytes of that fragment.
        offset: of the piece in it; of a PUT's, in the registered memory.
        epoch: generation of the path.
        size: bytes of the header on the wire, without the seal.
    """

    acknowledged: int | None
    epoch: U64
    fragment: U64
    kind: int
    length: int
    offset: int
    put_address: U64
    sender: U64
    sequence: int
    size: int
    tag: int
    total: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self,
        sender: int,
        kind: int,
        sequence: int = 0,
        acknowledged: int | None = None,
        length: int = 0,
        put_address: int = 0,
        tag: int = 0,
        fragment: int = 0,
        total: int = 0,
        offset: int = 0,
        epoch: int = 0,
    ) -> None:
        self.sender = sender
        self.kind = kind
        self.sequence = sequence
        self.acknowledged = acknowledged
        self.length = length
        self.put_address = put_address
        self.tag = tag
        self.fragment = fragment
        self.total = total
        self.offset = offset
        self.epoch = epoch
        self.size = CHUNK_HEADER_SIZE if kind == CHUNK else HEADER_SIZE

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Header):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in FIELDS)

    def __hash__(self) -> int:
        return hash((self.sender, self.epoch, self.sequence, self.kind))

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={getattr(self, name)!r}" for name in FIELDS)
        return f"Header({said})"


FIELDS: Final[tuple[str, ...]] = Header.__slots__


@ccall
def pack_into(header: Header, room: memoryview, at: int = 0) -> int:
    """Write a header at byte `at` of `room`; returns its size."""
    assert raw.size(room) >= at + header.size, "a packet has room for its header"
    first: U64 = header.sender | header.epoch << 32
    second: U64 = header.sequence | header.length << 32 | header.kind << 48
    if header.acknowledged is not None:
        acknowledged: U64 = header.acknowledged
        second |= acknowledged << 16 | 1 << 56
    fourth: U64 = header.tag | header.fragment << 32
    fifth: U64 = header.total | header.offset << 32
    words = raw.five_words(first, second, header.put_address, fourth, fifth)
    raw.copy(room, at, words, 0, header.size)
    return header.size


@ccall
def parse_packet(packet: memoryview) -> Header:
    """The header a packet begins with, behind its seal.

    Args:
        packet: header, payload and whatever the wire has padded it with.

    Raises:
        BadPacket: it is none.
    """
    whole: int = raw.size(packet)
    if whole < HEADER_SIZE:
        raise BadPacket(f"{whole} bytes are too few for a header")
    first: U64 = raw.word(packet, 0)
    second: U64 = raw.word(packet, _WORD)
    header: Header = Header.__new__(Header)
    header.sender = first & _HALF
    header.epoch = first >> 32
    header.sequence = second & _SHORT
    present: bool = second >> 56 != 0
    header.acknowledged = second >> 16 & _SHORT if present else None
    header.length = second >> 32 & _SHORT
    header.kind = kind = second >> 48 & 0xFF
    header.put_address = raw.word(packet, 2 * _WORD)
    header.tag = raw.word(packet, HEADER_SIZE - _WORD) >> 56
    header.size = HEADER_SIZE
    if kind == CHUNK:
        _read_chunk(header, packet)
    else:
        header.fragment = header.total = header.offset = 0
        if kind not in (ACK, FRAG, PING, PONG, OPEN):
            raise BadPacket(f"there is no packet type {kind}")
    if kind == ACK and (header.length > GAPS_MAX or not present):
        raise BadPacket("an ACK acknowledges something, and has a bit for each number at most")
    if whole < header.size + header.length:
        raise BadPacket(f"{whole} bytes, where {header.size + header.length} were sent")
    return header


@cfunc
def _read_chunk(header: Header, packet: memoryview) -> None:
    """Read the fields that a CHUNK has further."""
    if raw.size(packet) < CHUNK_HEADER_SIZE:
        raise BadPacket(f"{raw.size(packet)} bytes are too few for a chunk's header")
    fifth: U64 = raw.word(packet, 4 * _WORD)
    header.fragment = raw.word(packet, 3 * _WORD) >> 32
    header.total = fifth & _HALF
    header.offset = fifth >> 32
    header.size = CHUNK_HEADER_SIZE
    # a PUT's is in other memory
    inside: bool = header.put_address != 0 or header.offset + header.length <= header.total
    if not header.fragment or not header.length or not inside or header.length > header.total:
        raise BadPacket(
            f"chunk of fragment {header.fragment}: {header.length} bytes at {header.offset} of "
            f"{header.total}"
        )
