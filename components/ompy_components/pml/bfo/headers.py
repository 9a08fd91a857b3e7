"""What bfo's wire headers have beyond ob1's: restarts, the FIN, and the messages of the dance.

Source: seed bfo (7, 8); reference openmpi.md 4.4, from which the layout differs
where a field was too small or told nothing (README of this folder).
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.errors import ERR_INTERN, MPIError
from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.btl import TAG_PML

from ompy_components.pml.ob1.headers import (
    FIN,
    NAMES,
    RGET_SIZE,
    RNDV_SIZE,
    SEQUENCE_MASK,
    SEQUENCES,
    as_signed,
)

# tags, each also the header's type; reference openmpi.md 3.3
NOTIFY: Final = TAG_PML + 10
RESTART_ACK: Final = TAG_PML + 11
RESTART_NACK: Final = TAG_PML + 12
RECV_ERR: Final = TAG_PML + 13
FINAL_BARRIER: Final = TAG_PML + 14
assert (NOTIFY, RECV_ERR, FINAL_BARRIER) == (74, 77, 78)

RESTART_NAMES: Final = {
    NOTIFY: "RNDVRESTARTNOTIFY",
    RESTART_ACK: "RNDVRESTARTACK",
    RESTART_NACK: "RNDVRESTARTNACK",
    RECV_ERR: "RECVERRNOTIFY",
    FINAL_BARRIER: "FINAL_BARRIER",
}
SENT: Final = {tag: f"> {name}" for tag, name in {**NAMES, **RESTART_NAMES}.items()}

# of a RNDV or RGET: `EXTRA` is behind ob1's header; arbitrary: the bit that ob1 leaves
FLAG_RESTART: Final = 0x80
_RESTART: Final = FLAG_RESTART << 8  # in the header's first word
FLAG_RESENT: Final = 0x01  # of a FIN: an earlier one may have arrived
FLAG_LOST: Final = 0x02  # of a FIN: the put was lost with its rail, and nothing comes in its place

# of a restarted RNDV or RGET
EXTRA_LAYOUT: Final = HeaderLayout("bfo.restart", "receive_id u64, restart u32, pad 4")
EXTRA: Final = EXTRA_LAYOUT.struct
assert EXTRA.size == 16
# `size` may be a negative error, `offset` is that of the piece
FIN_LAYOUT: Final = HeaderLayout(
    "bfo.fin",
    "type u8, flags u8, context u16, source i32, sequence u32, restart u32, size i64, "
    "fragment_id u64, offset u64",
)
FIN_HEADER: Final = FIN_LAYOUT.struct
_FIN_SIZE: Final = FIN_HEADER.size
assert _FIN_SIZE == 40
DANCE_LAYOUT: Final = HeaderLayout(
    "bfo.dance",
    "type u8, flags u8, context u16, source i32, sequence u32, restart u32, send_id u64, "
    "receive_id u64",
)
DANCE_HEADER: Final = DANCE_LAYOUT.struct
assert DANCE_HEADER.size == 32

BY_ID: Final = -1  # a source that leaves the message to be told by the requests' ids alone

UNION_SIZE: Final = RGET_SIZE + EXTRA.size  # the largest, a restarted RGET's

GENERATIONS: Final = 1 << 32  # restart sequence numbers; arbitrary: u32, four billion restarts

_LOW: Final = 0xFFFFFFFF  # reference openmpi.md 3.4: a rank has 32 bits


def following(generation: int) -> int:
    """The restart sequence number after this one."""
    return (generation + 1) % GENERATIONS


@ccall
def newer(one: int, other: int) -> bool:
    """Whether restart sequence number `one` was given later than `other`."""
    return 0 < (one - other) % GENERATIONS < GENERATIONS // 2


@ccall
def is_behind(sequence: int, expected: int) -> bool:
    """Whether a message's turn has been, the next one's number being `expected`."""
    return 0 < (expected - sequence) % SEQUENCES <= SEQUENCES // 2


@ccall
def is_first_try(data: memoryview) -> bool:
    """Whether a RNDV or RGET is not a restarted one, as far as it is one at all."""
    return raw.size(data) < RNDV_SIZE or not raw.word(data, 0) & _RESTART


def restarted(header: bytes, receive_id: int, generation: int) -> bytes:
    """The header of a restarted message from that of a first try."""
    flags = bytes([header[1] | FLAG_RESTART])
    return header[:1] + flags + header[2:] + EXTRA.pack(receive_id, generation)


def first_try(size: int, data: memoryview) -> tuple[memoryview, int, int]:
    """Take `EXTRA` out of a restarted message, whose header has `size` bytes without it.

    Returns:
        The message as ob1 reads it, the receive request and the restart sequence number.

    Raises:
        MPIError: ERR_INTERN, it is too short.
    """
    end = size + EXTRA.size
    if len(data) < end:
        raise MPIError(ERR_INTERN, f"bfo: a restart of {len(data)} bytes is shorter than {end}")
    receive_id, generation = EXTRA.unpack_from(data, size)
    plain = bytearray(data[:size]) + data[end:]
    plain[1] &= ~FLAG_RESTART
    return memoryview(bytes(plain)), receive_id, generation


@cclass
class Fin:
    """What a FIN says.

    Attributes:
        flags: of the header.
        context_id, source, sequence: of the message, the source being who sends the FIN.
        generation: restart sequence number.
        size: bytes moved, or a negative error.
        fragment: the RDMA fragment, or the offer.
        offset: of the piece in the message.
    """

    context_id: int
    flags: int
    fragment: U64
    generation: U64
    offset: U64
    sequence: int
    size: int
    source: int
    __slots__ = tuple(__annotations__)


@ccall
def fin_words(
    flags: U64,
    context_id: U64,
    source: int,
    sequence: U64,
    generation: U64,
    size: int,
    fragment: U64,
    offset: U64,
) -> bytes:
    """A FIN, as `FIN_HEADER` has it; the arguments are the attributes of `Fin`."""
    kind: int = FIN
    first: U64 = kind | flags << 8 | context_id << 16 | (source & _LOW) << 32
    return raw.five_words(first, sequence | generation << 32, size, fragment, offset)


@ccall
def parse_fin(data: memoryview) -> Fin:
    """What a FIN says. Raises MPIError ERR_INTERN when it is none."""
    _check(FIN, _FIN_SIZE, data)
    first: U64 = raw.word(data, 0)
    second: U64 = raw.word(data, 8)
    fin: Fin = Fin.__new__(Fin)
    fin.flags = first >> 8 & 0xFF
    fin.context_id = first >> 16 & 0xFFFF
    fin.source = as_signed(first >> 32)
    fin.sequence = second & SEQUENCE_MASK
    fin.generation = second >> 32
    fin.size = raw.signed_word(data, 16)
    fin.fragment = raw.word(data, 24)
    fin.offset = raw.word(data, 32)
    return fin


def fin_again(message: bytes) -> bytes:
    """A FIN that is sent for another time."""
    return message[:1] + bytes([message[1] | FLAG_RESENT]) + message[2:]


@dataclass(frozen=True)
class Step:
    """A message of the dance.

    Attributes:
        tag: which.
        context_id, source, sequence: of the message, the source being who sends this.
        generation: restart sequence number.
        send_id, receive_id: the requests; 0 where it is not known.
    """

    tag: int
    context_id: int
    source: int
    sequence: int
    generation: int
    send_id: int = 0
    receive_id: int = 0

    def pack(self) -> bytes:
        """The header."""
        return DANCE_HEADER.pack(
            self.tag,
            0,
            self.context_id,
            self.source,
            self.sequence,
            self.generation,
            self.send_id,
            self.receive_id,
        )


def parse_step(tag: int, data: memoryview) -> Step:
    """What a message of the dance says. Raises MPIError ERR_INTERN when it is none."""
    _, context_id, source, sequence, generation, send_id, receive_id = _fields(
        DANCE_HEADER, tag, data
    )
    return Step(tag, context_id, source, sequence, generation, send_id, receive_id)


def _fields(header: Struct, tag: int, data: memoryview) -> tuple[int, ...]:
    """The fields behind the type."""
    _check(tag, header.size, data)
    return header.unpack_from(data)[1:]


@cfunc
def _check(tag: int, size: int, data: memoryview) -> None:
    """See that `data` begins with a header of type `tag`."""
    if raw.size(data) < size:
        raise MPIError(ERR_INTERN, f"bfo: {len(data)} bytes are less than a header of {size}")
    kind: int = raw.word(data, 0) & 0xFF
    if kind != tag:
        raise MPIError(ERR_INTERN, f"bfo: a fragment under tag {tag} has a header of type {kind}")
