"""What is in the call record of a rank: each call that can block or that matters later."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Hashable, Iterator
from functools import cache
from types import FrameType
from typing import Any, Final

# what the fields of an entry are, behind its name; sites, comms and requests are numbers
EVENTS: Final = {
    "site": ("site", "file", "line", "function"),
    # a site that is two lines: where a persistent request was started, and made, by which call
    "started": ("site", "at", "made", "call"),
    # ranks of the job: those that messages are for, and this process's group
    "comm": ("comm", "key", "name", "rank", "members", "own"),
    # request 0: the call waits
    "send": ("site", "call", "comm", "target", "tag", "signature", "mode", "request"),
    # got is None where the request tells later: (source, tag, bytes, what is known,
    # digest, digests of its parts by index, key or attribute)
    # the last send of a line was refused: it was none
    "unsent": ("site", "call"),
    "recv": ("site", "call", "comm", "source", "tag", "signature", "request", "got"),
    "got": ("request", "got"),
    # a message that a matched probe took (its request's `recv`) is received; got as there, or None
    "taken": ("request", "site", "call", "signature", "got"),
    "probe": ("site", "call", "comm", "source", "tag"),
    # requests waited for, those that are over; how: all, any or test
    "wait": ("site", "call", "requests", "done", "how"),
    "cancel": ("request",),
    # signatures: one for every rank, a list by rank, or None; of neighbours pairs of rank and
    # signature, edge by edge
    "coll": ("site", "call", "comm", "kind", "root", "op", "sends", "receives", "request"),
    # a persistent collective call is started; prepared: the request of the `coll` that made it
    "start": ("site", "call", "prepared", "request"),
    # such calls are about to be waited for: a `wait` is written when it is over
    "awaits": ("site", "call", "requests"),
    "win": ("site", "call", "window", "key", "comm", "rank"),
    # ranges of bytes in the target's part: (begin, end); what: put, get, acc, load or store
    "rma": ("site", "call", "window", "what", "target", "ranges", "op", "request"),
    # fence, lock, unlock, lock_all, unlock_all, post, start, complete, wait, flush, free
    "sync": ("site", "call", "window", "what", "targets", "mode"),
    # a file of its communicator; identity: of what the path leads to, empty where not known
    "file": ("site", "call", "file", "comm", "path", "identity"),
    # ranges of bytes of the file, None where not known; what: read or write
    "access": ("site", "call", "file", "what", "ranges", "atomic", "request"),
    # what all members of a collective call say alike: (name, value, text) each
    "said": ("site", "call", "comm", "kind", "values"),
    "find": ("class", "message", "sites"),
    "raised": ("class", "message", "sites"),  # a call refused something; the program may go on
    "files": ("names",),  # the program's own modules, as far as they were imported
    "threads": (),  # several threads make calls: their order is not the entries'
    "cut": (),  # no more was written: the limit
    "end": (),  # the rank began to finalize
    "shape": ("shape", "event"),  # an entry that comes again, by its number
}
# what is known of a message received, as bits: the program knows who sent it; + adds it,
# and does not put it behind another one; it was too long, and so an error
ASKED: Final = 1
ADDS: Final = 2
REFUSED: Final = 4  # arbitrary: the next bit
NAMED: Final = 8  # arbitrary: the next one: one element of it is the sender's rank; which one:
NAMED_AT: Final = 5  # arbitrary: the bits from here on
BY_STATUS: Final = 16  # arbitrary: the bit left: a Status was given, which the program may ask
MET: Final = "~"  # begins the key of a communicator of several worlds; arbitrary: no digit
KEPT: Final = frozenset({"site", "started", "find", "end"})  # written beyond the limit, too
HEADER: Final = 4  # bytes before an entry: its length
WORD: Final = 8  # bytes; an entry begins at a multiple of them
AGAIN: Final = 1 << 31  # in the length of an entry that is one of a shape: README.md has its form
# where the number of a request is in an entry, by its name
_REQUESTS: Final = {"send": 8, "recv": 7, "got": 1, "coll": 9, "start": 4}
_STANDARD: Final = (os.path.dirname(os.__file__) + os.sep, "<frozen ")
OURS: Final = ("ompy", "ompy_components", "mpi4py")  # packages whose lines are not the program's


def with_numbers(event: tuple[Any, ...], *requests: int) -> tuple[Any, ...]:
    """An entry that comes again, with the numbers of its requests.

    Args:
        event: as its shape has it.
        requests: the numbers; 0 for none.
    """
    numbers = [number for number in requests if number]
    if not numbers:
        return event
    if event[0] == "wait":
        return (*event[:3], numbers, list(numbers), event[5])
    if event[0] == "awaits":
        return (*event[:3], numbers)
    place = _REQUESTS[event[0]]
    return (*event[:place], numbers[0], *event[place + 1 :])


def file_name(name: str) -> str:
    """The whole path of a file; a name whose lines are in memory alone, as a cell's, as it is."""
    known = linecache.cache.get(name)
    in_memory = known is not None and (len(known) == 1 or known[1] is None)
    return name if in_memory and not os.path.exists(name) else os.path.abspath(name)


def is_ours(frame: FrameType) -> bool:
    """Whether a frame runs code of ompy."""
    return _is_our_name(frame.f_globals.get("__name__", ""))


@cache
def _is_our_name(name: Hashable) -> bool:
    return isinstance(name, str) and name.partition(".")[0] in OURS


@cache
def _is_no_program_name(name: Hashable) -> bool:
    """Whether a module is ours, or has a name of the standard library."""
    known = isinstance(name, str) and name.partition(".")[0] in sys.stdlib_module_names
    return known or _is_our_name(name)


def program_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program's own code; None if there is none.

    The standard library calls what the program gave it, as `ExitStack` does: its frames count only
    where the program has none, as in a thread whose target is a method of MPI.
    """
    standard = None
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if not _is_no_program_name(name):
            return frame
        if not _is_our_name(name):
            if not frame.f_code.co_filename.startswith(_STANDARD):
                return frame  # a module of the program that is called so
            standard = standard or frame
        frame = frame.f_back
    return standard


def program_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """All of them, outwards."""
    while (frame := program_frame(frame)) is not None:
        yield frame
        frame = frame.f_back
