"""Packets of simulated worlds as tshark reads them, against the trace and the code's own parsers.

A world for each way over which a virtual world sends: what stands in each header is compared with
what the component itself reads in the same bytes, and headers of messages with the events of the
trace.
"""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from ompy.data.convertor import ContiguousConvertor
from ompy.frameworks.pml import STANDARD
from ompy.net.seals.datagram_seal import SEAL_SIZE
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess
from ompy.trace.exporting.pcapng import pcapng
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace, read_trace
from ompy_components.btl.usnic.headers import parse_packet
from ompy_components.nic.hca.headers import parse

from tests.sim.ob1.programs import buffer, pattern, world
from tests.support.tshark_reading import Fields, dissected, need_tshark, number
from tests.support.worlds import virtual

Headers = list[tuple[str, dict[str, int]]]
# names of headers that begin or go on with a message, by the event of who has sent them
SENT = {"MATCH": "match", "RNDV": "rndv", "RGET": "rget"}
WORLDS = {
    "tcp": {"btl": "self,tcp", "btl_tcp_eager_limit": 1024, "btl_tcp_rndv_eager_limit": 1024},
    "usnic": {"btl": "self,usnic"},
    "openib": {"btl": "self,openib", "pml": "bfo"},
    "ofi": {"btl": "self,ofi"},
}


SIZES = (0, 300, 1001, 20_000, 60_000)


def exchange(process: RankProcess) -> None:
    """Messages of some sizes both ways, all under way at once."""
    comm, pml = world(process), process.pml
    peer = 1 - comm.rank
    receives = [(buffer(size), size, tag) for tag, size in enumerate(SIZES)]
    requests = [pml.irecv(comm, room, peer, tag) for (_, room), _, tag in receives]
    for tag, size in enumerate(SIZES):
        data = ContiguousConvertor(memoryview(pattern(size, comm.rank)))
        requests.append(pml.isend(comm, data, peer, tag, STANDARD))
    for request in requests:
        pml.wait(comm, request)
    for (memory, _), size, _ in receives:
        assert bytes(memory) == pattern(size, peer)


def headers_of(fields: Fields) -> Iterator[tuple[str, dict[str, int]]]:
    """The headers of a packet, with the numbers in them."""
    layout, values = "", {}
    for name, text in fields:
        if name.count(".") != 3 or ":" in text:
            continue
        where, _, field = name.removeprefix("ompy.").rpartition(".")
        if where != layout or field in values:
            if values:
                yield layout, values
            layout, values = where, {}
        values[field] = number(text)
    if values:
        yield layout, values


Read = dict[str, tuple[JobTrace, list[Fields]]]


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> Read:
    """Each world's trace, and what tshark has read of it: all in one run, as ranks of one job."""
    need_tshark()
    folder = tmp_path_factory.mktemp("worlds")
    traces: dict[str, JobTrace] = {}
    wire: list[Event] = []
    counts = []
    for place, (way, settings) in enumerate(WORLDS.items()):
        rails = (Rail(f"rail{place}"),)  # addresses of its own
        wanted: dict[str, Any] = {"pml": "ob1", "trace_base_wire": 0xFFFF, **settings}
        job = virtual(2, exchange, rails=rails, trace=True, **wanted)
        job.write_trace(str(folder / way))
        traces[way] = read_trace(str(folder / way))
        sent = traces[way].wire
        wire += [event._replace(rank=event.rank + 10 * place) for event in sent]
        counts.append(sum(event.name == "SENT" for event in sent))
    found = dissected(pcapng(JobTrace({}, {}, {}, [], wire=wire))[0], folder)
    ends = list(accumulate(counts))
    assert len(found) == ends[-1]
    parts = zip(WORLDS, counts, ends, strict=True)
    return {way: (traces[way], found[end - size : end]) for way, size, end in parts}


@pytest.mark.parametrize("way", WORLDS)
def test_headers(way: str, read: Read) -> None:
    trace, packets = read[way]
    assert not [name for fields in packets for name, _ in fields if not name.startswith("ompy.")]
    found = [list(headers_of(fields)) for fields in packets]
    if way in CHECKS:
        CHECKS[way](trace, found)
    see_messages(trace, found)


