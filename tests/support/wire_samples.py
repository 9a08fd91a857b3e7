"""Packets with every header there is, written by hand, and what a dissector has to show of each."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Iterable, Sequence
from itertools import count
from random import Random
from typing import Any

from ompy.data.header_layout import HeaderLayout
from ompy.frameworks.btl import TAG_NOTICE, TAG_TRANSFER
from ompy.frameworks.btl_base import common_wire
from ompy.frameworks.btl_base.emulation import TRANSFER_LAYOUT
from ompy.frameworks.paths.rail_notices import NOTICE_LAYOUT
from ompy.net.seals.datagram_seal import SEAL_LAYOUT
from ompy.net.seals.handshake import HELLO_LAYOUT
from ompy.trace.reading import RankHeader
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace
from ompy_components.btl.ofi.headers import HEADER_LAYOUT as OFI
from ompy_components.btl.ofi.headers import Kind
from ompy_components.btl.openib import headers as openib
from ompy_components.btl.openib.connections import hello
from ompy_components.btl.tcp import framing
from ompy_components.btl.usnic import headers as usnic
from ompy_components.btl.usnic.put import DONE_LAYOUT
from ompy_components.nic.hca import headers as hca
from ompy_components.nic.ofi_emulated import headers as fabric
from ompy_components.pml.bfo import headers as bfo
from ompy_components.pml.ob1 import headers as ob1
from ompy_components.pml.ob1.departures import abandoning, leaving

CHANCE = Random(1)
Shown = list[tuple[str, int | bytes]]


class Sample:
    """Bytes, and the fields a dissector has to find in them.

    Attributes:
        data: the bytes.
        shown: names and values.
        known_at: how many of the bytes have to be there before they are shown; 0 for all.
    """

    known_at = 0

    def __init__(self, data: bytes = b"", shown: Iterable[tuple[str, int | bytes]] = ()) -> None:
        self.data = data
        self.shown: Shown = list(shown)

    def __add__(self, other: Sample) -> Sample:
        return Sample(self.data + other.data, [*self.shown, *other.shown])


def header(layout: HeaderLayout, **known: int | bytes) -> Sample:
    """A header with values that nobody has chosen in all fields that are not known."""
    values: list[int | bytes] = []
    for field in layout.fields:
        drawn = CHANCE.randbytes(field.size)
        signed = field.type.startswith("i")
        plain = drawn if field.type[0] == "b" else int.from_bytes(drawn, "little", signed=signed)
        values.append(known.pop(field.name, plain))
    assert not known, f"{layout.name} has no {known}"
    names = [f"ompy.{layout.name}.{field.name}" for field in layout.fields]
    return Sample(layout.struct.pack(*values), zip(names, values, strict=True))


def data(size: int = 5) -> Sample:
    """Bytes that say nothing."""
    drawn = CHANCE.randbytes(size)
    return Sample(drawn, [("ompy.data", drawn)])


def blob(name: str, text: bytes) -> Sample:
    """Bytes that have a name."""
    return Sample(text, [(f"ompy.{name}", text)])


def fragments() -> list[tuple[int, Sample]]:
    """What may travel under tags."""
    plain, again = 0x09, 0x89
    extra = header(bfo.EXTRA_LAYOUT)
    records = header(leaving.LEAVE_RECORD_LAYOUT) + header(leaving.LEAVE_RECORD_LAYOUT)
    transfer = header(TRANSFER_LAYOUT) + data()
    notice = header(NOTICE_LAYOUT, name_length=3) + blob("notice.name", b"tcp") + data()
    found = [
        (ob1.MATCH, header(ob1.MATCH_LAYOUT, type=ob1.MATCH) + data()),
        (ob1.MATCH, header(ob1.MATCH_LAYOUT, type=ob1.MATCH)),
        (ob1.RNDV, header(ob1.RNDV_LAYOUT, type=ob1.RNDV, flags=plain) + data()),
        (ob1.RNDV, header(ob1.RNDV_LAYOUT, type=ob1.RNDV, flags=again) + extra + data()),
        (ob1.RGET, header(ob1.RGET_LAYOUT, type=ob1.RGET, flags=plain) + data()),
        (ob1.RGET, header(ob1.RGET_LAYOUT, type=ob1.RGET, flags=again) + extra + data()),
        (ob1.ACK, header(ob1.ACK_LAYOUT, type=ob1.ACK)),
        (ob1.FRAG, header(ob1.FRAG_LAYOUT, type=ob1.FRAG) + data()),
        (ob1.PUT, header(ob1.PUT_LAYOUT, type=ob1.PUT) + data()),
        (ob1.FIN, header(ob1.FIN_LAYOUT, type=ob1.FIN)),
        (ob1.FIN, header(bfo.FIN_LAYOUT, type=ob1.FIN)),
        (ob1.CREDIT, header(ob1.CREDIT_LAYOUT, type=ob1.CREDIT)),
        (ob1.LEAVE, header(leaving.LEAVE_LAYOUT, type=ob1.LEAVE, what=0) + records),
        (ob1.LEAVE, header(abandoning.ABANDON_LAYOUT, type=ob1.LEAVE, what=abandoning.ABANDON)),
        (TAG_TRANSFER, transfer),
        (TAG_NOTICE, notice),
        (200, data()),
    ]
    return [*found, *((tag, header(bfo.DANCE_LAYOUT, type=tag)) for tag in bfo.RESTART_NAMES)]


def usnic_packets() -> list[Sample]:
    """Packets of usnic's; what the wire has padded is not shown."""
    padding = Sample(b"padding")

    def packet(body: Sample, **known: int) -> Sample:
        size = len(body.data) - (15 if known["type"] == usnic.CHUNK else 0)
        return (
            header(SEAL_LAYOUT) + header(usnic.PACKET_LAYOUT, length=size, **known) + body + padding
        )

    def chunk(body: Sample, at: int, **known: int) -> Sample:
        piece = header(usnic.CHUNK_LAYOUT, fragment_offset=at)
        return packet(piece + body, type=usnic.CHUNK, **known)

    match = header(ob1.MATCH_LAYOUT, type=ob1.MATCH) + data()
    return [
        *(packet(each, type=usnic.FRAG, tag=tag) for tag, each in fragments()),
        packet(header(DONE_LAYOUT), type=usnic.FRAG, tag=usnic.DONE),
        packet(data(1), type=usnic.FRAG, tag=usnic.BYE),
        packet(data(), type=usnic.ACK),
        packet(Sample(), type=usnic.ACK),
        *(packet(data(), type=kind) for kind in (usnic.PING, usnic.PONG, usnic.OPEN)),
        chunk(match, 0, tag=ob1.MATCH, put_address=0),
        chunk(data(), 1400, tag=ob1.MATCH, put_address=0),
        chunk(data(), 0, tag=ob1.MATCH, put_address=1 << 40),
    ]


