"""What is sent: fragments of the PML, and the packets they go in.

A small fragment fits one packet and owns it: the PML writes where the packet's payload will be, in
registered memory. A large one has its bytes elsewhere; each chunk of it takes a packet when it is
sent, and gives it back when that is acknowledged and off the send queue.

What the PML has to send lies in one or two pieces: `segment`, and the user's memory behind it, as
a view (`payload`) or, where it is not contiguous, as a convertor. Either is read once, when the
packet is filled: what is sent again is sent from the packet.

Source: seed usnic (nomenclature, fragment sending, send dataflow).
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ompy import raw
from ompy.compiled import DECLARING, U64, Shown, ccall, cclass
from ompy.data.convertor import Convertor
from ompy.frameworks.btl import Descriptor
from ompy.frameworks.nic.datagram import Domain, Registration

from ompy_components.btl.usnic.headers import CHUNK, CHUNK_HEADER_SIZE, FRAG, HEADER_SIZE, SEAL_SIZE
from ompy_components.btl.usnic.reliability.segments import SendSegment

if DECLARING:
    from ompy_components.btl.usnic.endpoint import UsnicEndpoint

FRAG_PAYLOAD: Final = SEAL_SIZE + HEADER_SIZE  # where the payload of a FRAG begins in its packet
CHUNK_PAYLOAD: Final = SEAL_SIZE + CHUNK_HEADER_SIZE


@cclass
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

    buffer: memoryview[int]
    endpoint: UsnicEndpoint | None
    fragment: Fragment | None
    kind: int
    length: int
    offset: int
    posted: int
    retired: bool
    __slots__ = tuple(__annotations__)

    def __init__(self, buffer: memoryview) -> None:
        super().__init__()
        self.buffer = buffer
        self.endpoint = None
        self.fragment = None
        self.kind = FRAG
        self.length = 0
        self.offset = 0
        self.posted = 0
        self.retired = False

    @ccall
    def whole(self) -> memoryview:
        """All of it, as it goes out."""
        room: int = CHUNK_PAYLOAD if self.kind == CHUNK else FRAG_PAYLOAD
        return self.buffer[: room + self.length]


@cclass
class Fragment(Descriptor):
    """One fragment.

    Attributes:
        size: bytes of it.
        packet: of a small one; None of a large one.
        filled: packets of a large one whose bytes are in them already, before they are sent.
        convertor: what is packed behind `segment` when packets are filled; None for nothing.
        origin: byte of the convertor's message at which that begins.
        number: its id among the large ones to this peer; 0 before its first chunk.
        cut: bytes that are in packets already.
        unacknowledged: bytes the peer has not acknowledged, or packets if it has no bytes.
        put_address: registration of the peer's a put goes to; 0 for what is none.
        place: where in it.
        accepted: it has been sent, and is the module's business.
        told: it has been completed.
    """

    accepted: bool
    convertor: Convertor | None
    cut: int
    filled: deque[Packet] | None
    number: int
    origin: int
    packet: Packet | None
    place: int
    put_address: U64
    size: int
    told: bool
    unacknowledged: int
    __slots__ = tuple(__annotations__)

    def __init__(self, segment: memoryview, flags: int, order: int, packet: Packet | None) -> None:
        super().__init__(segment, flags, order)
        self.packet = packet
        self.filled = None
        self.convertor = None
        self.origin = 0
        self.size = len(segment)
        self.number = 0
        self.cut = 0
        self.unacknowledged = self.size
        self.put_address = 0
        self.place = 0
        self.accepted = False
        self.told = False

    @ccall
    def lengthen(self, size: int) -> None:
        """Bytes of the user's memory follow `segment`."""
        self.size += size
        self.unacknowledged = self.size
        self.payload_size = size

    @ccall
    def fill(self, start: int, target: memoryview, at: int, count: int) -> None:
        """Copy `count` of its bytes, from `start` on, to byte `at` of a packet."""
        length: int = raw.size(self.segment)
        own: int = max(0, min(count, length - start))
        if own:
            raw.copy(target, at, self.segment, start, own)
        if own == count:
            return
        begin: int = start + own - length
        if self.payload is not None:
            raw.copy(target, at + own, self.payload, begin, count - own)
        else:
            assert self.convertor is not None, "it is as long as its parts"
            self.convertor.pack(self.origin + begin, target[at + own : at + count])

    @ccall
    def collapse(self) -> None:
        """Copy the user's memory into the packet of a small one: now it is in one piece there."""
        packet, payload = self.packet, self.payload
        if packet is not None and payload is not None:
            begin: int = FRAG_PAYLOAD + raw.size(self.segment)
            raw.copy(packet.buffer, begin, payload, 0, raw.size(payload))
            self.segment = packet.buffer[FRAG_PAYLOAD : FRAG_PAYLOAD + self.size]
            self.payload = None

    def secure(self) -> None:
        """Have its bytes in memory of its own, as its packets and the user's memory may change."""
        if self.convertor is not None:
            self.payload = memoryview(bytearray(self.payload_size))
            self.convertor.pack(self.origin, self.payload)
            self.convertor = None
        elif self.payload is not None:
            self.payload = memoryview(bytearray(self.payload))
        if self.filled is not None or self.packet is not None:
            self.segment = memoryview(bytearray(self.segment))

    @property
    def unsent(self) -> list[Packet]:
        """Its packets that have never been sent."""
        if self.packet is not None:
            return [self.packet]
        return list(self.filled or ())

    @ccall
    def let_go(self) -> None:
        """Nobody reads the user's memory any more."""
        self.payload = self.convertor = None


@cclass
class PacketPool:
    """Free packets; more are made when there are none.

    Attributes:
        size: bytes of each.
        out: packets that are in use.
    """

    _domain: Domain
    _free: list[Packet]
    _grow: int
    _slabs: Shown[list[Registration]]
    out: int
    size: int
    __slots__ = tuple(__annotations__)

    def __init__(self, domain: Domain, size: int, grow: int) -> None:
        """A pool that grows by `grow` packets at a time."""
        self.size = size
        self.out = 0
        self._domain = domain
        self._grow = grow
        self._free = []
        self._slabs = []

    @ccall
    def take_packet(self) -> Packet:
        """A packet nobody uses."""
        if not self._free:
            slab = memoryview(bytearray(self._grow * self.size))
            self._slabs.append(self._domain.register(slab))
            for start in range(0, len(slab), self.size):
                self._free.append(Packet(slab[start : start + self.size]))
        self.out += 1
        packet: Packet = self._free.pop()
        packet.endpoint = None
        packet.fragment = None
        packet.kind = FRAG
        packet.length = packet.offset = 0
        packet.attempts = packet.posted = 0
        packet.retired = packet.early = False
        return packet

    @ccall
    def give_back(self, packet: Packet) -> None:
        """A packet that is neither kept nor posted."""
        self.out -= 1
        packet.fragment = None  # which may refer to the user's memory
        self._free.append(packet)

    def close(self) -> None:
        """Give the memory back."""
        for registration in self._slabs:
            registration.close()
        self._free.clear()