def see_messages(trace: JobTrace, found: list[Headers]) -> None:
    """What a PML has sent to another rank, by its events, is what is in the packets."""
    shown: dict[str, set[tuple[int, ...]]] = {}
    for layout, values in (each for packet in found for each in packet):
        name = layout.partition(".")[2]
        if layout.startswith("ob1.") and name in SENT.values():
            key = ("context", "source", "tag", "sequence")
        elif layout == "ob1.ack":
            key = ("offset", "size")
        elif layout == "ob1.frag":
            key = ("offset",)
        else:
            continue
        shown.setdefault(name, set()).add(tuple(values[each] for each in key))
    told: dict[str, set[tuple[int, ...]]] = {}
    for event in trace.events:
        fields: dict[str, Any] = dict(event.fields)
        if "side" not in fields or fields.get("peer", event.rank) == event.rank:
            continue
        if event.name in SENT and fields["side"] == "send":
            values = tuple(fields[key] for key in ("context", "source", "tag", "sequence"))
            told.setdefault(SENT[event.name], set()).add(values)
        elif event.name == "FRAG" and fields["side"] == "send":
            told.setdefault("frag", set()).add((fields["offset"],))
    assert told["match"]
    for name, values in told.items():
        assert shown[name] == values, name


def sent_bytes(trace: JobTrace) -> list[memoryview]:
    """The packets of a world that sends datagrams, in order."""
    sent = (dict(event.fields) for event in trace.wire if event.name == "SENT")
    return [memoryview(a2b_base64(str(fields["data"]))) for fields in sent]


def see_usnic(trace: JobTrace, found: list[Headers]) -> None:
    """usnic's own parser reads the same."""
    for packet, headers in zip(sent_bytes(trace), found, strict=True):
        wanted = parse_packet(packet[SEAL_SIZE:])
        values = dict(headers)["usnic.packet"]
        assert values["sender"] == wanted.sender
        assert values["type"] == wanted.kind
        assert values["sequence"] == wanted.sequence
        assert values["length"] == wanted.length
        assert values["put_address"] == wanted.put_address
        assert values["tag"] == wanted.tag
        assert values["epoch"] == wanted.epoch
        assert (values["acknowledged"] if values["ack_present"] else None) == wanted.acknowledged
        if wanted.fragment:
            chunk = dict(headers)["usnic.chunk"]
            assert tuple(chunk.values()) == (wanted.fragment, wanted.total, wanted.offset)


def see_hca(trace: JobTrace, found: list[Headers]) -> None:
    """hca's own parser reads the same."""
    names = {1: "to_lid", 2: "from_lid"}
    seen = 0
    for packet, headers in zip(sent_bytes(trace), found, strict=True):
        values = dict(headers).get("hca.base")
        if values is None:
            continue
        wanted = parse(packet)
        seen += 1
        assert (values["opcode"], values["round"]) == (wanted.opcode, wanted.round)
        assert (values[names[1]], values[names[2]]) == (wanted.to_lid, wanted.from_lid)
        assert (values["to"], values["source"]) == (wanted.to, wanted.source)
        assert values["sequence"] == wanted.sequence
        if "hca.reth" in dict(headers):
            assert tuple(dict(headers)["hca.reth"].values()) == wanted.extension
    assert seen


CHECKS: dict[str, Callable[[JobTrace, list[Headers]], None]] = {
    "usnic": see_usnic,
    "openib": see_hca,
}


def test_one_seed_one_capture(tmp_path: Path) -> None:
    captures = []
    for folder in ("one", "other"):
        job = virtual(2, exchange, btl="self,usnic", trace=True, trace_base_wire=64)
        job.write_trace(str(tmp_path / folder))
        captures.append(pcapng(read_trace(str(tmp_path / folder)))[0])
    assert captures[0] == captures[1]


def test_keeping_packets_changes_nothing(tmp_path: Path) -> None:
    """A world is the same with it: every event at the same time."""
    told = []
    for most in (0, 0xFFFF):
        job = virtual(2, exchange, btl="self,tcp", trace=True, trace_base_wire=most)
        told.append([event for event in job.events() if event.layer != "wire"])
    assert told[0] == told[1]
