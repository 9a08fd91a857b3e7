"""The keyed MAC in front of every packet, its checksum too.

Salted with who is to receive it (`ompy.net.seal`), so that a packet that was meant for somebody
else is not looked at, whatever its sequence number says. One that was recorded and sent again has a
number that was taken before.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy.net.seal import MAC_SIZE, PacketSeal

from ompy_components.btl.usnic.headers import BadPacket

NAME: Final = b"btl.usnic"
_SALT: Final = Struct("<QQ")  # rank and module: 16 bytes, all that BLAKE2b takes


class Seal:
    """Makes and checks MACs."""

    __slots__ = ("_own", "_seal")

    def __init__(self, job_key: bytes, rank: int, module: int) -> None:
        """For one module of one rank."""
        self._seal = PacketSeal(job_key, NAME)
        self._own = recipient(rank, module)

    @property
    def refused(self) -> int:
        """Packets whose MAC was not right."""
        return self._seal.refused

    def close(self, packet: memoryview, to: bytes) -> None:
        """Write the MAC into the first bytes of a packet that is whole otherwise.

        Args:
            packet: all that will be sent.
            to: who is to receive it, as `recipient` has it.
        """
        self._seal.seal(packet, to)

    def open(self, packet: memoryview) -> memoryview:
        """What stands behind the MAC of a packet for us.

        Raises:
            BadPacket: the MAC is not right.
        """
        if not self._seal.genuine(packet, self._own):
            raise BadPacket("its MAC is not right")
        return packet[MAC_SIZE:]


def recipient(rank: int, module: int) -> bytes:
    """Names a module of a rank."""
    return _SALT.pack(rank, module)
