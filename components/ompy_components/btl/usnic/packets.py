"""What is sent: fragments of the PML, and the packets they go in.

A small fragment fits one packet and owns it: the PML writes where the packet's payload will be, in
registered memory. A large one has its bytes in memory of its own; each chunk of it takes a
packet when it is sent, and gives it back when that is acknowledged and off the send queue.

Source: seed usnic (nomenclature, fragment sending).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ompy.frameworks.btl import Descriptor
from ompy.frameworks.nic.datagram import Domain, Registration

from ompy_components.btl.usnic.headers import CHUNK, CHUNK_HEADER_SIZE, FRAG, HEADER_SIZE, SEAL_SIZE
from ompy_components.btl.usnic.segments import SendSegment

if TYPE_CHECKING:
    from ompy_components.btl.usnic.endpoint import UsnicEndpoint

FRAG_PAYLOAD: Final = SEAL_SIZE + HEADER_SIZE  # where the payload of a FRAG begins in its packet
CHUNK_PAYLOAD: Final = SEAL_SIZE + CHUNK_HEADER_SIZE


class Packet(SendSegment):
    """A send segment with its memory.

    Attributes:
        buffer: registered memory for the largest packet.
        endpoint: where it goes.
        kind: `FRAG` or `CHUNK`.
        length: bytes of payload.
        fragment: what it carries, or carries a piece of.
        offset: of the piece in the fragment.
        posted: how often it is on a send queue now.
        retired: nobody needs it any more but the send queue.
    """

    __slots__ = ("buffer", "endpoint", "fragment", "kind", "length", "offset", "posted", "retired")

    def __init__(self, buffer: memoryview) -> None:
        super().__init__()
        self.buffer = buffer
        self.endpoint: UsnicEndpoint | None = None
        self.fragment: Fragment | None = None
        self.kind = FRAG
        self.length = 0
        self.offset = 0
        self.posted = 0
        self.retired = False

    @property
    def header_room(self) -> int:
        """Bytes in front of the payload."""
        return CHUNK_PAYLOAD if self.kind == CHUNK else FRAG_PAYLOAD

    @property
    def bytes(self) -> memoryview:
        """All of it, as it goes out."""
        return self.buffer[: self.header_room + self.length]


class Fragment(Descriptor):
    """One fragment.

    Attributes:
        size: bytes of it.
        packet: of a small one; None of a large one.
        number: its id among the large ones to this peer; 0 before its first chunk.
        cut: bytes that are in packets already.
        unacknowledged: bytes the peer has not acknowledged, or packets if it has no bytes.
        put_address: registration of the peer's a put goes to; 0 for what is none.
        place: where in it.
        accepted: it has been sent, and is the module's business.
        told: it has been completed.
    """

    __slots__ = (
        "accepted",
        "cut",
        "number",
        "packet",
        "place",
        "put_address",
        "size",
        "told",
        "unacknowledged",
    )

    def __init__(self, segment: memoryview, flags: int, order: int, packet: Packet | None) -> None:
        super().__init__(segment, flags, order)
        self.packet = packet
        self.size = len(segment)
        self.number = 0
        self.cut = 0
        self.unacknowledged = self.size
        self.put_address = 0
        self.place = 0
        self.accepted = False
        self.told = False


class PacketPool:
    """Free packets; more are made when there are none.

    Attributes:
        size: bytes of each.
        out: packets that are in use.
    """

    def __init__(self, domain: Domain, size: int, grow: int) -> None:
        """A pool that grows by `grow` packets at a time."""
        self.size = size
        self.out = 0
        self._domain = domain
        self._grow = grow
        self._free: list[Packet] = []
        self._slabs: list[Registration] = []

    def take(self) -> Packet:
        """A packet nobody uses."""
        if not self._free:
            slab = memoryview(bytearray(self._grow * self.size))
            self._slabs.append(self._domain.register(slab))
            for start in range(0, len(slab), self.size):
                self._free.append(Packet(slab[start : start + self.size]))
        self.out += 1
        packet = self._free.pop()
        packet.endpoint = packet.fragment = None
        packet.kind, packet.length, packet.offset = FRAG, 0, 0
        packet.attempts = packet.posted = 0
        packet.retired = packet.early = False
        return packet

    def give_back(self, packet: Packet) -> None:
        """A packet that is neither kept nor posted."""
        self.out -= 1
        self._free.append(packet)

    def close(self) -> None:
        """Give the memory back."""
        for registration in self._slabs:
            registration.close()
        self._free.clear()
