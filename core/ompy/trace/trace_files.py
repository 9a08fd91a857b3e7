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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ompy import outputs
from ompy.trace import reading
from ompy.trace.reading import FORMAT, VERSION, WIRE, DamageError, Ended, RankHeader
from ompy.trace.sink import Event

JOB: Final = "job.json"
JOB_MAX: Final = 1 << 28  # bytes; arbitrary: more than a job of a million ranks has to say
KILLED: Final = "killed"
DAMAGED: Final = "the file is damaged"  # how a trace ended, as far as it can be read
_RANK_FILE: Final = re.compile(r"rank-(0|[1-9][0-9]{0,9})\.jsonl")
_DUMPS: Final = json.JSONEncoder(separators=(",", ":"), default=str).encode


__all__ = [
    "FORMAT",
    "VERSION",
    "Ended",
    "JobTrace",
    "RankHeader",
    "TraceError",
    "TraceWriter",
    "align",
    "prepare_directory",
    "rank_file",
    "read_trace",
    "write_job",
]


class TraceError(Exception):
    """A directory holds no trace, or one that cannot be read; the text says what to do."""


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


def prepare_directory(directory: str) -> None:
    """Make a directory ready for a job's trace: an earlier one in it goes.

    Raises:
        OSError: it cannot be made or written.
    """
    outputs.clear_directory(directory, lambda name: name == JOB or _RANK_FILE.fullmatch(name))


def write_job(directory: str, facts: Mapping[str, Any]) -> None:
    """Write the job's facts, all at once.

    Raises:
        OSError: they cannot be written; what was there before still is.
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **facts}, indent=1) + "\n"
    outputs.replace_text(directory, JOB, text)


class JobTrace(NamedTuple):
    """A trace that was read.

    Attributes:
        job: the facts of `job.json`; empty when there is none.
        headers: by rank.
        ends: how each rank's trace ended, by rank.
        events: of all ranks in the order of their times, which are aligned: nanoseconds from
            the first event.
        damage: what cannot be read, a sentence for each file.
        wall: nanoseconds of the wall clock at time 0, as the lowest rank's host has it; 0 where
            nobody knows.
        wire: what was sent, where that was kept (`ompy.net.capture`); in the order of times too.
    """

    job: dict[str, Any]
    headers: dict[int, RankHeader]
    ends: dict[int, Ended]
    events: list[Event]
    damage: Sequence[str] = ()
    wall: int = 0
    wire: Sequence[Event] = ()


def read_trace(directory: str) -> JobTrace:
    """Read a trace and align its clocks. Of a damaged file it is what stands before the damage.

    Raises:
        TraceError: there is none, or nothing of it can be read.
    """
    try:
        names = sorted(os.listdir(directory))
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        made = f"; ompy-run --trace {directory} ... writes one" * isinstance(
            problem, FileNotFoundError
        )
        raise TraceError(f"{directory} cannot be read: {why}{made}") from None
    ranks = [int(match[1]) for name in names if (match := _RANK_FILE.fullmatch(name))]
    if not ranks:
        raise TraceError(
            f"{directory} holds no trace: there is no file rank-0.jsonl. "
            f"ompy-run --trace {directory} ... writes one"
        )
    found = JobTrace({}, {}, {}, [])
    damage: list[str] = []
    for rank in sorted(ranks):
        _read_rank(directory, rank, found, damage)
    if not found.headers:
        raise TraceError(damage[0])
    job = _read_job(directory, damage)
    moved, start = _on_one_clock(found.headers, found.events)
    base = found.headers[min(found.headers)]
    wall = base.wall - base.monotonic + start
    wire = [event for event in moved if event.layer == WIRE]
    if wire:
        moved = [event for event in moved if event.layer != WIRE]
    return found._replace(job=job, events=moved, damage=damage, wall=wall, wire=wire)


def _read_job(directory: str, damage: list[str]) -> dict[str, Any]:
    path = os.path.join(directory, JOB)
    try:
        with reading.open_regular(path) as file:
            # read() makes room for all that it may read at once
            text = file.read(min(JOB_MAX, os.fstat(file.fileno()).st_size))
        facts = json.loads(text)
    except FileNotFoundError:
        return {}
    except OSError as problem:
        damage.append(f"{path} cannot be read: {problem.strerror}")
        return {}
    except (ValueError, RecursionError) as problem:
        damage.append(f"{path} is damaged: {problem}")
        return {}
    if isinstance(facts, dict):
        return facts
    damage.append(f"{path} is damaged: it does not hold the facts of a job")
    return {}


def _read_rank(directory: str, rank: int, into: JobTrace, damage: list[str]) -> None:
    """A rank's file. What a killed rank has half written at its end is left out."""
    path = rank_file(directory, rank)
    number, reason = 0, KILLED
    try:
        with reading.open_regular(path) as file:
            for number, line in enumerate(reading.whole_lines(file), 1):  # noqa: B007 - for the error
                _take(line, rank, into)
    except OSError as problem:
        damage.append(f"{path} cannot be read: {problem.strerror}")
    except DamageError as problem:
        damage.append(f"{path}:{max(number, 1)} is damaged: {problem}")
        reason = DAMAGED
    if rank in into.headers:
        into.ends.setdefault(rank, Ended(reason))
    elif not damage:
        damage.append(f"{path} is damaged: there is no whole line in it")


def _take(line: bytes, rank: int, into: JobTrace) -> None:
    """One line of a rank's file. Nothing may come behind its end.

    Raises:
        DamageError: it is none.
    """
    value = reading.parse_json(line)
    if rank not in into.headers:
        into.headers[rank] = reading.header_of(value, rank)
    elif rank in into.ends:
        raise DamageError("it stands behind the end")
    elif isinstance(value, dict):
        into.ends[rank] = reading.end_of(value)
    else:
        into.events.append(reading.event_of(value, rank))


def align(headers: Mapping[int, RankHeader], events: Iterable[Event]) -> list[Event]:
    """Events with all times on one clock, from the first on, in order; ties by rank.

    The clock is that of the lowest rank's host. Ranks of one host share it; another host's
    differs by what the wall clocks said at wire-up, so it is as good as the hosts' wall clocks.
    """
    return _on_one_clock(headers, events)[0]


def _on_one_clock(
    headers: Mapping[int, RankHeader], events: Iterable[Event]
) -> tuple[list[Event], int]:
    """The events as `align` has them, and when the first was, on the base's clock."""
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
    return sorted(aligned, key=lambda event: event[:2]), start
