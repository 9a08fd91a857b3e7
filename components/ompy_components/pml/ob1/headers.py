"""ob1's wire headers: fields and offsets, each size asserted beside its declaration.

Little-endian on every machine, so peers never convert. Request ids are numbers from the
owner's table, opaque to the peer.

Source: reference openmpi.md 3.3 (types and flags) and 3.4 (layout of Open MPI 4.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.btl import TAG_PML, Descriptor

# header types; each is also the BTL tag its fragments travel under
MATCH: Final = TAG_PML + 1
RNDV: Final = TAG_PML + 2
RGET: Final = TAG_PML + 3
ACK: Final = TAG_PML + 4
FRAG: Final = TAG_PML + 6
PUT: Final = TAG_PML + 8
FIN: Final = TAG_PML + 9
CREDIT: Final = TAG_PML + 15  # arbitrary: behind those of bfo
LEAVE: Final = TAG_PML + 7  # arbitrary: that of a header of Open MPI (GET) that ompy has not
NAMES: Final = {
    MATCH: "MATCH",
    RNDV: "RNDV",
    RGET: "RGET",
    ACK: "ACK",
    FRAG: "FRAG",
    PUT: "PUT",
    FIN: "FIN",
    CREDIT: "CREDIT",
    LEAVE: "LEAVE",
}
LAST_TAG: Final = 256  # reference: tags of BTLs are a byte
# for the flight recorder, by tag; what begins a message is noted where its header is read
ARRIVED: Final = [f"< {NAMES.get(tag, tag)}" for tag in range(LAST_TAG)]
SENT: Final = {tag: f"> {name}" for tag, name in NAMES.items()}
assert (MATCH, RNDV, RGET, ACK, FRAG, PUT, FIN, LEAVE) == (65, 66, 67, 68, 70, 72, 73, 71)

# header flags
FLAG_ACK: Final = 0x01
FLAG_BARE: Final = 0x02  # of a RNDV or RGET: there was no credit for a payload
FLAG_PIN: Final = 0x04
FLAG_ASK: Final = 0x01  # of a CREDIT: who sends it cannot go on, and wants one
FLAG_CONTIG: Final = 0x08
FLAG_NORDMA: Final = 0x10
FLAG_SIGNAL: Final = 0x20
FLAG_WAITS: Final = 0x40  # of a RGET: the sender waits for it, on a core of its own

MATCH_LAYOUT: Final = HeaderLayout(
    "ob1.match", "type u8, flags u8, context u16, source i32, tag i32, sequence u32"
)
MATCH_HEADER: Final = MATCH_LAYOUT.struct
assert MATCH_HEADER.size == 16
RNDV_LAYOUT: Final = HeaderLayout(
    "ob1.rndv",
    "type u8, flags u8, context u16, source i32, tag i32, sequence u32, length u64, send_id u64",
)
RNDV_HEADER: Final = RNDV_LAYOUT.struct
assert RNDV_HEADER.size == 32
# `address` is that of the message in the registered memory; the
# registration handle of the rail it goes over follows, then those of other rails, see `RECORD`.
# A negative address says that the memory begins so many bytes behind the message's beginning:
# these bytes are the last ones of the fragment
RGET_LAYOUT: Final = HeaderLayout(
    "ob1.rget",
    "type u8, flags u8, context u16, source i32, tag i32, sequence u32, length u64, send_id u64, "
    "fragment_id u64, address i64",
)
RGET_HEADER: Final = RGET_LAYOUT.struct
assert RGET_HEADER.size == 48
FRAG_LAYOUT: Final = HeaderLayout(
    "ob1.frag", "type u8, flags u8, pad 6, offset u64, send_id u64, receive_id u64"
)
FRAG_HEADER: Final = FRAG_LAYOUT.struct
assert FRAG_HEADER.size == 32
# `offset` and `size` say what is to be sent; a size of 0: all that is left
ACK_LAYOUT: Final = HeaderLayout(
    "ob1.ack", "type u8, flags u8, pad 6, send_id u64, receive_id u64, offset u64, size u64"
)
ACK_HEADER: Final = ACK_LAYOUT.struct
assert ACK_HEADER.size == 40
# `offset` is in the message, `address` in the registered memory; the registration handle follows
PUT_LAYOUT: Final = HeaderLayout(
    "ob1.put",
    "type u8, flags u8, pad 6, send_id u64, fragment_id u64, receive_id u64, offset u64, "
    "address u64, size u64",
)
PUT_HEADER: Final = PUT_LAYOUT.struct
assert PUT_HEADER.size == 56
# `size` are bytes moved, or a negative error
FIN_LAYOUT: Final = HeaderLayout("ob1.fin", "type u8, flags u8, pad 6, size i64, fragment_id u64")
FIN_HEADER: Final = FIN_LAYOUT.struct
assert FIN_HEADER.size == 24
# messages taken and bytes given back are all that ever were
CREDIT_LAYOUT: Final = HeaderLayout(
    "ob1.credit", "type u8, flags u8, pad 2, window u32, taken u64, given_back u64"
)
CREDIT_HEADER: Final = CREDIT_LAYOUT.struct
assert CREDIT_HEADER.size == 24

# the largest header, PUT's: what an eager limit must leave room for
UNION_SIZE: Final = PUT_HEADER.size  # reference openmpi.md 3.4
assert UNION_SIZE == 56
MATCH_SIZE: Final = MATCH_HEADER.size
RNDV_SIZE: Final = RNDV_HEADER.size
FRAG_SIZE: Final = FRAG_HEADER.size
ACK_SIZE: Final = ACK_HEADER.size
FIN_SIZE: Final = FIN_HEADER.size
CREDIT_SIZE: Final = CREDIT_HEADER.size
RGET_SIZE: Final = RGET_HEADER.size
PUT_SIZE: Final = PUT_HEADER.size
assert max(MATCH_SIZE, RNDV_SIZE, RGET_SIZE, FRAG_SIZE, ACK_SIZE) <= UNION_SIZE

# of each further registration behind a RGET: bytes of the rail's name u8, of the handle u16
RECORD: Final = Struct("<BH")
assert RECORD.size == 3


_LOW: Final = 0xFFFFFFFF  # reference openmpi.md 3.4: rank and tag have 32 bits


# What most messages need is packed and read as words: compiled, that is a tenth of what `struct`
# takes. The structs above say the same, and the tests compare them.


@ccall
def match_words(flags: U64, context_id: U64, source: int, tag: int, sequence: U64) -> bytes:
    """A MATCH header."""
    kind: int = MATCH
    first: U64 = kind | flags << 8 | context_id << 16 | (source & _LOW) << 32
    return raw.two_words(first, tag & _LOW | sequence << 32)


@ccall
def rndv_words(
    flags: U64, context_id: U64, source: int, tag: int, sequence: U64, length: U64, send_id: U64
) -> bytes:
    """A RNDV header."""
    kind: int = RNDV
    first: U64 = kind | flags << 8 | context_id << 16 | (source & _LOW) << 32
    return raw.four_words(first, tag & _LOW | sequence << 32, length, send_id)


@ccall
def frag_words(offset: U64, send_id: U64, receive_id: U64) -> bytes:
    """A FRAG header."""
    return raw.four_words(FRAG, offset, send_id, receive_id)


@ccall
def ack_words(flags: U64, send_id: U64, receive_id: U64, offset: U64, size: U64) -> bytes:
    """An ACK."""
    first: U64 = ACK | flags << 8
    return raw.five_words(first, send_id, receive_id, offset, size)


@ccall
def rget_words(
    flags: U64,
    context_id: U64,
    source: int,
    tag: int,
    sequence: U64,
    length: U64,
    send_id: U64,
    fragment_id: U64,
    address: int,
) -> bytes:
    """A RGET header."""
    kind: int = RGET
    first: U64 = kind | flags << 8 | context_id << 16 | (source & _LOW) << 32
    second: U64 = tag & _LOW | sequence << 32
    return raw.six_words(first, second, length, send_id, fragment_id, address)


@ccall
def put_words(
    flags: U64,
    send_id: U64,
    fragment_id: U64,
    receive_id: U64,
    offset: U64,
    address: U64,
    size: U64,
) -> bytes:
    """A PUT header."""
    first = PUT | flags << 8
    return raw.seven_words(first, send_id, fragment_id, receive_id, offset, address, size)


@ccall
def fin_words(size: int, fragment_id: U64) -> bytes:
    """A FIN."""
    return raw.three_words(FIN, size, fragment_id)


@ccall
def credit_words(flags: U64, window: U64, taken: int, back: U64) -> bytes:
    """A CREDIT."""
    first: U64 = CREDIT | flags << 8 | window << 32
    return raw.three_words(first, taken, back)


@ccall
def as_signed(low: int) -> int:
    """The number that the lower 32 bits of a word stand for."""
    low &= _LOW
    return low - _LOW - 1 if low >> 31 else low


# 32 bits on the wire (reference openmpi.md 3.1.1 has 16, and 2 bytes of padding behind them). They
# wrap; the window of `flow` keeps what is under way far below half of them
SEQUENCE_MASK: Final = 0xFFFFFFFF
SEQUENCES: Final = SEQUENCE_MASK + 1


@ccall
def parse(header: Struct, tag: int, data: memoryview) -> tuple[int, ...]:
    """The fields of a header at the start of `data`.

    Raises:
        MPIError: ERR_INTERN, when `data` is too short or says another type than `tag`. The
            peer is one of ours (it has proven so), hence this is a defect, not an attack.
    """
    check(tag, header.size, data)
    return header.unpack_from(data)


@ccall
def check(tag: int, size: int, data: memoryview) -> None:
    """See that `data` begins with a header of type `tag`.

    Raises:
        MPIError: as `parse`.
    """
    if raw.size(data) < size:
        raise MPIError(
            ERR_INTERN,
            f"ob1: a {NAMES.get(tag, tag)} fragment of {len(data)} bytes is shorter than its "
            f"header of {size}",
        )
    if raw.word(data, 0) & 0xFF != tag:
        raise MPIError(
            ERR_INTERN, f"ob1: a fragment under tag {tag} has a header of type {data[0]}"
        )


@ccall
def place(descriptor: Descriptor, header: bytes) -> None:
    """Write a header where a fragment begins."""
    segment: memoryview = descriptor.segment
    size: int = len(header)
    assert size <= raw.size(segment), "a BTL gave less memory than it was asked for"
    raw.copy(segment, 0, header, 0, size)


def pack_registrations(registrations: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Further registrations for a RGET: each a rail's name and its handle."""
    parts = []
    for name, handle in registrations:
        parts += [RECORD.pack(len(name), len(handle)), name, handle]
    return b"".join(parts)


@ccall
def parse_registrations(data: bytes) -> list[tuple[bytes, bytes]]:
    """What `pack_registrations` made.

    Raises:
        MPIError: ERR_INTERN, `data` ends in the middle of one.
    """
    found = []
    while data:
        if len(data) < RECORD.size:
            raise MPIError(ERR_INTERN, "ob1: a RGET ends in the middle of a registration")
        name, handle = RECORD.unpack_from(data)
        end = RECORD.size + name + handle
        if len(data) < end:
            raise MPIError(ERR_INTERN, "ob1: a RGET ends in the middle of a registration")
        found.append((data[RECORD.size : RECORD.size + name], data[RECORD.size + name : end]))
        data = data[end:]
    return found