def openib_fragments() -> list[Sample]:
    """What an adapter carries for openib."""
    inner = header(ob1.MATCH_LAYOUT, type=ob1.MATCH) + data()
    small = header(ob1.FIN_LAYOUT, type=ob1.FIN)

    def coalesced(tag: int, fragment: Sample, room: int) -> Sample:
        size = len(fragment.data)
        sub = header(openib.SUBHEADER_LAYOUT, tag=tag, size=size, alloc_size=room)
        return sub + fragment + Sample(bytes(room - size))

    both = coalesced(ob1.MATCH, inner, 24) + coalesced(ob1.FIN, small, 24)
    control = [
        header(openib.CREDITS_LAYOUT, type=openib.CREDITS),
        header(openib.RING_LAYOUT, type=openib.RDMA),
        Sample(bytes([openib.COALESCED]), [("ompy.openib.control.type", openib.COALESCED)]) + both,
        header(openib.BROKEN_LAYOUT, type=openib.EP_BROKEN),
        header(openib.BROKEN_LAYOUT, type=openib.EP_EAGER_RDMA_ERROR),
        header(openib.QUEUE_LAYOUT, type=openib.RDMA_QUEUE),
        Sample(bytes([openib.BYE]), [("ompy.openib.control.type", openib.BYE)]),
    ]
    under = openib.HEADER_LAYOUT
    return [
        *(header(under, tag=openib.CONTROL) + each for each in control),
        *(header(under, tag=tag) + each for tag, each in fragments()),
    ]


