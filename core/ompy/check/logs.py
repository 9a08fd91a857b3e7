"""Reads the records of a job's ranks."""

from __future__ import annotations

import marshal
import os
from pathlib import Path
from struct import unpack
from typing import Any, Final, NamedTuple

from ompy.check.record import AGAIN, EVENTS, HEADER, WORD, with_numbers

SUFFIX: Final = ".calls"
NUMBER: Final = 4  # arbitrary: bytes of a number in an entry that comes again


class Place(NamedTuple):
    """A line of the program."""

    file: str
    line: int
    function: str


class Comm(NamedTuple):
    """A communicator, as one of its members has it.

    Attributes:
        key: the same in all members; empty where members are of other jobs.
        name: for people.
        rank: of this process in its own group.
        members: ranks of the job that messages are for, by rank in the communicator.
        own: this process's group.
    """

    key: str
    name: str
    rank: int
    members: list[int]
    own: list[int]


class Record:
    """What one rank has written.

    Attributes:
        rank: of the job.
        events: entries in their order, sites and communicators left out.
        places: lines by number.
        made: where persistent requests were made, and by which call, by the number of their starts.
        comms: communicators by number.
        files: the program's own modules.
        complete: it began to finalize, and all was written.
        threads: several threads made calls: their order is not known.
    """

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.events: list[tuple[Any, ...]] = []
        self.places: dict[int, Place] = {}
        self.made: dict[int, tuple[int, str]] = {}
        self.comms: dict[int, Comm] = {}
        self.files: tuple[str, ...] = ()
        self.complete = False
        self.threads = False

    def take_event(self, event: tuple[Any, ...]) -> None:
        """Take an entry in."""
        match event:
            case ("site", number, file, line, function):
                self.places[number] = Place(file, line, function)
            case ("started", number, at, made, call):
                self.places[number] = self.places.get(at, Place("", 0, ""))
                self.made[number] = (made, call)
            case ("comm", number, *rest):
                self.comms[number] = Comm(*rest)
            case ("end",):
                self.complete = True
                self.events.append(event)
            case ("unsent", site, call):
                self._take_back("send", site, call)
            case ("files", names):
                self.files = tuple(names)
            case ("threads",):
                self.threads = True
            case ("cut",):
                self.complete = False
                self.events.append(event)
            case _:
                self.events.append(event)

    def _take_back(self, name: str, site: int, call: str) -> None:
        """Forget the last entry of a line: what it tells of has not been done."""
        for place in range(len(self.events) - 1, -1, -1):
            if self.events[place][:3] == (name, site, call):
                del self.events[place]
                return

    def site(self, number: int, call: str) -> dict[str, Any]:
        """A site as reports have it."""
        place = self.places.get(number, Place("", 0, ""))
        return {"rank": self.rank, "file": place.file, "line": place.line, "call": call}

    def sites(self, number: int, call: str) -> tuple[dict[str, Any], ...]:
        """A site, and behind that of a persistent request's start the one where it was made."""
        made = self.made.get(number)
        return (self.site(number, call), *([] if made is None else [self.site(*made)]))


def read_records(directory: str) -> dict[int, Record]:
    """The records of a folder, by rank; what cannot be read any further ends there."""
    found = {}
    for path in sorted(Path(directory).glob(f"rank-*{SUFFIX}")):
        number = path.name.removeprefix("rank-").removesuffix(SUFFIX)
        if number.isdecimal():
            found[int(number)] = read_record(path, int(number))
    return found


def read_record(path: str | os.PathLike[str], rank: int) -> Record:
    """One record."""
    record, data, at = Record(rank), Path(path).read_bytes(), 0
    shapes: dict[int, tuple[Any, ...]] = {}
    while at + HEADER <= len(data):
        size = int.from_bytes(data[at : at + HEADER], "little")
        begin, end = at + HEADER, at + HEADER + (size & ~AGAIN)
        if not size or end > len(data):
            break
        event = _again(data[begin:end], shapes) if size & AGAIN else _event(data[begin:end])
        if event is None:
            break
        if event[0] == "shape":
            shapes[event[1]] = event[2]
        else:
            record.take_event(event)
        at = -(-end // WORD) * WORD
    return record


def _event(data: bytes) -> tuple[Any, ...] | None:
    """An entry that is there as it is; None if it is damaged."""
    try:
        event = marshal.loads(data)  # noqa: S302 - our own ranks wrote it
    except (ValueError, EOFError, TypeError):
        return None
    return event if _is_whole(event) else None


def _again(data: bytes, shapes: dict[int, tuple[Any, ...]]) -> tuple[Any, ...] | None:
    """An entry of a shape; None if it is damaged."""
    count, rest = divmod(len(data), NUMBER)
    if rest or count < 3:
        return None
    shape, *requests = unpack(f"<{count}I", data)
    return None if shape not in shapes else with_numbers(shapes[shape], *requests)


def _is_whole(event: object) -> bool:
    if not isinstance(event, tuple) or not event or event[0] not in EVENTS:
        return False
    return len(event) == len(EVENTS[event[0]]) + 1
