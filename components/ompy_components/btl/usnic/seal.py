"""The seal in front of every packet: a MAC, its checksum too, and a number that never wraps.

Salted with who is to receive it (`ompy.net.seals.datagram_seal`), so that a packet that was meant
for somebody else is not looked at, whatever its sequence number says. One that was recorded and
sent again has a number that was taken before; so has one that the network repeats.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ompy.compiled import ccall, cclass
from ompy.net.seals.datagram_seal import SEAL_SIZE, DatagramSeal
from ompy.net.seals.replay import NEW

from ompy_components.btl.usnic.headers import SENDER, BadPacket

NAME: Final = b"btl.usnic"
_SALT: Final = Struct("<QQ")  # rank and module: 16 bytes, all that BLAKE2b takes


class Replayed(BadPacket):
    """A packet of the job that was here before, or is too late to tell."""


@cclass
class Seal:
    """Makes and checks seals."""

    _own: bytes
    _seal: DatagramSeal
    __slots__ = tuple(__annotations__)

    def __init__(self, job_key: bytes, rank: int, module: int, first: int = 0) -> None:
        """For one module of one rank; `first` is what numbers begin above."""
        self._seal = DatagramSeal(job_key, NAME, SENDER, first)
        self._own = recipient(rank, module)

    @property
    def refused(self) -> int:
        """Packets whose MAC was not right."""
        return self._seal.refused

    @ccall
    def close(self, packet: memoryview, to: bytes) -> None:
        """Write the seal into the first bytes of a packet that is whole otherwise.

        Args:
            packet: all that will be sent.
            to: who is to receive it, as `recipient` has it.
        """
        self._seal.close(packet, to)

    @ccall
    def open(self, packet: memoryview) -> memoryview:
        """What stands behind the seal of a packet for us.

        Raises:
            Replayed: its number was taken before, or is behind the window.
            BadPacket: the MAC is not right.
        """
        taken = self._seal.open(packet, self._own)
        if taken is NEW:
            return packet[SEAL_SIZE:]
        if taken is None:
            raise BadPacket("its MAC is not right")
        raise Replayed(taken.value)


def recipient(rank: int, module: int) -> bytes:
    """Names a module of a rank."""
    return _SALT.pack(rank, module)
