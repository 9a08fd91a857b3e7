"""Records written by hand: what ranks would have written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ompy.check.analysis import findings_of
from ompy.check.findings import Found
from ompy.check.logs import Record

FILE = "program.py"
DOUBLES = ((("f8", 4),), 1)
WORLD = 1  # number of the communicator of all ranks


def record(rank: int, size: int, *events: tuple[Any, ...], ends: bool = True) -> Record:
    """The record of a rank of a job; each entry's site is a line of its own."""
    made = Record(rank)
    members = list(range(size))
    made.take_event(("comm", WORLD, "world", "MPI_COMM_WORLD", rank, members, members))
    for line, event in enumerate(events, 1):
        site = 100 * rank + line
        made.take_event(("site", site, FILE, site, "main"))
        made.take_event((event[0], site, *event[1:]) if event[0] in SITED else event)
    if ends:
        made.take_event(("end",))
    return made


SITED = frozenset({"send", "recv", "coll", "start", "awaits", "wait", "probe"})


def send(
    target: int, tag: int = 0, signature: Any = DOUBLES, mode: str = "standard", request: int = 0
) -> tuple[Any, ...]:
    """A rank sends."""
    return ("send", "comm.Send", WORLD, target, tag, signature, mode, request)


def recv(
    source: int,
    got: int | None,
    tag: int = 0,
    signature: Any = DOUBLES,
    request: int = 0,
    **more: Any,
) -> tuple[Any, ...]:
    """A rank receives, and gets the message of a source; None: the request tells later."""
    asked, digest = more.get("asked", False), more.get("digest", -1)
    what = None if got is None else (got, tag, 32, asked, digest)
    return ("recv", "comm.Recv", WORLD, source, tag, signature, request, what)


def wait(*requests: int) -> tuple[Any, ...]:
    """A rank waits for all of its requests."""
    return ("wait", "Request.Waitall", list(requests), list(requests), "all")


def coll(kind: str, root: int = -1, op: str = "", sends: Any = None, receives: Any = None) -> Any:
    """A collective call."""
    return ("coll", f"comm.{kind}", WORLD, kind, root, op, sends, receives, 0)


def found_in(*programs: Sequence[tuple[Any, ...]], **how: Any) -> list[Found]:
    """What is found in a job whose ranks have made these calls."""
    records: Mapping[int, Record] = {
        rank: record(rank, len(programs), *events, ends=how.get("ends", True))
        for rank, events in enumerate(programs)
    }
    return findings_of(records, how.get("deadlock"), went_well=how.get("went_well", True))
