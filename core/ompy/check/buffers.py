"""Memory of pending operations: nobody may write what is being sent, nor touch what is received.

Three ways to know: a copy or a checksum of what is sent, at the beginning and when it is complete;
NumPy arrays that are not writeable meanwhile, so that the guilty line itself raises; and the lines
of the program that run meanwhile (`lines.py`).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import adler32

from ompy.check.lines import LineWatch, Watched
from ompy.check.record import program_frames
from ompy.data.message import Blocks
from ompy.mpi.buffers.addresses import address_of
from ompy.mpi.buffers.common_forms import says_in_place
from ompy.mpi.buffers.spec import message

if TYPE_CHECKING:
    from types import FrameType

    from ompy.check.checker import Checker
    from ompy.check.under_way import Entry

RUNS: Final = 4096  # ranges of one message; arbitrary: of what has more nothing is known
LARGEST: Final = 1 << 20  # bytes of an element with gaps; arbitrary, likewise
OWNING: Final = frozenset({bytearray, bytes, array})  # objects with memory of their own
KEPT: Final[int] = 1 << 18  # bytes of a message that are copied; arbitrary: faster than a checksum
FRAMES: Final = 8  # callers that are watched; arbitrary
_WHY: Final = (
    "MPI 4.1, 3.7.2: the memory of a pending operation belongs to MPI until the operation is "
    "complete; wait for it first, or use other memory"
)
_WHY_IN_FILES: Final = (
    "MPI 4.1, 14.4.1 and 14.4.5: the memory of an access to a file belongs to MPI until the access "
    "is complete; wait for it, or end it, first, or use other memory"
)
_WHY_IN_WINDOWS: Final = (
    "MPI 4.1, 12.3: the buffer of an access to a window belongs to MPI until the access is "
    "complete at its origin, by the epoch's end, a flush, or its request; synchronize first, or "
    "use other memory"
)


class Region(NamedTuple):
    """The memory of a message: a view, and ranges of bytes in it.

    Attributes:
        view: the memory.
        base: its address.
        runs: (begin, end) in it.
    """

    view: memoryview
    base: int
    runs: tuple[tuple[int, int], ...]

    def contents(self) -> bytes | int:
        """What is in it, to be compared; of what is large a checksum."""
        if len(self.runs) == 1 and self.runs[0][1] - self.runs[0][0] <= KEPT:
            begin, end = self.runs[0]
            return self.view[begin:end].tobytes()
        found = 0
        for begin, end in self.runs:
            found = adler32(self.view[begin:end], found)
        return found

    def overlaps(self, other: Region) -> bool:
        """Whether a byte belongs to both."""
        if not self.runs or not other.runs:
            return False
        if len(self.runs) == len(other.runs) == 1:
            (begin, end), (first, last) = self.runs[0], other.runs[0]
            return self.base + begin < other.base + last and other.base + first < self.base + end
        ours, theirs = self._places(), other._places()
        if ours[-1][1] <= theirs[0][0] or theirs[-1][1] <= ours[0][0]:
            return False
        left = right = 0
        while left < len(ours) and right < len(theirs):
            if ours[left][1] <= theirs[right][0]:
                left += 1
            elif theirs[right][1] <= ours[left][0]:
                right += 1
            else:
                return True
        return False

    def _places(self) -> list[tuple[int, int]]:
        return sorted((self.base + begin, self.base + end) for begin, end in self.runs)


class Parts(NamedTuple):
    """A buffer of a collective call, given as a list: it has a part for each member.

    Attributes:
        spec: as the program gave it.
        blocks: reads it: `even_blocks` and its like.
        ranks: how many parts there are.
    """

    spec: Any
    blocks: Callable[[Any, bool, int], Any]
    ranks: int


def holder_of(spec: Any) -> Any:
    """The object that has the memory of a message."""
    spec = spec.spec if isinstance(spec, Parts) else spec
    return spec[0] if isinstance(spec, (list, tuple)) and spec else spec


def owns(spec: Any) -> bool:
    """Whether all of a message's memory is one object's own."""
    return type(spec) in OWNING or (hasattr(spec, "dtype") and spec.base is None)


def region_of(spec: Any) -> Region | None:
    """The memory of a message; None where that is not known, or there is none."""
    if says_in_place(spec):
        return None
    try:
        if type(spec) in OWNING and len(spec):
            view = memoryview(spec).cast("B")
            return Region(view, address_of(view), ((0, len(view)),))
        flags = getattr(spec, "flags", None)
        if flags is not None and flags.c_contiguous and spec.nbytes:
            view = memoryview(spec).cast("B")
            return Region(view, spec.__array_interface__["data"][0], ((0, spec.nbytes),))
        return _region_of_parts(spec) if isinstance(spec, Parts) else _region_of_message(spec)
    except Exception:
        return None  # the call itself says what is wrong


def _region_of_message(spec: Any) -> Region | None:
    found = message(spec, writable=False).message
    memory, origin, layout, count = found.memory, found.origin, found.layout, found.count
    runs = _runs(origin, layout, count)
    return Region(memoryview(memory), address_of(memory), runs) if runs else None


def _region_of_parts(parts: Parts) -> Region | None:
    if says_in_place(parts.spec):
        return None
    found = parts.blocks(parts.spec, False, parts.ranks)
    blocks: Blocks = found if isinstance(found, Blocks) else found.blocks
    runs: list[tuple[int, int]] = []
    for origin, layout, count in zip(blocks.origins, blocks.layouts, blocks.counts, strict=True):
        part = _runs(origin, layout, count)
        if part is None or len(runs) + len(part) > RUNS:
            return None
        runs += part
    memory = blocks.memory
    return Region(memoryview(memory), address_of(memory), _joined(runs)) if runs else None


def _runs(origin: int, layout: Any, count: int) -> tuple[tuple[int, int], ...] | None:
    """Ranges of some elements; None where there are too many."""
    if not count or not layout.size:
        return ()
    if layout.contiguous:
        return ((origin, origin + count * layout.size),)
    if layout.size > LARGEST or count * len(layout.blocks) > RUNS:
        return None
    starts = [origin + place * layout.extent for place in range(count)]
    return tuple((start + at, start + at + size) for start in starts for at, size in layout.blocks)


def _joined(runs: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same bytes in order, without two ranges that touch."""
    found: list[tuple[int, int]] = []
    for begin, end in sorted(runs):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return tuple(found)


