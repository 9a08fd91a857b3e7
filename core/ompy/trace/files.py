"""The files of a traced job: one of JSON lines per rank, and `job.json` with the job's facts.

A rank's file begins with an object that says whose it is and how its clock relates to others,
goes on with an array per event (`[time, layer, name, {fields}]`), and ends with an object that
says how the trace ended. A file without that end is of a rank that was killed.

Writing needs no more memory than one chunk of events; reading is for tools. A trace only observes:
what cannot be written is lost with one line of warning, and the job goes on.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from ompy import outputs
from ompy.trace.sink import Event

FORMAT: Final = "ompy-trace"
VERSION: Final = 1
JOB: Final = "job.json"
_RANK_FILE: Final = re.compile(r"rank-(\d+)\.jsonl")
_DUMPS: Final = json.JSONEncoder(separators=(",", ":"), default=str).encode


class TraceError(Exception):
    """A directory holds no trace, or one that cannot be read; the text says what to do."""


class RankHeader(NamedTuple):
    """Whose events a file holds, and when they were.

    Attributes:
        rank: world rank.
        node: index of its host. Ranks of one host share CLOCK_MONOTONIC.
        host: its name.
        monotonic: nanoseconds of the rank's clock at wire-up.
        wall: nanoseconds of the wall clock at the same moment.
    """

    rank: int
    node: int = 0
    host: str = ""
    monotonic: int = 0
    wall: int = 0


def rank_file(directory: str, rank: int) -> str:
    """Path of a rank's events."""
    return os.path.join(directory, f"rank-{rank}.jsonl")


class TraceWriter:
    """Writes one rank's events; an `EventWriter`.

    Attributes:
        busy: a write is under way, so that a signal handler must not begin another.
        dropped: events beyond the limit, or lost, which were counted only.
        when_done: to call behind the write that is under way, or None.
    """

    def __init__(self, directory: str, header: RankHeader, limit: int) -> None:
        """Open the file, which replaces one of an earlier job.

        Args:
            directory: of the trace; made unless it is there.
            header: whose events.
            limit: events to write at most.

        Raises:
            OSError: it cannot be written there.
        """
        self._path = rank_file(directory, header.rank)
        self._rank = header.rank
        self._left = limit
        self._size = 0  # bytes of whole lines in the file
        self.busy = False
        self.dropped = 0
        self.when_done: Callable[[], object] | None = None
        folder = outputs.open_directory(directory)
        try:
            self._file = outputs.create_in(folder, os.path.basename(self._path))
        finally:
            os.close(folder)
        self._put([{"format": FORMAT, "version": VERSION, **header._asdict()}])

    def write(self, events: list[Event]) -> bool:
        """Append events. Returns whether more are of any use: not once the file is lost."""
        if self._file < 0:
            self.dropped += len(events)
            return False
        kept = events[: self._left]
        self._left -= len(kept)
        self.dropped += len(events) - len(kept)
        self._put([(event.time, event.layer, event.name, dict(event.fields)) for event in kept])
        return self._file >= 0

    def close(self, reason: str) -> None:
        """Say how the trace ended, and close. Harmless the second time."""
        if self._file >= 0:
            self._put([{"end": reason, "dropped": self.dropped}])
        if self._file >= 0:
            file, self._file = self._file, -1
            try:
                if not os.fstat(file).st_nlink:
                    self._warn("it was removed while the job ran")
                os.close(file)
            except OSError as problem:
                self._warn(f"{problem.strerror} when it was closed")

    def _put(self, values: Iterable[object]) -> None:
        text = "".join(f"{_DUMPS(value)}\n" for value in values).encode()
        data = memoryview(text)
        self.busy = True
        try:
            while data and self._file >= 0:
                data = data[os.write(self._file, data) :]
            self._size += len(text)
        except OSError as problem:
            self._lose(text[: len(text) - len(data)], str(problem.strerror))
        finally:
            self.busy = False
        if self.when_done is not None:
            self.when_done()

    def _lose(self, written: bytes, why: str) -> None:
        """Nothing more can be written: end with the last whole line, and why, if there is room.

        Args:
            written: the part of the last piece that is in the file.
            why: the kernel's word.
        """
        file, self._file = self._file, -1
        whole = self._size + written.rfind(b"\n") + 1
        last = f"{_DUMPS({'end': why, 'dropped': self.dropped})}\n".encode()
        with suppress(OSError):  # the reader takes half a line for what it is
            os.ftruncate(file, whole)
            if os.pwrite(file, last, whole) < len(last):
                os.ftruncate(file, whole)
        with suppress(OSError):
            os.close(file)
        self._warn(f"{why}; later events of this rank are lost, the job goes on")

    def _warn(self, text: str) -> None:
        outputs.warn(f"the trace {self._path}: {text}", ("ompy", f"rank {self._rank}"))


