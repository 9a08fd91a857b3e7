"""Accesses to a file that conflict, with neither Sync nor atomic mode between (MPI 4.1, 14.6.1).

Two ranks' accesses through one collective open conflict unless both are in atomic mode, or a Sync
of the file is between them: it is collective, so the how-manieth counts. A barrier alone orders
them, but need not make the one visible to the other. Of a read that was complete before the other
rank wrote nothing is said: there is nothing that it could miss. Through different opens the first
has to be closed, or synchronized, before the second is opened, or synchronized; messages say what
was before what. Of one rank two accesses conflict if the first is not complete when the second
begins.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from ompy.check.analysis.order import Order
from ompy.check.findings import Found
from ompy.check.logs import Record

PAIRS: Final = 50_000  # of accesses that are compared in one file; arbitrary: seconds
_WHY: Final = (
    "MPI 4.1, 14.6.1: what comes of conflicting accesses to a file is undefined, and what a rank "
    "has written need not be seen by others, unless the file is in atomic mode or both ranks call "
    "Sync between them"
)
_WORDS: Final = {"read": "reads", "write": "writes"}


class Access(NamedTuple):
    """One access of a rank.

    Attributes:
        rank, entry: of the job, and of the entry in its record.
        what: read or write.
        atomic: the file was in atomic mode.
        opened: the collective open: key of the file's communicator.
        syncs: how many there were before, since the open.
        begin, end: entries between which its effects are not known to others; end may be None.
        done: the entry at which it is complete.
    """

    rank: int
    entry: int
    site: int
    call: str
    what: str
    atomic: bool
    opened: str
    syncs: int
    begin: int
    end: int | None
    done: int
    path: str


Piece = tuple[int, int, Access]  # bytes of the file


def file_findings(records: Mapping[int, Record], order: Order) -> list[Found]:
    """The conflicting accesses to all files.

    Args:
        records: of all ranks.
        order: what happened before what, by messages and collectives.
    """
    if any(record.threads for record in records.values()):
        return []  # what ordered the calls is not known
    pieces: dict[tuple[str, str], list[Piece]] = defaultdict(list)
    names: dict[str, tuple[str, str]] = {}
    for record in records.values():
        for piece in _pieces(record, names):
            pieces[names[piece[2].opened]].append(piece)
    found: list[Found] = []
    for every in pieces.values():
        found += _conflicts(records, every, order)
    return found


def _pieces(record: Record, names: dict[str, tuple[str, str]]) -> Iterator[Piece]:
    """The bytes that a rank has accessed, by files.

    Args:
        record: of the rank.
        names: by collective open the file's path and identity, as the first rank has them: a path
            may be another file on another host, or later.
    """
    files: dict[int, tuple[str, str, int]] = {}  # by number: open, path, communicator
    over = _completions(record)
    for index, event in enumerate(record.events):
        if event[0] == "file":
            _, _, _, number, comm, path, identity = event
            known = record.comms.get(comm)
            if known is not None:
                opened = known.key or f"{record.rank}:{comm}"
                names.setdefault(opened, (path, identity))
                files[number] = (opened, path, comm)
        elif event[0] == "access" and event[3] in files and event[5]:
            yield from _of_access(record, index, event, files[event[3]], over)


class _Marks(NamedTuple):
    """Entries of a rank's record.

    Attributes:
        syncs: by communicator: where it was opened, synchronized and closed.
        done: by request: where it was complete.
    """

    syncs: dict[int, list[int]]
    done: dict[int, int]


def _completions(record: Record) -> _Marks:
    syncs: dict[int, list[int]] = defaultdict(list)
    done: dict[int, int] = {}
    for index, event in enumerate(record.events):
        if event[0] == "file":
            syncs[event[4]].append(index)
        elif event[0] == "coll" and event[4] in {"File.Sync", "File.Close"}:
            syncs[event[3]].append(index)
        elif event[0] == "wait":
            for request in event[4]:
                done.setdefault(request, index)
    return _Marks(syncs, done)


def _of_access(
    record: Record, index: int, event: tuple[Any, ...], file: tuple[str, str, int], marks: _Marks
) -> Iterator[Piece]:
    _, site, call, _, what, ranges, atomic, request = event
    opened, path, comm = file
    places = marks.syncs[comm]
    after = bisect_left(places, index)
    end = places[after] if after < len(places) else None
    done = marks.done.get(request, len(record.events)) if request else index
    access = Access(
        record.rank, index, site, call, what, bool(atomic), opened, after, places[after - 1], end,
        done, path,
    )  # fmt: skip
    for low, high in ranges:
        yield low, high, access


def _conflicts(records: Mapping[int, Record], pieces: list[Piece], order: Order) -> Iterator[Found]:
    told: set[tuple[tuple[int, int], ...]] = set()
    for low, high, one, other in _overlapping(pieces):
        key = tuple(sorted(((one.rank, one.site), (other.rank, other.site))))
        if key in told or _are_apart(one, other, order):
            continue
        told.add(key)
        yield _found(records, low, high, one, other)


def _overlapping(pieces: list[Piece]) -> Iterator[tuple[int, int, Access, Access]]:
    """Accesses to the same bytes of which one writes; those of a line to the same bytes once."""
    active: dict[tuple[int, str], list[Piece]] = defaultdict(list)
    left = PAIRS
    for low, high, access in _distinct(pieces):
        for (rank, what), others in active.items():
            if what == access.what == "read":
                continue
            others[:] = [each for each in others if each[1] > low]
            for _, end, other in others:
                if rank == access.rank and not _is_pending(other, access):
                    continue
                left -= 1
                if left < 0:
                    return
                yield low, min(high, end), other, access
        active[access.rank, access.what].append((low, high, access))


def _distinct(pieces: list[Piece]) -> list[Piece]:
    known: dict[Any, Piece] = {}
    for low, high, access in pieces:
        where = (access.opened, access.syncs, access.atomic, access.what)
        later = access.entry if access.done != access.entry else -1
        known.setdefault((low, high, access.rank, access.site, later, *where), (low, high, access))
    return sorted(known.values(), key=lambda piece: (piece[0], piece[2].rank, piece[2].entry))


def _is_pending(one: Access, other: Access) -> bool:
    """Whether of a rank's two accesses the earlier is under way when the later begins."""
    first, second = (one, other) if one.entry < other.entry else (other, one)
    return first.done > second.entry