def is_whole(array: Any, region: Region) -> bool:
    """Whether a message is all of what a name stands for: else other parts of that are free."""
    if type(array) in OWNING and len(region.runs) == 1:
        return region.runs[0] == (0, len(region.view))
    try:
        return memoryview(array).nbytes == sum(end - begin for begin, end in region.runs)
    except (TypeError, BufferError, ValueError):
        return False


class Pending(NamedTuple):
    """A message under way.

    Attributes:
        entry: its request.
        at, call: where it was begun.
        region: its memory.
        writes: it is received into.
        before: what is sent, or its checksum.
        locked: the array that is not writeable meanwhile, or None.
        watched: names whose lines are looked at.
    """

    entry: Entry
    at: int
    call: str
    region: Region
    writes: bool
    before: bytes | int
    locked: Any
    watched: tuple[Watched, ...]

    @property
    def of_window(self) -> bool:
        """Whether it is an access to a window."""
        return self.entry.kind in {"access", "rma"}

    @property
    def why(self) -> str:
        """What the standard says."""
        if self.entry.kind == "file":
            return _WHY_IN_FILES
        return _WHY_IN_WINDOWS if self.of_window else _WHY

    @property
    def does(self) -> str:
        """What it does with its memory."""
        if self.entry.kind == "file":
            return "reads into it" if self.writes else "writes it"
        return "receives into it" if self.writes else "sends it"


