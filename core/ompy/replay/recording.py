"""The recording of one rank, as a replay needs it. Pure but for reading the file."""

from __future__ import annotations

import mmap
import os
from typing import Final, NamedTuple

from ompy.replay.data_log import Streams
from ompy.replay.entries import (
    DATA,
    EVENTS,
    HEADER_SIZE,
    Entries,
    Header,
    RecordingError,
    read_entries,
)
from ompy.replay.events import (
    CALLS,
    HOW,
    QUESTIONS,
    Answered,
    Cancelled,
    Comm,
    Completed,
    Ended,
    Entry,
    Event,
    File,
    Locked,
    Looked,
    Matched,
    Note,
    NothingFound,
    NotYet,
    Posted,
    Raised,
    Returned,
    Site,
    Thread,
    Time,
    Turn,
    Unlocked,
    counts_on,
    entry_of,
    is_event,
)
from ompy.replay.job_file import RecordedJob, file_of

ANYBODY: Final = "any source"
_PLAIN: Final = {  # of events that are always the same, in words
    Time: "Wtime",
    Returned: "the end of a wait",
    Turn: "another thread's call",
    Ended: "Finalize",
}


class Place(NamedTuple):
    """A line of the program; `check` is of its file."""

    file: str
    line: int
    function: str
    check: int


class RankRecording:
    """What one rank was told.

    Attributes:
        rank: of the job.
        size: ranks of its world.
        job: names it.
        events: in their order; those that go on with the one before are one with it.
        places: of the program, by site.
        comms: by number.
        matches: of nonblocking receives, by number.
        cancelled: numbers of receives that were cancelled in time.
        notes: of what cannot be replayed.
        threads: names of those that call MPI beside the main one, by number.
        complete: the rank has finalized.
    """

    def __init__(self, entries: Entries, name: str) -> None:
        """Take the entries of an events file in.

        Raises:
            RecordingError: there is one that this version does not know.
        """
        self.rank, self.size = entries.header.rank, entries.header.size
        self.job = entries.header.job
        self.events: list[Event] = []
        self.places: dict[int, Place] = {}
        self.comms: dict[int, Comm] = {}
        self.matches: dict[int, Matched] = {}
        self.cancelled: set[int] = set()
        self.notes: list[Note] = []
        self.threads: dict[int, str] = {}
        self.complete = entries.complete
        files: dict[int, File] = {}
        for body in entries.bodies:
            try:
                self._take_entry(entry_of(body), files)
            except RecordingError as problem:
                raise RecordingError(f"{name}: {problem}") from None

    def _take_entry(self, entry: Entry, files: dict[int, File]) -> None:
        match entry:
            case File():
                files[entry.number] = entry
            case Site():
                file = files.get(entry.file, File(0, 0, ""))
                self.places[entry.number] = Place(file.name, entry.line, entry.function, file.check)
            case Comm():
                self.comms[entry.number] = entry
            case Matched():
                self.matches[entry.number] = entry
            case Note():
                self.notes.append(entry)
            case Thread():
                self.threads[entry.number] = entry.path
            case _:
                assert is_event(entry), "the others are above"
                if isinstance(entry, Cancelled) and entry.done:
                    self.cancelled.add(entry.number)
                self._add_event(entry)

    def _add_event(self, event: Event) -> None:
        last = self.events[-1] if self.events else None
        if isinstance(last, NothingFound | NotYet) and counts_on(last, event):
            assert isinstance(event, NothingFound | NotYet), "it counts"
            self.events[-1] = last._replace(times=last.times + event.times)
        else:
            self.events.append(event)

    def place_of_site(self, site: int) -> Place:
        """A line of the program."""
        return self.places.get(site, Place("", 0, "", 0))

    def said_of(self, event: Event) -> str:
        """What an event is, in words, with what the program was told."""
        of = (
            self.comms.get(event.comm)
            if isinstance(event, Looked | NothingFound | Posted)
            else None
        )
        asked = f"{asked_of(event)}{f' in {of.name}' if of is not None else ''}"
        if isinstance(event, Turn):
            return f"thread {self.threads.get(event.thread, '?')} goes on"
        told = self._told_of(event)
        return f"{asked} -> {told}" if told else asked

    def _told_of(self, event: Event) -> str:
        """What the program was told."""
        told = ""
        match event:
            case Looked():
                told = _message(event)
            case NothingFound() | NotYet():
                told = f"no, {event.times} times" if event.times > 1 else "no"
            case Posted():
                got = self.matches.get(event.number)
                told = "nothing" if got is None else _message(got)
            case Cancelled():
                told = "cancelled" if event.done else "too late"
            case Completed():
                places = ", ".join(map(str, event.places))
                told = f"place {places}" if places else "yes"
            case Answered():
                told = f"error: {event.text}" if event.code else event.text
            case Time():
                told = f"{event.seconds:.9f}"
        return told


