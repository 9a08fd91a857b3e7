"""Trace files: written in chunks, bounded, read back, aligned, and torn ones too."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from time import monotonic_ns, sleep

import pytest
from ompy.trace.sink import CHUNK, Event, Trace
from ompy.trace.trace_files import (
    RankHeader,
    TraceError,
    TraceWriter,
    align,
    prepare_directory,
    read_trace,
)


def counting():
    """A clock."""
    time = iter(range(10**9))
    return lambda: next(time)


def written(folder: Path, count: int, *, limit: int = 10**6, rank: int = 0) -> TraceWriter:
    trace = Trace(rank, counting())
    writer = TraceWriter(str(folder), RankHeader(rank), limit)
    trace.start(writer)
    for number in range(count):
        trace.record("layer", "NAME", number=number, what=b"x")
        assert len(list(trace)) < CHUNK
    trace.finish("finalize")
    assert not trace.active
    return writer


def test_more_events_than_memory_holds(tmp_path: Path) -> None:
    written(tmp_path, 2 * CHUNK + 3)
    trace = read_trace(str(tmp_path))
    assert [dict(event.fields)["number"] for event in trace.events] == list(range(2 * CHUNK + 3))
    assert trace.ends[0] == ("finalize", 0)
    assert trace.events[0].fields[1] == ("what", "b'x'")


def test_the_limit_is_kept_and_said(tmp_path: Path) -> None:
    written(tmp_path, CHUNK + 10, limit=CHUNK + 4)
    trace = read_trace(str(tmp_path))
    assert len(trace.events) == CHUNK + 4
    assert trace.ends[0].dropped == 6


def test_a_killed_rank(tmp_path: Path) -> None:
    """Half a line at the end is left out; what stands before it counts."""
    written(tmp_path, 5)
    path = tmp_path / "rank-0.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:4]) + lines[4][:9])
    trace = read_trace(str(tmp_path))
    assert len(trace.events) == 3
    assert trace.ends[0].reason == "killed"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("nonsense", "damaged"),
        ("[1,2]", "damaged"),
        (json.dumps({"format": "ompy-trace", "version": 99}), "another version"),
        ("{}", "damaged"),
    ],
)
def test_damage_is_said(tmp_path: Path, line: str, text: str) -> None:
    (tmp_path / "rank-0.jsonl").write_text(f"{line}\n")
    with pytest.raises(TraceError, match=text):
        read_trace(str(tmp_path))


def test_no_trace(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="holds no trace"):
        read_trace(str(tmp_path))
    with pytest.raises(TraceError, match="cannot be read"):
        read_trace(str(tmp_path / "nothing"))


def test_an_earlier_trace_goes_and_nothing_else(tmp_path: Path) -> None:
    for name in ("rank-7.jsonl", "job.json", "notes.txt", "rank-x.jsonl"):
        (tmp_path / name).write_text("")
    prepare_directory(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.txt", "rank-x.jsonl"]


def test_clocks_of_one_host_are_one(tmp_path: Path) -> None:
    """Whatever their looks at the wall clock said: CLOCK_MONOTONIC is the host's."""
    headers = {0: RankHeader(0, 0, "a", 100, 1000), 1: RankHeader(1, 0, "a", 200, 1150)}
    events = [Event(105, 0, "l", "A", ()), Event(103, 1, "l", "B", ())]
    assert [(e.time, e.name) for e in align(headers, events)] == [(0, "B"), (2, "A")]


def test_clocks_of_two_hosts_meet_by_their_wall_clocks() -> None:
    headers = {
        0: RankHeader(0, 0, "a", 100, 1000),
        1: RankHeader(1, 1, "b", 5000, 1010),
        2: RankHeader(2, 1, "b", 5001, 1019),  # its look was less exact: rank 1's counts
    }
    events = [
        Event(5005, 1, "l", "B", ()),
        Event(110, 0, "l", "A", ()),
        Event(5006, 2, "l", "C", ()),
    ]
    assert [(e.time, e.name) for e in align(headers, events)] == [(0, "A"), (5, "B"), (6, "C")]


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    trace = Trace(0, counting())
    trace.start(TraceWriter(str(tmp_path), RankHeader(0), 10))
    trace.record("layer", "PARENT")
    trace.forget()
    assert not trace.active
    trace.finish("exit")
    assert len((tmp_path / "rank-0.jsonl").read_text().splitlines()) == 1


def test_the_flight_recorder_is_a_ring() -> None:
    trace = Trace(0, counting(), recent=3)
    for number in range(5):
        trace.note("> send", 0, 1, 7, number, 8)
    assert [entry.sequence for entry in trace.recent()] == [2, 3, 4]
    assert Trace(0, counting(), recent=0).noting is False


def test_the_flight_recorder_tells_the_time_of_the_clock() -> None:
    trace = Trace(0, monotonic_ns, recent=3)
    before = monotonic_ns()
    sleep(0.01)
    trace.note("> send", 0, 1, 7, 1, 8)
    after = monotonic_ns()
    sleep(0.01)
    (entry,) = trace.recent()
    assert before + 9_000_000 < entry.time < after + 1_000_000


def test_a_write_that_is_interrupted_is_finished_first(tmp_path: Path) -> None:
    """A signal handler that comes in the middle of a write has its turn behind it."""
    writer = TraceWriter(str(tmp_path), RankHeader(0), 100)
    said = []
    writer.when_done = lambda: said.append(writer.busy)
    writer.write([Event(1, 0, "l", "A", ())])
    assert said == [False]
    assert len((tmp_path / "rank-0.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.ESTALE])
@pytest.mark.parametrize("at", [0, 1, 7, 100, 20_000])
def test_what_cannot_be_written_ends_the_trace_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    error: int,
    at: int,
) -> None:
    """The device takes so many bytes behind the header, then none; half a line is none."""
    trace = Trace(0, counting())
    writer = TraceWriter(str(tmp_path), RankHeader(0), 10**6)
    real, left = os.write, [at]

    def write(file: int, data: memoryview) -> int:
        if file <= 2:
            return real(file, data)
        if not left[0]:
            raise OSError(error, os.strerror(error))
        written = real(file, data[: left[0]])
        left[0] -= written
        return written

    monkeypatch.setattr(os, "write", write)
    trace.start(writer)
    for number in range(2 * CHUNK):
        if trace.active:
            trace.record("layer", "NAME", number=number)
    trace.finish("finalize")
    monkeypatch.undo()
    assert not trace.active
    assert not list(trace)
    said = capfd.readouterr().err
    assert said.count("\n") == said.count("warning: ") == 1
    assert str(tmp_path / "rank-0.jsonl") in said
    found = read_trace(str(tmp_path))
    assert found.ends[0].reason == os.strerror(error)
    assert [dict(event.fields)["number"] for event in found.events] == list(
        range(len(found.events))
    )
    assert bool(found.events) is (at >= 100)
