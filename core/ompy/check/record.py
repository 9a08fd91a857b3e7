"""The call record of one rank: each call that can block or that matters later, with its line.

It is written through a mapping of a file: what was written is there whatever ends the process.
"""

from __future__ import annotations

import linecache
import marshal
import mmap
import os
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from struct import Struct
from threading import get_ident
from types import CodeType, FrameType
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
    # got is None where the request tells later: (source, tag, bytes, what is known, digest)
    "recv": ("site", "call", "comm", "source", "tag", "signature", "request", "got"),
    "got": ("request", "got"),
    "probe": ("site", "call", "comm", "source", "tag"),
    # requests waited for, those that are over; how: all, any or test
    "wait": ("site", "call", "requests", "done", "how"),
    "cancel": ("request",),
    # signatures: one for every rank, a list by rank, or None
    "coll": ("site", "call", "comm", "kind", "root", "op", "sends", "receives", "request"),
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
    "threads": (),  # several threads make calls: their order is not the entries'
    "cut": (),  # no more was written: the limit
    "end": (),  # the rank began to finalize
}
# what is known of a message received, as bits: the program asks who sent it, or knows; + adds it,
# and does not put it behind another one; it was too long, and so an error
ASKED: Final = 1
ADDS: Final = 2
REFUSED: Final = 4  # arbitrary: the next bit
CHUNK: Final = 1 << 20  # bytes by which the file grows; arbitrary
NEAR: Final = 4096  # lines found without comparing codes; arbitrary: more than a loop has
_LENGTH: Final = Struct("<I")
KEPT: Final = frozenset({"site", "started", "find", "end"})  # written beyond the limit, too
HEADER: Final = _LENGTH.size  # bytes before an entry: its length
OURS: Final = ("ompy", "ompy_components", "mpi4py")  # packages whose lines are not the program's


class Recorder:
    """Writes the record of a rank."""

    def __init__(self, path: str, limit: int) -> None:
        """Begin a new file.

        Args:
            path: its name.
            limit: entries at most.

        Raises:
            OSError: it cannot be written.
        """
        self._limit = limit
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._size = 0
        self._at = 0
        self._left = limit
        self._begin_sites()
        self._forked = False
        self._thread = get_ident()
        os.register_at_fork(after_in_child=self._fork)
        self._grow()

    def _fork(self) -> None:
        """A forked child is not the rank."""
        self._forked = True

    def begin_anew(self) -> None:
        """Forget what was written."""
        self._map.close()
        os.ftruncate(self._file, 0)
        self._size = self._at = 0
        self._left = self._limit
        self._begin_sites()
        self._thread = get_ident()
        self._grow()

    def _grow(self) -> None:
        self._size += CHUNK
        os.ftruncate(self._file, self._size)
        self._map = mmap.mmap(self._file, self._size)

    def write_event(self, event: tuple[Any, ...]) -> None:
        """Add an entry; beyond the limit only sites and findings."""
        if self._left <= 0 and event[0] not in KEPT:
            if not self._left:
                self._left = -1
                self._append(("cut",))
            return
        if self._thread and get_ident() != self._thread:
            self._thread = 0
            self._append(("threads",))
        self._left -= 1
        self._append(event)

    def _append(self, event: tuple[Any, ...]) -> None:
        if self._forked:
            return
        data = marshal.dumps(event)
        end = self._at + HEADER + len(data)
        while end + HEADER > self._size:
            self._grow()
        at, self._at = self._at, end
        self._map[at + HEADER : end] = data
        _LENGTH.pack_into(self._map, at, len(data))

    def _begin_sites(self) -> None:
        self._sites: dict[tuple[CodeType | int, int], int] = {}
        # the same by the codes' ids: the hash of a code is that of all its constants
        self._near: dict[tuple[int, int], tuple[CodeType, int]] = {}

    def site(self, frame: FrameType | None) -> int:
        """The number of the innermost line of the program; 0 if there is none."""
        frame = program_frame(frame)
        if frame is None:
            return 0
        code = frame.f_code
        place = (id(code), frame.f_lasti)
        near = self._near.get(place)
        if near is not None:  # it is that code, which is kept here
            return near[1]
        if len(self._near) >= NEAR:
            self._near.clear()
        number = self._number_of(frame)
        self._near[place] = (code, number)
        return number

    def _number_of(self, frame: FrameType) -> int:
        key = (frame.f_code, frame.f_lasti)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = len(self._sites) + 1
            code = frame.f_code
            name = file_name(code.co_filename)
            self.write_event(("site", found, name, frame.f_lineno, code.co_name))
        return found

    def start_site(self, at: int, made: int, call: str) -> int:
        """The number of two lines: where a persistent request is started, and where it was made.

        Args:
            at: of the start.
            made: where it was made.
            call: that made it.
        """
        found = self._sites.get((at, made))
        if found is None:
            found = self._sites[at, made] = len(self._sites) + 1
            self.write_event(("started", found, at, made, call))
        return found


class ToldRecorder(Recorder):
    """The record of a rank whose world is explored: it goes to who conducts that."""

    def __init__(self, tell: Callable[[tuple[Any, ...]], object], limit: int) -> None:
        """Begin one.

        Args:
            tell: takes an entry.
            limit: entries at most.
        """
        self._tell = tell
        self._limit = self._left = limit
        self._begin_sites()
        self._thread = get_ident()

    def begin_anew(self) -> None:
        """There is no second record in such a world."""
        raise NotImplementedError("the worlds of a notebook are not explored")

    def _append(self, event: tuple[Any, ...]) -> None:
        self._tell(event)


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


def program_frame(frame: FrameType | None) -> FrameType | None:
    """The innermost frame of the program's own code; None if there is none."""
    while frame is not None and _is_our_name(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return frame


def program_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """All of them, outwards."""
    while (frame := program_frame(frame)) is not None:
        yield frame
        frame = frame.f_back
