"""What goes over the wire, and what proves who sent it: 32 bytes in front of each message.

    0 seal 16 bytes | 16 rank u32 | 20 number u32 | 24 acknowledged u32 | 28 generation u16
    30 kind u8 | 31 tag u8

`number` counts the fragments of a generation of a path, from 1. `acknowledged` says up to which
all of the other end's have been taken. A number is 32 bits and wraps around.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final

from ompy import raw
from ompy.net.seal import MAC_SIZE, PacketSeal

HEADER_SIZE: Final = 32  # arbitrary: the fields above
_WHOLE: Final = HEADER_SIZE
FIRST: Final = MAC_SIZE  # byte where rank and number are
SECOND: Final = MAC_SIZE + 8  # where the rest is
assert SECOND + 8 == HEADER_SIZE
_HALF: Final = 0xFFFF_FFFF  # arbitrary: the header has u32s

PROTOCOL: Final = b"btl.ofi"
_RANK: Final = Struct("<I")
_SALT: Final = Struct("<Q")
NUMBERS: Final = 1 << 32  # arbitrary: 32 bits of the header
GENERATIONS: Final = 1 << 16  # arbitrary: 16 of them


class Kind(IntEnum):
    """What a message is. Only fragments and BYE are numbered."""

    FRAGMENT = 1
    ACK = 2
    HELLO = 3
    WELCOME = 4
    GONE = 5
    BYE = 6


class Header:
    """What stands behind the seal."""

    __slots__ = ("acknowledged", "generation", "kind", "number", "rank", "tag")

    def __init__(
        self, rank: int, number: int, acknowledged: int, generation: int, kind: int, tag: int
    ) -> None:
        self.rank = rank
        self.number = number
        self.acknowledged = acknowledged
        self.generation = generation
        self.kind = kind
        self.tag = tag


class BadMessage(Exception):
    """A message that no process of the job has sent to us."""


class Seal:
    """Proves messages and checks the proofs.

    With `whole` the seal is a MAC of everything behind it and of the receiver; without it is a
    token that only the sender and the receiver can make.

    Attributes:
        refused: messages that were not proven.
    """

    __slots__ = ("_expected", "_own", "_seal", "_tokens", "_whole", "refused")

    def __init__(self, job_key: bytes, rank: int, *, whole: bool) -> None:
        self._seal = PacketSeal(job_key, PROTOCOL)
        self._own = rank
        self._whole = whole
        self._tokens: dict[int, bytes] = {}  # by receiver
        self._expected: dict[int, bytes] = {}  # by sender
        self.refused = 0

    def close(self, message: memoryview, to: int, header: Header) -> None:
        """Write header and seal into the first bytes of a message for rank `to`."""
        first = header.rank | header.number << 32
        second = header.acknowledged | header.generation << 32 | header.kind << 48
        words = raw.two_words(first, second | header.tag << 56)
        raw.copy(message, FIRST, words, 0, _WHOLE - FIRST)
        if self._whole:
            self._seal.seal(message, _SALT.pack(to))
            return
        token = self._tokens.get(to)
        if token is None:
            token = self._tokens[to] = self._token(self._own, to)
        raw.copy(message, 0, token, 0, MAC_SIZE)

    def open(self, message: memoryview, size: int) -> Header:
        """The header of a message of the job for us.

        Args:
            message: as it arrived.
            size: ranks of the job.

        Raises:
            BadMessage: it is not of the job, not for us, or cut short.
        """
        if raw.size(message) < _WHOLE:
            self.refused += 1
            raise BadMessage("it is too short")
        first = raw.word(message, FIRST)
        second = raw.word(message, SECOND)
        rank = first & _HALF
        if rank >= size or rank == self._own or not self._proves(message, rank):
            self.refused += 1
            raise BadMessage("its seal is not right")
        made = Header.__new__(Header)
        made.rank = rank
        made.number = first >> 32
        made.acknowledged = second & _HALF
        made.generation = second >> 32 & 0xFFFF
        made.kind = second >> 48 & 0xFF
        made.tag = second >> 56
        return made

    def _proves(self, message: memoryview, rank: int) -> bool:
        if self._whole:
            return self._seal.genuine(message, _SALT.pack(self._own))
        expected = self._expected.get(rank)
        if expected is None:
            expected = self._expected[rank] = self._token(rank, self._own)
        # all of it whatever it is, so that the time tells nothing
        first = raw.word(message, 0) ^ raw.word(expected, 0)
        return not first | raw.word(message, 8) ^ raw.word(expected, 8)

    def _token(self, sender: int, receiver: int) -> bytes:
        return self._seal.mac(_RANK.pack(sender), _SALT.pack(receiver))
