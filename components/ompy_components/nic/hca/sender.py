"""How packets leave a device: header, extension and payload in one piece, sealed, into the port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ompy.net.seals.datagram_seal import SEAL_SIZE

from ompy_components.nic.hca import headers

if TYPE_CHECKING:
    from struct import Struct

    from ompy.frameworks.nic.stations import Stations
    from ompy.net.base import Address
    from ompy.net.seals.datagram_seal import DatagramSeal

    from ompy_components.nic.hca.headers import Answer, Operands, Packet, Remote
    from ompy_components.nic.hca.port import Port


class PacketSender:
    """Of one device while it is open."""

    __slots__ = ("_lid", "_names", "_port", "_seal", "_stations")

    def __init__(
        self, lid: int, names: Struct, seal: DatagramSeal, port: Port, stations: Stations
    ) -> None:
        """Send for a device.

        Args:
            lid: the device's.
            names: how seals name a device.
            seal: proves that a packet comes from it.
            port: takes the packets.
            stations: what that takes in simulated worlds.
        """
        self._lid = lid
        self._names = names
        self._seal = seal
        self._port = port
        self._stations = stations

    def send_packet(
        self,
        to: Address,
        base: tuple[bool, int, int, int, int, int],
        opcode: int,
        extension: Remote | Operands | Answer | None,
        payload: Sequence[memoryview],
        ready: int = 0,
    ) -> None:
        """Put a packet into the port.

        Args:
            to: the peer's device.
            base: whether it asks for an ACK, the round, LID and number of the peer's queue pair,
                number of ours, and number of the packet.
            opcode: what it is.
            extension: what stands behind the base header.
            payload: what follows, piece by piece.
            ready: when the device has it, ns.
        """
        asks, round_, to_lid, to_pair, own_pair, sequence = base
        begin = headers.header_size(opcode)
        room = bytearray(begin + sum(map(len, payload)))
        headers.BASE.pack_into(
            room,
            SEAL_SIZE,
            opcode,
            asks,
            round_,
            to_lid,
            self._lid,
            to_pair,
            own_pair,
            sequence,
        )
        if extension is not None:
            headers.pack_extension(extension, opcode, room)
        for piece in payload:
            end = begin + len(piece)
            room[begin:end] = piece
            begin = end
        packet = memoryview(room)
        self._seal.close(packet, self._names.pack(to_lid))
        since = max(ready, self._stations.taken())
        self._port.put(packet, to, self._stations.sent(since, len(packet)))

    def say_silent(self, packet: Packet, to: Address) -> None:
        """Tell a requester that a real device would not answer it."""
        if packet.asks:
            base = (False, packet.round, packet.from_lid, packet.source, packet.to, packet.sequence)
            self.send_packet(to, base, headers.SILENT, None, ())
