"""Loads and stores of a window's owner: no call tells of them.

Two ways to know: a copy of the memory, taken when an exposure epoch begins and compared when it
ends; and the lines of the program that name an array of the memory (`lines.py`), whose subscripts
say which bytes.
"""

# ruff: noqa: SLF001 - states are private to users, not to us

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from types import FrameType
from typing import Any, Final

from ompy.check.checker import Checker
from ompy.check.lines import Watched, names_of
from ompy.check.record import program_frame, program_frames
from ompy.check.window_lines import Touch, touches_of
from ompy.mpi.buffers.addresses import address_of

LARGEST: Final = 1 << 24  # bytes that are copied; arbitrary: copied in a millisecond or two
STEP: Final = 4096  # bytes that are compared at once; arbitrary
RUNS: Final = 2048  # ranges of changed bytes, or of an array's part; arbitrary
FRAMES: Final = 4  # callers that are looked at; arbitrary
WATCHED: Final = 64  # names; arbitrary
FOLLOWED: Final = 64  # lines behind the call that makes a window; arbitrary
EVENTS: Final = 20_000  # of a window's loads and stores; arbitrary: the record has its limit


class Twin:
    """A copy of a window's memory."""

    def __init__(self, memory: memoryview) -> None:
        self._memory = memory if 0 < len(memory) <= LARGEST else None
        self._copy: bytes | None = None
        self._place = (0, 0)
        if len(memory):
            base = address_of(memory)
            self._place = (base, base + len(memory))

    def overlaps(self, other: Twin) -> bool:
        """Whether both windows have some of their memory in common."""
        return max(self._place[0], other._place[0]) < min(self._place[1], other._place[1])

    def begin_epoch(self) -> None:
        """An exposure epoch begins."""
        if self._memory is not None:
            self._copy = bytes(self._memory)

    def end_epoch(self) -> None:
        """It has ended."""
        self._copy = None

    def drop(self) -> None:
        """The memory is gone, or nothing is known of it."""
        self._memory = self._copy = None

    def changes(self) -> list[tuple[int, int]]:
        """The ranges of bytes that are not what they were; none if there are too many."""
        before, memory = self._copy, self._memory
        if before is None or memory is None or before == memory:
            return []
        now = bytes(memory)
        found: list[tuple[int, int]] = []
        for first in range(0, len(now), STEP):
            if now[first : first + STEP] == before[first : first + STEP]:
                continue
            for at in range(first, min(first + STEP, len(now))):
                if now[at] == before[at]:
                    continue
                if found and found[-1][1] == at:
                    found[-1] = (found[-1][0], at + 1)
                elif len(found) == RUNS:
                    return []
                else:
                    found.append((at, at + 1))
        return found