def prepare(directory: str) -> None:
    """Make a directory ready for a job's trace: an earlier one in it goes.

    Raises:
        OSError: it cannot be made or written.
    """
    folder = outputs.open_directory(directory)
    try:
        for name in os.listdir(folder):
            if name == JOB or _RANK_FILE.fullmatch(name):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)


def write_job(directory: str, facts: Mapping[str, Any]) -> None:
    """Write the job's facts, all at once.

    Raises:
        OSError: they cannot be written; what was there before still is.
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **facts}, indent=1) + "\n"
    unfinished = f".{JOB}"
    folder = outputs.open_directory(directory)
    try:
        with open(outputs.create_in(folder, unfinished), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(unfinished, JOB, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise
    finally:
        os.close(folder)


class Ended(NamedTuple):
    """How a rank's trace ended.

    Attributes:
        reason: as `finalize` or `SIGTERM`; `killed` when it was cut off.
        dropped: events beyond the limit.
    """

    reason: str
    dropped: int = 0


class JobTrace(NamedTuple):
    """A trace that was read.

    Attributes:
        job: the facts of `job.json`; empty when there is none.
        headers: by rank.
        ends: how each rank's trace ended, by rank.
        events: of all ranks in the order of their times, which are aligned: nanoseconds from
            the first event.
    """

    job: dict[str, Any]
    headers: dict[int, RankHeader]
    ends: dict[int, Ended]
    events: list[Event]


def read(directory: str) -> JobTrace:
    """Read a trace and align its clocks.

    Raises:
        TraceError: there is none, or it is damaged.
    """
    try:
        names = sorted(os.listdir(directory))
    except OSError as problem:
        raise TraceError(f"{directory} cannot be read: {problem.strerror}") from None
    paths = [Path(directory, name) for name in names if _RANK_FILE.fullmatch(name)]
    if not paths:
        raise TraceError(
            f"{directory} holds no trace: there is no file rank-0.jsonl. "
            f"ompy-run --trace {directory} ... writes one"
        )
    headers: dict[int, RankHeader] = {}
    ends: dict[int, Ended] = {}
    events: list[Event] = []
    for path in paths:
        header, end, own = _read_rank(path)
        headers[header.rank], ends[header.rank] = header, end
        events += own
    return JobTrace(_read_job(directory), headers, ends, align(headers, events))


def _read_job(directory: str) -> dict[str, Any]:
    path = Path(directory, JOB)
    if not path.exists():
        return {}
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
    except ValueError as problem:
        raise TraceError(f"{path} is damaged: {problem}") from None
    return facts


def _read_rank(path: Path) -> tuple[RankHeader, Ended, list[Event]]:
    """A rank's file. What a killed rank has half written at its end is left out."""
    *lines, rest = path.read_text().split("\n")
    try:
        first = json.loads(lines[0])
        if (first["format"], first["version"]) != (FORMAT, VERSION):
            raise TraceError(f"{path} is of another version of ompy's traces")
        header = RankHeader(*(first[name] for name in RankHeader._fields))
        end = Ended("killed")
        events = []
        for line in lines[1:]:
            value = json.loads(line)
            if isinstance(value, dict):
                end = Ended(value["end"], value["dropped"])
                continue
            time, layer, name, fields = value
            events.append(Event(time, header.rank, layer, name, tuple(fields.items())))
    except (ValueError, KeyError, IndexError, TypeError) as problem:
        raise TraceError(f"{path} is damaged: {problem}") from None
    return header, end if not rest else Ended("killed"), events


def align(headers: Mapping[int, RankHeader], events: Iterable[Event]) -> list[Event]:
    """Events with all times on one clock, from the first on, in order; ties by rank.

    The clock is that of the lowest rank's host. Ranks of one host share it; another host's
    differs by what the wall clocks said at wire-up, so it is as good as the hosts' wall clocks.
    """
    base = headers[min(headers)]
    shift = {
        rank: 0
        if header.node == base.node
        else (header.wall - header.monotonic) - (base.wall - base.monotonic)
        for rank, header in headers.items()
    }
    # ranks of another host must not be moved against each other: the first of them decides
    by_node = {header.node: shift[rank] for rank, header in sorted(headers.items(), reverse=True)}
    moved = [e._replace(time=e.time + by_node[headers[e.rank].node]) for e in events]
    start = min((event.time for event in moved), default=0)
    aligned = [event._replace(time=event.time - start) for event in moved]
    return sorted(aligned, key=lambda event: event[:2])