def hca_packets() -> list[Sample]:
    """Packets of every opcode, and every fragment of openib's in one."""
    extensions = {
        hca.RETH.size: hca.RETH_LAYOUT,
        hca.ATOMIC_ETH.size: hca.ATOMIC_ETH_LAYOUT,
        hca.AETH.size: hca.AETH_LAYOUT,
        hca.ATOMIC_ACK.size: hca.ATOMIC_ACK_LAYOUT,
    }
    found = []
    for opcode in sorted(hca.OPCODES):
        start = header(SEAL_LAYOUT) + header(hca.BASE_LAYOUT, opcode=opcode)
        more = hca.header_size(opcode) - hca.BEGIN
        start += header(extensions[more]) if more else Sample()
        if opcode in (hca.SEND_ONLY, hca.SEND_FIRST):
            found += [start + each for each in openib_fragments()]
        else:
            found.append(start + data())
    return found


def hellos() -> list[Sample]:
    """How openib's paths are opened."""
    sender = HeaderLayout("openib.sender", "rank u32")
    first = header(SEAL_LAYOUT) + header(sender) + header(hello.HELLO_LAYOUT, host_length=7)
    pairs = header(hello.PAIR_LAYOUT) + header(hello.PAIR_LAYOUT)
    return [first + blob("openib.host", b"rail0/3") + pairs]


def tcp_frames() -> list[Sample]:
    """Frames of every kind."""

    def frame(kind: int, body: Sample, tag: int = 0) -> Sample:
        return header(framing.FRAME_LAYOUT, kind=kind, tag=tag, size=len(body.data)) + body

    remote = (framing.PUT, framing.GET, framing.GOT, framing.DONE)
    brings = {framing.PUT: 5000, framing.GOT: 300}  # the rest of a put is not looked at
    found = [frame(framing.DATA, each, tag) for tag, each in fragments()]
    for kind in remote:
        about = header(framing.REMOTE_LAYOUT)
        found.append(frame(kind, about + Sample(bytes(brings.get(kind, 0)))))
        found[-1].known_at = framing.FRAME_SIZE + framing.REMOTE_SIZE
    ack = header(framing.FRAME_LAYOUT, kind=framing.ACK, size=77)
    return [*found, ack, frame(framing.BYE, Sample())]


def fabric_units() -> tuple[list[Sample], list[Sample]]:
    """Requests of every kind, and answers."""
    messages = [
        header(SEAL_LAYOUT) + header(OFI, kind=int(Kind.FRAGMENT), tag=tag) + each
        for tag, each in fragments()
    ]
    messages += [
        header(SEAL_LAYOUT) + header(OFI, kind=int(kind))
        for kind in Kind
        if kind is not Kind.FRAGMENT
    ]

    def request(kind: int, size: int, body: Sample) -> Sample:
        return header(fabric.REQUEST_LAYOUT, kind=kind, size=size) + body

    asked = [request(fabric.SEND, len(each.data), each) for each in messages]
    other = data(60)  # nobody's: where btl.ofi has its kind, there is none of those
    other.data = other.data[:38] + b"\xee" + other.data[39:]
    other.shown = [("ompy.data", other.data)]
    asked += [
        request(fabric.SEND, 60, other),
        request(fabric.WRITE, 700, Sample(bytes(700))),
        request(fabric.READ, 700, Sample()),
        request(fabric.ATOMIC, 8, data(8)),
        request(fabric.FETCH, 4, data(4)),
        request(fabric.COMPARE, 8, data(16)),
        request(fabric.BYE, 0, Sample()),
    ]
    asked[-6].known_at = fabric.REQUEST.size
    answered = [
        header(fabric.ANSWER_LAYOUT, status=0, size=700) + Sample(bytes(700)),
        header(fabric.ANSWER_LAYOUT, status=5, size=0),
        header(fabric.ANSWER_LAYOUT, status=fabric.LEAVES, size=0),
    ]
    answered[0].known_at = fabric.ANSWER.size
    return asked, answered


