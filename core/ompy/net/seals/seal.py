"""A keyed MAC in front of packets, their checksum too.

BLAKE2b under a key derived from the job's. A packet that was altered, forged, or recorded from
another job is not looked at, whatever stands in it. That none is taken twice is for what stands
behind the MAC: see `datagram_seal.py`.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from typing import Final

MAC_SIZE: Final = 16  # bytes; arbitrary: nobody guesses 128 bits


class PacketSeal:
    """Makes and checks MACs for one protocol.

    Attributes:
        refused: packets whose MAC was not right.
    """

    __slots__ = ("_begun", "_key", "refused")

    def __init__(self, job_key: bytes, protocol: bytes) -> None:
        """For one protocol of one job.

        Args:
            job_key: secret of the job.
            protocol: its name, so that no other one's packets pass.
        """
        self._key = blake2b(protocol, key=job_key, digest_size=32).digest()
        self._begun: dict[bytes, blake2b] = {}  # hashes that have taken the key, by salt
        self.refused = 0

    def seal(self, packet: memoryview, salt: bytes = b"") -> None:
        """Write the MAC into the first bytes of a packet that is whole otherwise.

        Args:
            packet: all that will be sent.
            salt: what both ends know and the packet does not say; 16 bytes at most.
        """
        packet[:MAC_SIZE] = self.mac(packet[MAC_SIZE:], salt)

    def genuine(self, packet: bytes | memoryview, salt: bytes = b"") -> bool:
        """Whether the MAC of a packet is right."""
        if len(packet) >= MAC_SIZE and compare_digest(
            packet[:MAC_SIZE], self.mac(packet[MAC_SIZE:], salt)
        ):
            return True
        self.refused += 1
        return False

    def mac(self, body: bytes | memoryview, salt: bytes = b"") -> bytes:
        """The MAC of what will stand behind it."""
        begun = self._begun.get(salt)
        if begun is None:
            begun = self._begun[salt] = blake2b(key=self._key, salt=salt, digest_size=MAC_SIZE)
        made = begun.copy()
        made.update(body)
        return made.digest()
