"""OTF2: the records of a trace, and an archive that OTF2's own reader and otf2-print understand."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from ompy.trace.communicators import members_of, members_text
from ompy.trace.exporting.mpi_names import is_nonblocking, mpi_name
from ompy.trace.exporting.otf2_archive import ANCHOR, write_archive
from ompy.trace.exporting.otf2_records import ENTER, LEAVE, Record, otf2_records, places_of
from ompy.trace.reading import DamageError, RankHeader, event_of
from ompy.trace.sink import Event
from ompy.trace.trace_files import JobTrace

WORLD = {"context": 0, "comm": "MPI_COMM_WORLD", "group": 5}


def event(time: int, rank: int, layer: str, name: str, **fields: object) -> Event:
    return Event(time, rank, layer, name, tuple(fields.items()))


def group(time: int, rank: int, context: int, members: str, **fields: object) -> Event:
    return event(
        time, rank, "api", "GROUP", context=context, comm=f"c{context}", members=members, **fields
    )


def call(time: int, rank: int, number: int, name: str, **fields: object) -> Event:
    where = {"file": "/home/app.py", "line": 10 + number, "function": "main"}
    return event(time, rank, "api", "CALL", number=number, call=name, **fields, **where)


def ended(time: int, rank: int, number: int) -> Event:
    return event(time, rank, "api", "RETURN", number=number)


def sent(time: int, rank: int, peer: int, source: int, sequence: int, context: int) -> list[Event]:
    about = {"side": "send", "peer": peer, "tag": 3, "context": context, "source": source}
    about["sequence"] = sequence
    return [
        event(time, rank, "pml.ob1", "PROTOCOL", **about, size=8, protocol="Eager"),
        event(time, rank, "pml.ob1", "MATCH", **about, payload=8),
        event(time + 1, rank, "pml.ob1", "COMPLETE", **about),
    ]


def got(time: int, rank: int, peer: int, source: int, sequence: int, context: int, posted: int = 0):
    about = {"side": "receive", "peer": peer, "tag": 3, "context": context, "source": source}
    about["sequence"] = sequence
    return [
        event(time, rank, "pml.ob1", "MATCH", **about, payload=8),
        event(time, rank, "pml.ob1", "COMPLETE", **about, posted=posted),
    ]


def trace_of(events: list[Event], ranks: int = 4) -> JobTrace:
    headers = {rank: RankHeader(rank, rank // 2, f"host{rank // 2}") for rank in range(ranks)}
    return JobTrace({"ompy": "1"}, headers, {}, sorted(events, key=lambda e: e.time), wall=10**18)


def job() -> JobTrace:
    """Ranks 1 and 3 in a communicator where 3 is rank 0; a barrier of both that 3 does not end."""
    posted = {"side": "receive", "context": 2, "posted": 1, "source": 0, "tag": 3, "room": 8}
    return trace_of(
        [
            group(0, 1, 2, "3,1"),
            group(0, 3, 2, "3,1"),
            call(1, 1, 1, "Irecv", context=2),
            event(2, 1, "pml.ob1", "POST", **posted),
            ended(3, 1, 1),
            call(3, 3, 1, "Send", context=2),
            *sent(4, 3, 1, 0, 1, 2),
            ended(6, 3, 1),
            call(7, 1, 2, "Request.Wait"),
            *got(8, 1, 3, 0, 1, 2, posted=1),
            ended(9, 1, 2),
            call(10, 1, 3, "isend", context=2),
            *sent(11, 1, 3, 1, 1, 2),
            ended(13, 1, 3),
            call(14, 3, 2, "recv", context=2),
            *got(15, 3, 1, 1, 1, 2),
            ended(16, 3, 2),
            call(17, 1, 4, "Barrier", **WORLD, collective=1),
            call(18, 3, 3, "Bcast", **{**WORLD, "context": 2}, collective=1, root=0, bytes=64),
            ended(20, 1, 4),
        ]
    )


def names(records: list[Record], rank: int) -> list[str]:
    return [record.name for record in records if record.place.rank == rank]


def test_messages_have_ranks_of_their_communicator_and_requests() -> None:
    records = otf2_records(job())
    by_name = {record.name: record.values for record in records}
    assert by_name["MpiSend"]["receiver"] == 1
    assert by_name["MpiSend"]["communicator"].members == (3, 1)
    assert by_name["MpiIrecv"]["sender"] == 0
    assert by_name["MpiIrecv"]["request_id"] == by_name["MpiIrecvRequest"]["request_id"]
    assert by_name["MpiIsend"]["receiver"] == 0
    assert by_name["MpiIsend"]["request_id"] == by_name["MpiIsendComplete"]["request_id"]
    assert by_name["MpiIsend"]["request_id"] != by_name["MpiIrecv"]["request_id"]
    assert by_name["MpiRecv"]["msg_length"] == 8
    assert names(records, 1)[:6] == [ENTER, "MpiIrecvRequest", LEAVE, ENTER, "MpiIrecv", LEAVE]


def test_what_did_not_end_ends_with_its_rank() -> None:
    last = [record for record in otf2_records(job()) if record.place.rank == 3][-4:]
    expected = [ENTER, "MpiCollectiveBegin", "MpiCollectiveEnd", LEAVE]
    assert [record.name for record in last] == expected
    assert {record.time for record in last} == {18}
    assert last[2].values["size_sent"] == 64, "it is the root"


def test_calls_across_each_other_are_at_two_locations() -> None:
    calls = [call(1, 0, 1, "Send"), call(2, 0, 2, "Recv"), ended(3, 0, 1), ended(4, 0, 2)]
    inner = [call(5, 0, 3, "Send"), call(6, 0, 4, "Recv"), ended(7, 0, 4), ended(8, 0, 3)]
    records = otf2_records(trace_of([*calls, *inner]))
    assert [place.lane for place in places_of(records)] == [0, 1]
    for place in places_of(records):
        inside: list[object] = []
        for record in records:
            if record.place == place and record.name == ENTER:
                inside.append(record.values["region"])
            elif record.place == place:
                assert inside.pop() == record.values["region"]
        assert not inside


def test_names() -> None:
    assert mpi_name("Request.Waitall") == mpi_name("Request.waitall") == "MPI_Waitall"
    assert [mpi_name(call) for call in ("isend", "Win.Fence", "Win.Put", "File.Read_all")] == [
        "MPI_Isend", "MPI_Win_fence", "MPI_Put", "MPI_File_read_all",
    ]  # fmt: skip
    assert mpi_name("Split") == "MPI_Comm_split"
    assert mpi_name("Message.Irecv") == "MPI_Imrecv"
    assert is_nonblocking("Request.Start")
    assert not is_nonblocking("Request.Wait")
    assert not is_nonblocking("Ssend")


@pytest.mark.parametrize("ranks", [(), (0,), (0, 1, 2, 7), (3, 1), (5, 4, 3), (2, 3, 0, 1)])
def test_members_as_text(ranks: tuple[int, ...]) -> None:
    assert members_of(members_text(ranks)) == ranks


@pytest.mark.parametrize("text", ["3-1", "-1", "x", "0-99999999", "1,,2"])
def test_damaged_members_are_refused(text: str) -> None:
    with pytest.raises(DamageError, match="members"):
        event_of([1, "api", "GROUP", {"context": 0, "comm": "c", "members": text}], 0)


def test_the_library_reads_what_was_written(tmp_path: Path) -> None:
    otf2 = pytest.importorskip("otf2", reason="OTF2's Python package is not installed")
    trace = job()
    records = otf2_records(trace)
    assert write_archive(str(tmp_path / "archive"), trace) == len(records)
    with otf2.reader.open(str(tmp_path / "archive" / ANCHOR)) as read:
        found = [(location.name, each) for location, each in read.events]
        clock = read.definitions.clock_properties
        tree = {node.name: node.parent for node in read.definitions.system_tree_nodes}
        groups = {g.name: g.system_tree_parent.name for g in read.definitions.location_groups}
        regions = {(r.name, r.source_file, r.begin_line_number) for r in read.definitions.regions}
        members = [[m.name for m in c.group.members] for c in read.definitions.comms]
    assert len(found) == len(records)
    for (name, each), record in zip(found, records, strict=True):
        assert name == f"rank {record.place.rank}"
        assert (type(each).__name__, each.time) == (record.name, record.time)
        for key in ("sender", "receiver", "msg_tag", "msg_length", "request_id", "size_sent"):
            if key in record.values:
                assert getattr(each, key) == record.values[key]
    assert clock.timer_resolution == 10**9
    assert abs(clock.realtime_timestamp - 10**18) < 1000
    assert tree.keys() == {"cluster", "host0", "host1"}
    assert groups == {f"rank {rank}": f"host{rank // 2}" for rank in range(4)}
    assert ("MPI_Irecv", "/home/app.py", 11) in regions
    assert ["rank 3", "rank 1"] in members


def test_otf2_print_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("otf2", reason="OTF2's Python package is not installed")
    if shutil.which("otf2-print") is None:
        pytest.skip("otf2-print is not installed (Debian: otf2-tools)")
    trace = job()
    write_archive(str(tmp_path / "archive"), trace)
    command = ["otf2-print", str(tmp_path / "archive" / ANCHOR)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert not done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    counted = Counter(line[0].replace("_", "").lower() for line in lines if len(line) > 2 and (
        re.fullmatch(r"[A-Z_]+", line[0]) and line[1].isdigit() and line[2].isdigit()
    ))  # fmt: skip
    assert counted == Counter(record.name.lower() for record in otf2_records(trace))