class Samples:
    """A trace of samples: what each rank has sent, and what is to be shown of every packet."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._flows = count(1)
        self._ports = count(2000)
        self._time = count(1)
        self.shown: list[Shown] = []

    def _record(self, rank: int, name: str, **fields: Any) -> None:
        self._events.append(Event(next(self._time), rank, "wire", name, tuple(fields.items())))

    def trace(self) -> JobTrace:
        """All of it."""
        headers = {rank: RankHeader(rank, rank, f"host{rank}") for rank in (0, 1)}
        return JobTrace({}, headers, {}, [], wire=self._events, wall=10**18)

    def add_datagrams(self, protocol: str, packets: Sequence[Sample]) -> None:
        """Packets of a socket."""
        flow, about = next(self._flows), {"host": "rail0/0", "port": next(self._ports)}
        self._record(0, "FLOW", flow=flow, protocol=protocol, via="datagram", rail="rail0", **about)
        for each in packets:
            text = b2a_base64(each.data, newline=False).decode()
            to = {"peer": 1, "to": "rail0/1", "to_port": 9}
            self._record(0, "SENT", flow=flow, **to, size=len(each.data), data=text)
            self.shown.append([("ompy.protocol", protocol.encode()), *each.shown])

    def add_connection(
        self, protocol: str, level: int, ways: tuple[Sequence[Sample], Sequence[Sample]]
    ) -> None:
        """A connection under a seal; its ends write what is theirs in pieces of any size."""
        ends = ("rail0/0", next(self._ports)), ("rail0/1", next(self._ports))
        said = _sealed(ways[0], level), _sealed(ways[1], level)
        hello_ = header(HELLO_LAYOUT, magic=b"ompytest", seal=level)
        lead = [
            (0, hello_), (1, header(common_wire.CHALLENGE.layout)),
            (0, header(common_wire.PROOF.layout)), (1, header(common_wire.VERDICT.layout)),
        ]  # fmt: skip
        flows = [next(self._flows), next(self._flows)]
        sent = [0, 0]
        for rank in (0, 1):
            (host, port), (to, to_port) = ends[rank], ends[1 - rank]
            about = {"host": host, "port": port, "to": to, "to_port": to_port, "peer": 1 - rank}
            about |= {"protocol": protocol, "via": "stream", "rail": "rail0"}
            self._record(rank, "FLOW", flow=flows[rank], **about)
        behind = [(end, each) for end in (0, 1) for each in said[end]]
        for rank, each in [*lead, *behind]:
            left, gone = each.data, 0
            while left:
                size = CHANCE.choice((len(left), CHANCE.randint(1, len(left))))
                piece, left = left[:size], left[size:]
                self._write(rank, flows[rank], piece, sent)
                known = gone < (each.known_at or len(each.data)) <= gone + size
                shown = each.shown if known else []
                self.shown.append([("ompy.protocol", protocol.encode()), *shown])
                gone += size

    def _write(self, rank: int, flow: int, piece: bytes, sent: list[int]) -> None:
        text = b2a_base64(piece, newline=False).decode()
        where = {"offset": sent[rank], "heard": sent[1 - rank]}
        self._record(rank, "SENT", flow=flow, **where, size=len(piece), data=text)
        sent[rank] += len(piece)


def _sealed(units: Sequence[Sample], level: int) -> list[Sample]:
    """Units as a stream: plain, or some of them in each record."""
    if not level:
        return list(units)
    found = []
    for first in range(0, len(units), 3):
        body = Sample()
        for each in units[first : first + 3]:
            body += each
        head = header(common_wire.RECORD_HEAD.layout, length=len(body.data))
        tag = header(common_wire.RECORD_TAG.layout)
        if level == 1:
            shown = [*head.shown, *tag.shown, *body.shown]
        else:
            shown = [*head.shown, ("ompy.encrypted", body.data), *tag.shown]
        found.append(Sample(head.data + body.data + tag.data, shown))
    return found


def all_samples() -> Samples:
    """Every header there is."""
    samples = Samples()
    samples.add_datagrams("nic.vic", usnic_packets())
    samples.add_datagrams("nic.hca", hca_packets())
    samples.add_datagrams("btl.openib.fe80.0", hellos())
    for level in (0, 1, 2):
        samples.add_connection("btl.tcp", level, (tcp_frames(), tcp_frames()))
        samples.add_connection("nic.ofi_emulated", level, fabric_units())
    return samples