class Local:
    """Watches the lines that load from and store into a window's memory."""

    def __init__(self, checker: Checker, number: int, rank: int, memory: memoryview) -> None:
        """Watch nothing yet.

        Args:
            checker: this rank's.
            number: of the window.
            rank: in the window, whose memory it is.
            memory: that.
        """
        self._checker = checker
        self._number = number
        self._rank = rank
        self._found: list[Any] = []  # its arrays, which other functions may have by other names
        self._size = len(memory)
        self._base = address_of(memory) if len(memory) else 0
        self._watched: list[tuple[FrameType, Watched]] = []
        self._left = EVENTS
        self._told: set[tuple[Any, ...]] = set()
        self._count = -1

    def look_for_arrays(self) -> None:
        """Watch the arrays that the program's functions have names for by now."""
        if not self._size or not self._left:
            return
        for frame in islice(program_frames(sys._getframe(1)), FRAMES):
            self.look_in(frame)

    def look_in(self, frame: FrameType) -> bool:
        """Watch the arrays that a function has names for; whether there are any."""
        arrays = list(self._arrays(frame)) if self._size else []
        for array in arrays:
            self._watch(frame, array)
            known = len(self._found) == WATCHED or any(each is array for each in self._found)
            if not known:
                self._found.append(array)
        for array in self._found:
            self._watch(frame, array)
        return bool(arrays)

    def _arrays(self, frame: FrameType) -> Iterator[Any]:
        for _, value in names_of(frame):
            if type(value).__name__ in {"ndarray", "memmap"} and self._has(value):
                yield value

    def _has(self, array: Any) -> bool:
        if not array.size:
            return False
        at = array.__array_interface__["data"][0]
        return bool(self._base <= at < self._base + self._size)

    def _watch(self, frame: FrameType, array: Any) -> None:
        for each, watched in self._watched:
            if each is frame and watched.memory is array:
                return
        lines = self._checker.buffers.lines
        watch = lines.watch(frame, array, reads=True, seen=self._seen, calls=True)
        for found in watch:
            self._watched.append((frame, found))
            if len(self._watched) > WATCHED:
                lines.unwatch(self._watched.pop(0)[1])

    def drop(self) -> None:
        """The window is no more, or nothing is known of its memory."""
        self._size = 0
        for _, watched in self._watched:
            self._checker.buffers.lines.unwatch(watched)
        self._watched.clear()
        self._found.clear()

    def _seen(self, frame: FrameType, name: str, _stores: bool) -> None:
        """A line that has a name of the memory is about to run."""
        inside = self._checker.inside
        if inside.on or not self._left:
            return
        inside.on = True
        try:
            for touch in touches_of(frame.f_code).get(frame.f_lineno, ()):
                if touch.name == name:
                    self._touched(frame, touch)
        finally:
            inside.on = False

    def _touched(self, frame: FrameType, touch: Touch) -> None:
        part = touch.part(frame)
        ranges = None if part is None else self._ranges(part)
        if not ranges:
            return
        recorder = self._checker.recorder
        what = "store" if touch.stores else "load"
        op = "poll" if touch.polls else ""
        site = recorder.site(frame)
        key = (site, what, op, tuple(ranges))
        if recorder.left != self._count:  # the program has called MPI since
            self._told.clear()
        if key in self._told:
            return
        self._left -= 1
        self._checker.write_event("rma", site, "", self._number, what, self._rank, ranges, op, 0)
        self._told.add(key)
        self._count = recorder.left

    def _ranges(self, part: Any) -> list[tuple[int, int]] | None:
        """The bytes of an array's part in the window; None where that is not simple."""
        at = part.__array_interface__["data"][0] - self._base
        if not part.size:
            return []
        if part.flags.c_contiguous or part.flags.f_contiguous:
            found = [(at, at + part.nbytes)]
        elif part.size <= RUNS:
            starts = [at]
            for length, stride in zip(part.shape, part.strides, strict=True):
                starts = [start + stride * place for start in starts for place in range(length)]
            found = sorted((start, start + part.itemsize) for start in starts)
        else:
            return None
        inside = found[0][0] >= 0 and found[-1][1] <= self._size
        return found if inside else None


class Parts:
    """The parts of a window's memory that this rank loads from and stores into."""

    def __init__(
        self, checker: Checker, number: int, rank: int, memory: memoryview, shared: bool
    ) -> None:
        """Its own one; arguments as those of `Local`, and whether others load and store there."""
        self._checker = checker
        self._number = number
        self._shared = shared
        self._parts = {rank: Local(checker, number, rank, memory)}
        self._lines_left = 0

    def add_part(self, rank: int, memory: memoryview) -> None:
        """The rank has asked for another one's part."""
        if rank not in self._parts:
            self._parts[rank] = Local(self._checker, self._number, rank, memory)

    def look_for_arrays(self) -> None:
        """Watch the arrays that the program's functions have names for by now."""
        for each in self._parts.values():
            each.look_for_arrays()

    def follow_maker(self) -> None:
        """Memory is new: no function has a name for it yet, but one may have soon."""
        frame = program_frame(sys._getframe(1))
        if frame is not None and self._parts:
            self._lines_left = FOLLOWED
            self._checker.buffers.lines.follow(frame, self._next_line)

    def _next_line(self, frame: FrameType) -> bool:
        """Whether the next line is of interest, too."""
        self._lines_left -= 1
        found = [each.look_in(frame) for each in self._parts.values()]
        if not found or (any(found) and not self._shared):
            return False
        return self._lines_left > 0

    def drop(self) -> None:
        """The window is no more, or nothing is known of its memory."""
        for each in self._parts.values():
            each.drop()
        self._parts.clear()