def _message(got: Looked | Matched) -> str:
    return f"rank {got.source}, tag {got.tag}, {got.length} bytes"


def asked_of(event: Event) -> str:
    """What the program has asked, in words."""
    asked = _PLAIN.get(type(event), "")
    match event:
        case Looked() | NothingFound():
            asked = f"{HOW[event.how]} from {_wanted(event.wanted_source, event.wanted_tag)}"
        case Posted():
            asked = f"Irecv from {_wanted(event.wanted_source, event.wanted_tag)}"
        case Cancelled():
            asked = "Cancel"
        case Completed() | NotYet() if CALLS[event.call] == "Parrived":
            asked = f"Parrived of partition {event.requests}"
        case Completed() | NotYet():
            many = f" of {event.requests} requests" if event.requests != 1 else ""
            asked = f"{CALLS[event.call]}{many}"
        case Locked():
            asked = f"{'' if event.exclusive else 'shared '}lock of rank {event.target}'s memory"
        case Unlocked():
            asked = f"unlock of rank {event.target}'s memory"
        case Answered():
            asked = f"the launcher's answer to {QUESTIONS[event.question]}"
        case Raised():
            asked = f"its end by {event.what}"
    return asked


def _wanted(source: int, tag: int) -> str:
    of = ANYBODY if source < 0 else f"rank {source}"
    return f"{of}, {'any tag' if tag < 0 else f'tag {tag}'}"


def read_rank(recorded: RecordedJob, rank: int) -> RankRecording:
    """The events of a rank.

    Raises:
        RecordingError: there are none, or they are damaged, or of another job.
    """
    found = _read_file(recorded, rank, EVENTS)
    return RankRecording(found, file_of(recorded.directory, rank, EVENTS))


def read_streams(recorded: RecordedJob, rank: int) -> Streams:
    """The messages that a rank received.

    Raises:
        RecordingError: there are none, or they are damaged, or of another job.
    """
    if not recorded.data:
        raise RecordingError(
            f"{recorded.directory}: it has no received bytes, which a rank alone needs: "
            "record with --record-data"
        )
    entries = _read_file(recorded, rank, DATA)
    return Streams(entries.bodies, file_of(recorded.directory, rank, DATA))


def _read_file(recorded: RecordedJob, rank: int, kind: int) -> Entries:
    """A file of a rank. One that was killed before it wrote any has no entries.

    Raises:
        RecordingError: it cannot be read, is damaged, or of another rank or job.
    """
    path = file_of(recorded.directory, rank, kind)
    header = Header(kind, rank, recorded.size, bytes.fromhex(recorded.job.job_id))
    data = memoryview(b"")
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size:
                data = memoryview(mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ))
    except FileNotFoundError as problem:
        if recorded.exit_code == 0:
            raise RecordingError(f"{path}: {problem.strerror}") from None
    except OSError as problem:
        raise RecordingError(f"{path}: {problem.strerror}") from None
    if recorded.exit_code != 0 and not any(data[:HEADER_SIZE]):
        return Entries(header, [], complete=False)
    found = read_entries(data, path)
    if found.header.kind != kind:
        raise RecordingError(f"{path}: it is a file of another kind")
    if (found.header.rank, found.header.job) != (rank, header.job):
        raise RecordingError(f"{path}: it is of another rank, or of another job")
    return found