def _are_apart(one: Access, other: Access, order: Order) -> bool:
    """Whether something is between two accesses that conflict."""
    if one.atomic and other.atomic:
        return True
    if one.rank == other.rank:
        return False
    if one.opened == other.opened:
        return one.syncs != other.syncs or _was_read_before(one, other, order)
    if not order.known:
        return True
    return _before(one, other, order) or _before(other, one, order)


def _before(one: Access, other: Access, order: Order) -> bool:
    return one.end is not None and order.before(one.rank, one.end, other.rank, other.begin)


def _was_read_before(one: Access, other: Access, order: Order) -> bool:
    """Whether one reads, and the other writes when that is over."""
    read, write = (one, other) if one.what == "read" else (other, one)
    if not order.known or read.what == write.what:
        return False
    return order.before(read.rank, read.done, write.rank, write.entry)


def _found(records: Mapping[int, Record], low: int, high: int, one: Access, other: Access) -> Found:
    first, second = sorted((one, other), key=lambda each: (each.what != "write", each.rank))
    name = os.path.basename(first.path)
    text = (
        f"rank {first.rank}'s {first.call} {_WORDS[first.what]} bytes {low} to {high} of {name} "
        f"while rank {second.rank}'s {second.call} {_WORDS[second.what]} them, and "
        f"{_missing(first, second)}. {_WHY}. {_remedy(first, second)}"
    )
    sites = tuple(records[each.rank].site(each.site, each.call) for each in (first, second))
    return Found("rma-race", text, sites)


def _missing(one: Access, other: Access) -> str:
    if one.rank == other.rank:
        return "nothing waits for the first"
    if one.opened != other.opened:
        return "nothing orders the end of the one before the beginning of the other"
    return "neither Sync nor atomic mode is between"


def _remedy(one: Access, other: Access) -> str:
    if one.rank == other.rank:
        return "Wait for the first"
    if one.opened != other.opened:
        return "Close it, or call Sync, and tell the other rank before that opens it"
    return "Call Sync, Barrier and Sync between them, or give each rank bytes of its own"
