"""What goes over the wire, and what proves who sent it: 32 bytes in front of each message.

    0 seal 16 bytes | 16 rank u32 | 20 number u32 | 24 acknowledged u32 | 28 generation u16
    30 kind u8 | 31 tag u8

`number` counts the fragments of a generation of a path, from 1. `acknowledged` says up to which
all of the other end's have been taken. A number is 32 bits and wraps around.
"""

from __future__ import annotations

from enum import IntEnum
from hmac import compare_digest
from struct import Struct
from typing import Final, NamedTuple

from ompy.net.seal import MAC_SIZE, PacketSeal

_HEADER: Final = Struct("<IIIHBB")
HEADER_SIZE: Final = MAC_SIZE + _HEADER.size
assert HEADER_SIZE == 32

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


class Header(NamedTuple):
    """What stands behind the seal."""

    rank: int
    number: int
    acknowledged: int
    generation: int
    kind: int
    tag: int


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
        _HEADER.pack_into(message, MAC_SIZE, *header)
        if self._whole:
            self._seal.seal(message, _SALT.pack(to))
            return
        token = self._tokens.get(to)
        if token is None:
            token = self._tokens[to] = self._token(self._own, to)
        message[:MAC_SIZE] = token

    def open(self, message: memoryview, size: int) -> Header:
        """The header of a message of the job for us.

        Args:
            message: as it arrived.
            size: ranks of the job.

        Raises:
            BadMessage: it is not of the job, not for us, or cut short.
        """
        if len(message) < HEADER_SIZE:
            self.refused += 1
            raise BadMessage("it is too short")
        header = Header(*_HEADER.unpack_from(message, MAC_SIZE))
        if header.rank >= size or header.rank == self._own or not self._proves(message, header):
            self.refused += 1
            raise BadMessage("its seal is not right")
        return header

    def _proves(self, message: memoryview, header: Header) -> bool:
        if self._whole:
            return self._seal.genuine(message, _SALT.pack(self._own))
        expected = self._expected.get(header.rank)
        if expected is None:
            expected = self._expected[header.rank] = self._token(header.rank, self._own)
        return compare_digest(message[:MAC_SIZE], expected)

    def _token(self, sender: int, receiver: int) -> bytes:
        return self._seal.mac(_RANK.pack(sender), _SALT.pack(receiver))
