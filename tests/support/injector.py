"""Somebody on the path between two hosts, who rewrites packets as they pass.

    python -m tests.support.injector HOW COUNT PATH  near:far ...

Bridges each pair of interfaces (of the namespace it runs in) frame by frame. What it alters keeps
its length and gets right checksums, so that no kernel notices. It says "ready", and "struck" each
time.

    none      alters nothing
    pickle    puts a pickle that makes the directory PATH in place of an object that has its marks
    flip      turns a byte of whatever has those marks
    control   turns a byte of what goes over a connection to a coordinator
    repeat    sends the bytes of an earlier packet of a connection in place of those of a later one
"""

from __future__ import annotations

import select
import socket
import struct
import sys
from collections.abc import Callable

from ompy.runtime.passive.coordinator_address import FIRST_PORT, PORT_SPAN

MARKS = b"A" * 60  # what the objects of the tests are full of
ETHERNET = 14  # bytes of a frame's header
TCP = 6  # the number of the protocol in IPv4's header
PICKLE = b"\x80\x05\x95"  # how protocol 5 begins, with a frame
AFTER = 12  # packets with bytes over a coordinator's connection that pass: the meeting, the job
ALL_PROTOCOLS = 3  # Linux ETH_P_ALL
OUTGOING = 4  # Linux PACKET_OUTGOING: what we have sent ourselves


def checksum(data: bytes) -> int:
    """The Internet's, RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Segment:
    """A TCP segment in an Ethernet frame.

    Attributes:
        payload: its bytes.
        flow: addresses and ports.
    """

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        header = ETHERNET + (frame[ETHERNET] & 15) * 4
        self._end = ETHERNET + struct.unpack_from("!H", frame, ETHERNET + 2)[0]
        self._tcp = header
        self._begin = header + (frame[header + 12] >> 4) * 4
        self.payload = frame[self._begin : self._end]
        self.ports = struct.unpack_from("!HH", frame, header)
        self.flow = frame[ETHERNET + 12 : ETHERNET + 20] + frame[header : header + 4]

    @classmethod
    def of(cls, frame: bytes) -> Segment | None:
        """If it is one."""
        ip = frame[ETHERNET:]
        return cls(frame) if frame[12:14] == b"\x08\0" and len(ip) > 20 and ip[9] == TCP else None

    def altered(self, payload: bytes) -> bytes:
        """The frame with other bytes, as many, and a right checksum."""
        assert len(payload) == len(self.payload)
        frame = bytearray(self._frame[: self._end])
        frame[self._begin :] = payload
        frame[self._tcp + 16 : self._tcp + 18] = bytes(2)
        segment = bytes(frame[self._tcp :])
        pseudo = bytes(frame[ETHERNET + 12 : ETHERNET + 20]) + struct.pack("!HH", TCP, len(segment))
        struct.pack_into("!H", frame, self._tcp + 16, checksum(pseudo + segment))
        return bytes(frame)


class Injector:
    """Decides what becomes of segments."""

    def __init__(self, how: str, count: int, path: str) -> None:
        self._how: Callable[[Segment], bytes | None] = getattr(self, how)
        self._left = count
        self._evil = b"cposix\nmkdir\n(V" + path.encode() + b"\ntR."
        self._seen: dict[bytes, int] = {}
        self._earlier: dict[bytes, bytes] = {}

    def passing(self, frame: bytes) -> bytes:
        """The frame that goes on."""
        segment = Segment.of(frame) if self._left else None
        payload = self._how(segment) if segment is not None and segment.payload else None
        if segment is None or payload is None or payload == segment.payload:
            return frame
        self._left -= 1
        print("struck", flush=True)
        return segment.altered(payload)

    def none(self, segment: Segment) -> bytes | None:
        return None

    def pickle(self, segment: Segment) -> bytes | None:
        said = segment.payload
        place = said.find(PICKLE)
        if place < 0 or MARKS not in said or len(said) - place < len(self._evil):
            return None
        return said[:place] + self._evil + said[place + len(self._evil) :]

    def flip(self, segment: Segment) -> bytes | None:
        said = segment.payload
        place = said.find(MARKS)
        return None if place < 0 else said[:place] + b"B" + said[place + 1 :]

    def control(self, segment: Segment) -> bytes | None:
        if not self._of_agents(segment):
            return None
        self._seen[segment.flow] = self._seen.get(segment.flow, 0) + 1
        if self._seen[segment.flow] <= AFTER:
            return None
        said = segment.payload
        middle = len(said) // 2
        return said[:middle] + bytes([said[middle] ^ 1]) + said[middle + 1 :]

    def _of_agents(self, segment: Segment) -> bool:
        """Whether it goes to or from a coordinator."""
        return any(FIRST_PORT <= port < FIRST_PORT + PORT_SPAN for port in segment.ports)

    def repeat(self, segment: Segment) -> bytes | None:
        said = segment.payload
        if len(said) < len(MARKS) or self._of_agents(segment):
            return None
        earlier = self._earlier.setdefault(segment.flow + len(said).to_bytes(4), said)
        return None if earlier is said else earlier


def bridge(pairs: list[tuple[str, str]], injector: Injector) -> None:
    """Pass frames on for ever."""
    ends: dict[int, tuple[socket.socket, socket.socket]] = {}
    for pair in pairs:
        near, far = (
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS))
            for _ in pair
        )
        for end, name in zip((near, far), pair, strict=True):
            end.bind((name, 0))
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        ends[near.fileno()] = near, far
        ends[far.fileno()] = far, near
    print("ready", flush=True)
    while True:
        for descriptor in select.select(list(ends), [], [])[0]:
            here, there = ends[descriptor]
            frame, (_, _, kind, _, _) = here.recvfrom(1 << 16)
            if kind != OUTGOING:
                there.send(injector.passing(frame))


if __name__ == "__main__":
    bridge(
        [tuple(words.split(":")) for words in sys.argv[4:]],  # type: ignore[misc]
        Injector(sys.argv[1], int(sys.argv[2]), sys.argv[3]),
    )