class Buffers:
    """The memory that a rank's pending operations use.

    Attributes:
        lines: watches the lines that name such memory.
        pending: messages under way; the list stays the same one.
    """

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self.pending: list[Pending] = []
        self.lines = LineWatch()
        self._locked: dict[int, tuple[Any, int]] = {}
        self._told: set[tuple[int, int]] = set()

    @property
    def busy(self) -> bool:
        """Whether any memory is in use."""
        return bool(self.pending)

    def begin_use(
        self, entry: Entry, spec: Any, *, writes: bool, before: Any = None, watched: bool = True
    ) -> None:
        """An operation uses memory from now on.

        Args:
            entry: the operation.
            spec: the memory, as the program gave it.
            writes: it receives into it.
            before: what is sent, if it was begun earlier.
            watched: lines that name it are looked at.
        """
        region = region_of(spec)
        if region is None:
            return
        memory = holder_of(spec)
        part = None if is_whole(memory, region) else region
        names = watched and (part is None or hasattr(memory, "dtype"))
        lines = self._watch(entry, memory, writes, part) if names else ()
        locked = None if writes else self._lock(memory, region)
        if before is None:
            before = 0 if writes else region.contents()
        self.pending.append(
            Pending(entry, entry.at, entry.call, region, writes, before, locked, lines)
        )

    def used(self, at: int, call: str, spec: Any, *, writes: bool) -> None:
        """A call uses memory now: not that of a pending receive, and if it writes of none."""
        if not self.pending or spec is None:
            return
        region = region_of(spec)
        if region is None:
            return
        for pending in self.pending:
            if (writes or pending.writes) and pending.region.overlaps(region):
                words = ("reads", "writes") if call.startswith("file.") else ("receives", "sends")
                does = f"{words[0]} into" if writes else f"{words[1]} from"
                text = f"{call} {does} memory while {pending.call} {pending.does}. {pending.why}"
                self._find(text, at, call, pending)

    def compare(self, at: int, call: str, sends: Any, receives: Any) -> None:
        """A call sends from one buffer and receives into another: they may not overlap."""
        if sends is not receives and owns(sends) and owns(receives):
            return
        ours, theirs = region_of(sends), region_of(receives)
        if ours is not None and theirs is not None and ours.overlaps(theirs):
            text = (
                f"{call} sends from memory that it receives into. MPI 4.1, 6.2: buffers may not "
                "overlap; MPI.IN_PLACE, or Sendrecv_replace, is for that"
            )
            self._checker.add_finding("invalid-argument", text, (at, call))

    def end_use(self, entry: Entry, *, quietly: bool = False) -> None:
        """An operation is complete: its memory is free."""
        if not self.pending:
            return
        for pending in [each for each in self.pending if each.entry is entry]:
            self.pending.remove(pending)
            for watched in pending.watched:
                self.lines.unwatch(watched)
            if pending.locked is not None:
                self._checker.leaves(pending)
            self._unlock(pending.locked)
            changed = not pending.writes and pending.region.contents() != pending.before
            if changed and not quietly and (pending.at, pending.at) not in self._told:
                does = pending.does.removesuffix(" it")
                text = (
                    f"what {pending.call} {does} was overwritten before the operation was "
                    f"complete. {pending.why}"
                )
                self._find(text, pending.at, pending.call, pending)

    def forget_all(self) -> None:
        """All memory is free, and nothing has been told."""
        for entry in [pending.entry for pending in self.pending]:
            self.end_use(entry, quietly=True)
        self._told.clear()

    # NumPy arrays

    def _lock(self, array: Any, region: Region) -> Any:
        """Make an array that is sent whole not writeable; it, or None."""
        flags = getattr(array, "flags", None)
        if flags is None or not hasattr(flags, "writeable"):
            return None
        known = self._locked.get(id(array))
        if known is not None:
            self._locked[id(array)] = (array, known[1] + 1)
            return array
        if not flags.writeable or not is_whole(array, region):
            return None
        flags.writeable = False
        self._locked[id(array)] = (array, 1)
        return array

    def _unlock(self, array: Any) -> None:
        if array is None:
            return
        _, count = self._locked[id(array)]
        if count > 1:
            self._locked[id(array)] = (array, count - 1)
            return
        del self._locked[id(array)]
        try:
            array.flags.writeable = True
        except ValueError:
            return  # its base was made read-only meanwhile, by the program

    def has_told(self, at: int) -> bool:
        """Whether a line is known to use memory of a pending operation."""
        return any(site == at for site, _ in self._told)

    def written_while_locked(self, site: int, sent: Pending | None = None) -> None:
        """A line has tried to write an array that is being sent: which, or any."""
        for pending in self.pending if sent is None else [sent]:
            if pending.locked is not None:
                text = f"an array is written while {pending.call} {pending.does}. {pending.why}"
                self._find(text, site, "", pending)
                return

    # lines of the program

    def _watch(
        self, entry: Entry, array: Any, writes: bool, part: Region | None
    ) -> tuple[Watched, ...]:
        """Look at the lines of the functions that have a name for an array, or for `part` of it."""
        found: list[Watched] = []
        here = sys._getframe()  # noqa: SLF001 - its only name
        seen = self._seen(entry, writes)
        for frame in islice(program_frames(here), FRAMES):
            found += self.lines.watch(
                frame, array, reads=writes, seen=seen, calls=True, later=writes, region=part
            )
        return tuple(found)

    def _seen(self, entry: Entry, receives: bool) -> Any:
        def seen(frame: FrameType, name: str, stores: bool) -> None:
            if self._checker.inside.on:
                return
            pending = next(
                (p for p in self.pending if p.entry is entry and p.writes == receives), None
            )
            if pending is None:
                return
            site = self._checker.recorder.site(frame)
            does = "written" if stores else "read"
            text = f"{name} is {does} while {pending.call} {pending.does}. {pending.why}"
            callers = self.lines.callers_of(frame)
            by = tuple((self._checker.recorder.site(caller), "") for caller in callers)
            self._find(text, site, "", pending, by)

        return seen

    def _find(
        self, text: str, at: int, call: str, pending: Pending, by: tuple[tuple[int, str], ...] = ()
    ) -> None:
        key = (at, pending.at)
        if key not in self._told:
            self._told |= {key, (pending.at, pending.at)}
            # of what has a request: the same mistake as with a message
            kind = "rma-race" if pending.entry.kind == "access" else "buffer-in-use"
            sites = ((at, call), *by, (pending.at, pending.call))
            self._checker.add_finding(kind, text, *sites)
