"""A keyed MAC in front of packets, their checksum too.

BLAKE2b under a key derived from the job's. A packet that was altered, forged, or recorded from
another job is not looked at, whatever stands in it. That none is taken twice is for what stands
behind the MAC: see `datagram_seal.py`.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

from ompy import raw
from ompy.compiled import U64, ccall, cclass, cfunc
from ompy.net.seals import keyed

MAC_SIZE: Final = 16  # bytes; arbitrary: nobody guesses 128 bits
_WORD: Final = MAC_SIZE // 2


@cclass
class PacketSeal:
    """Makes and checks MACs for one protocol.

    Attributes:
        refused: packets whose MAC was not right.
    """

    _begun: dict[bytes, Any]
    _key: bytes
    refused: int
    __slots__ = tuple(__annotations__)

    def __init__(self, job_key: bytes, protocol: bytes) -> None:
        """For one protocol of one job.

        Args:
            job_key: secret of the job.
            protocol: its name, so that no other one's packets pass.
        """
        self._key = blake2b(protocol, key=job_key, digest_size=32).digest()
        self._begun = {}  # hashes that have taken the key, by salt
        self.refused = 0

    @ccall
    def seal(self, packet: memoryview, salt: bytes = b"") -> None:
        """Write the MAC into the first bytes of a packet that is whole otherwise.

        Args:
            packet: all that will be sent.
            salt: what both ends know and the packet does not say; 16 bytes at most.
        """
        raw.copy(packet, 0, keyed.digest(self._hash(salt), packet, MAC_SIZE), 0, MAC_SIZE)

    @ccall
    def genuine(self, packet: bytes | memoryview, salt: bytes = b"") -> bool:
        """Whether the MAC of a packet is right."""
        if len(packet) >= MAC_SIZE:
            made: bytes = keyed.digest(self._hash(salt), packet, MAC_SIZE)
            # all of it whatever it is, so that the time tells nothing
            first: U64 = raw.word(packet, 0) ^ raw.word(made, 0)
            if not first | raw.word(packet, _WORD) ^ raw.word(made, _WORD):
                return True
        self.refused += 1
        return False

    @ccall
    def mac(self, body: bytes | memoryview, salt: bytes = b"") -> bytes:
        """The MAC of what will stand behind it."""
        return keyed.digest(self._hash(salt), body, 0)

    @cfunc
    def _hash(self, salt: bytes) -> Any:
        """One that has taken the key."""
        begun = self._begun.get(salt)
        if begun is None:
            begun = self._begun[salt] = keyed.begin_hash(self._key, salt)
        return begun
