"""What goes over the wire, and what proves who sent it: 40 bytes in front of each message.

    0 seal 24 bytes | 24 rank u32 | 28 number u32 | 32 acknowledged u32 | 36 generation u16
    38 kind u8 | 39 tag u8

The seal is a MAC of 16 bytes and a number of 8 that never wraps and never begins again
(`ompy.net.seals.datagram_seal`), or a token of 16 bytes and zeros. Fragments and BYE have one
series of seal's numbers for each receiver, all other messages another one. A window bounds how far
fragments overtake each other, so none is lost behind the seal's window of 8185; nothing bounds how
many ACKs overtake a fragment. Other messages that are so late say what was said again meanwhile.

`number` counts the fragments of a generation of a path, from 1. `acknowledged` says up to which
all of the other end's have been taken. These two are 32 bits and wrap around.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.data.header_layout import HeaderLayout
from ompy.net.seals.datagram_seal import SEAL_SIZE, DatagramSeal
from ompy.net.seals.replay import Taken
from ompy.net.seals.seal import MAC_SIZE, PacketSeal

HEADER_LAYOUT: Final = HeaderLayout(
    "ofi.header", "rank u32, number u32, acknowledged u32, generation u16, kind u8, tag u8"
)
HEADER_SIZE: Final = 40  # arbitrary: the fields above
assert SEAL_SIZE + HEADER_LAYOUT.size == HEADER_SIZE
_WHOLE: Final = HEADER_SIZE
FIRST: Final = SEAL_SIZE  # byte where rank and number are
SECOND: Final = FIRST + 8  # where the rest is
assert (FIRST, SECOND + 8) == (24, HEADER_SIZE)
SENDER: Final = (0, 4)  # bytes behind the seal that name the sender: the rank
_HALF: Final = 0xFFFF_FFFF  # arbitrary: the header has u32s

PROTOCOL: Final = b"btl.ofi"
_RANK: Final = Struct("<I")
_SALT: Final = Struct("<QI")  # who receives it, and the series it is numbered in
MODULE_SHIFT: Final = 32  # arbitrary: above the 32 bits of a rank
NUMBERS: Final = 1 << 32  # arbitrary: 32 bits of the header
GENERATIONS: Final = 1 << 16  # arbitrary: 16 of them


class Kind(IntEnum):
    """What a message is. Only fragments and BYE are numbered behind the seal."""

    FRAGMENT = 1
    ACK = 2
    HELLO = 3  # a word of the path's life
    GONE = 5
    BYE = 6


_FRAGMENT: Final[int] = int(Kind.FRAGMENT)
_BYE: Final[int] = int(Kind.BYE)


@cclass
class Header:
    """What stands behind the seal."""

    acknowledged: U64
    generation: U64
    kind: U64
    number: U64
    rank: U64
    tag: U64
    __slots__ = tuple(__annotations__)

    def __init__(
        self, rank: int, number: int, acknowledged: int, generation: int, kind: int, tag: int
    ) -> None:
        self.rank = rank
        self.number = number
        self.acknowledged = acknowledged
        self.generation = generation
        self.kind = kind
        self.tag = tag


def receiver_of(rank: int, module: int) -> int:
    """Who receives a message: one module of a rank."""
    return rank | module << MODULE_SHIFT


class BadMessage(Exception):
    """A message that no process of the job has sent to us."""


class Replayed(BadMessage):
    """A message of the job that was here before, or is too late to tell."""


@cclass
class Seal:
    """Proves messages and checks the proofs.

    With `whole` the seal is a MAC of everything behind it and of the receiver, and each message is
    taken once; without it is a token that only the sender and the receiver can make.

    Attributes:
        refused: messages that were not proven.
    """

    _datagrams: DatagramSeal
    _expected: dict[int, bytes]
    _own: U64
    _place: U64
    _seal: PacketSeal
    _tokens: dict[int, bytes]
    _whole: bool
    refused: int
    __slots__ = tuple(__annotations__)

    def __init__(
        self, job_key: bytes, rank: int, *, whole: bool, first: int = 0, module: int = 0
    ) -> None:
        """For one module of one rank: its `module`th. The seal's numbers begin above `first`."""
        self._seal = PacketSeal(job_key, PROTOCOL)
        self._datagrams = DatagramSeal(job_key, PROTOCOL, SENDER, first)
        self._own = rank
        self._place = receiver_of(rank, module)
        self._whole = whole
        self._tokens = {}  # by receiver
        self._expected = {}  # by sender
        self.refused = 0

    @ccall
    def close(self, message: memoryview, to: U64, header: Header) -> None:
        """Write header and seal into the first bytes of a message for the module `to` of a peer.

        Each time it is sent; `withdraw` when the device has refused it.
        """
        first: U64 = header.rank | header.number << 32
        second: U64 = header.acknowledged | header.generation << 32 | header.kind << 48
        words = raw.two_words(first, second | header.tag << 56)
        raw.copy(message, FIRST, words, 0, _WHOLE - FIRST)
        if self._whole:
            self._datagrams.close(message, _receiver(to, header.kind))
            return
        token = self._tokens.get(to)
        if token is None:
            token = self._tokens[to] = self._token(self._own, to)
        raw.copy(message, 0, token, 0, MAC_SIZE)

    @ccall
    def withdraw(self, to: U64, kind: U64) -> None:
        """The last message of this kind that was closed for the module `to` has not been sent."""
        if self._whole:
            self._datagrams.withdraw(_receiver(to, kind))

    @property
    def replayed(self) -> int:
        """Messages of the job that were here before, or too late to tell."""
        return self._datagrams.repeated + self._datagrams.late

    @ccall
    def open(self, message: memoryview, size: U64) -> Header:
        """The header of a message of the job for us.

        Args:
            message: as it arrived.
            size: ranks of the job.

        Raises:
            Replayed: it was here before, or is too late to tell.
            BadMessage: it is not of the job, not for us, or cut short.
        """
        if raw.size(message) < _WHOLE:
            self.refused += 1
            raise BadMessage("it is too short")
        first: U64 = raw.word(message, FIRST)
        second: U64 = raw.word(message, SECOND)
        rank: U64 = first & _HALF
        kind: U64 = second >> 48 & 0xFF
        if rank >= size or rank == self._own or not self._proves(message, rank, kind):
            self.refused += 1
            raise BadMessage("its seal is not right")
        made: Header = Header.__new__(Header)
        made.rank = rank
        made.number = first >> 32
        made.acknowledged = second & _HALF
        made.generation = second >> 32 & 0xFFFF
        made.kind = kind
        made.tag = second >> 56
        return made

    @cfunc
    def _proves(self, message: memoryview, rank: U64, kind: U64) -> bool:
        if self._whole:
            taken = self._datagrams.open(message, _receiver(self._place, kind))
            if taken is Taken.REPEATED or taken is Taken.LATE:
                raise Replayed(taken.value)
            return taken is not None
        expected = self._expected.get(rank)
        if expected is None:
            expected = self._expected[rank] = self._token(rank, self._place)
        # all of it whatever it is, so that the time tells nothing
        first: U64 = raw.word(message, 0) ^ raw.word(expected, 0)
        return not first | raw.word(message, 8) ^ raw.word(expected, 8)

    def _token(self, sender: int, receiver: int) -> bytes:
        return self._seal.mac(_RANK.pack(sender), _SALT.pack(receiver, 0))


@cfunc
def _receiver(place: U64, kind: U64) -> bytes:
    """Names a module of a rank and one of its two series."""
    return _SALT.pack(place, kind not in (_FRAGMENT, _BYE))
