"""The keyed MAC in front of every packet, its checksum too.

BLAKE2b under a key derived from the job's, salted with who is to receive it. So a packet that was
altered, forged, recorded from another job or meant for somebody else is not looked at, whatever
its sequence number says. One that was recorded and sent again has a number that was taken before.
"""

from __future__ import annotations

from hashlib import blake2b
from hmac import compare_digest
from struct import Struct
from typing import Final

from ompy_components.btl.usnic.headers import MAC_SIZE, BadPacket

NAME: Final = b"btl.usnic"
_SALT: Final = Struct("<QQ")  # rank and module: 16 bytes, all that BLAKE2b takes


class Seal:
    """Makes and checks MACs.

    Attributes:
        refused: packets whose MAC was not right.
    """

    __slots__ = ("_key", "_own", "refused")

    def __init__(self, job_key: bytes, rank: int, module: int) -> None:
        """For one module of one rank."""
        self._key = blake2b(NAME, key=job_key, digest_size=32).digest()
        self._own = recipient(rank, module)
        self.refused = 0

    def close(self, packet: memoryview, to: bytes) -> None:
        """Write the MAC into the first bytes of a packet that is whole otherwise.

        Args:
            packet: all that will be sent.
            to: who is to receive it, as `recipient` has it.
        """
        packet[:MAC_SIZE] = self._mac(packet[MAC_SIZE:], to)

    def open(self, packet: memoryview) -> memoryview:
        """What stands behind the MAC of a packet for us.

        Raises:
            BadPacket: the MAC is not right.
        """
        body = packet[MAC_SIZE:]
        if not compare_digest(packet[:MAC_SIZE], self._mac(body, self._own)):
            self.refused += 1
            raise BadPacket("its MAC is not right")
        return body

    def _mac(self, body: memoryview, to: bytes) -> bytes:
        return blake2b(body, key=self._key, salt=to, digest_size=MAC_SIZE).digest()


def recipient(rank: int, module: int) -> bytes:
    """Names a module of a rank."""
    return _SALT.pack(rank, module)
