"""The memory of a message, or of the parts of a collective call: a view, and ranges in it."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any, Final, NamedTuple
from zlib import adler32

from ompy.data.message import Blocks
from ompy.mpi.buffers.addresses import address_of
from ompy.mpi.buffers.common_forms import says_in_place
from ompy.mpi.buffers.spec import message

RUNS: Final = 4096  # ranges of one message; arbitrary: of what has more nothing is known
LARGEST: Final = 1 << 20  # bytes of an element with gaps; arbitrary, likewise
OWNING: Final = frozenset({bytearray, bytes, array})  # objects with memory of their own
KEPT: Final[int] = 1 << 18  # bytes of a message that are copied; arbitrary: faster than a checksum


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
