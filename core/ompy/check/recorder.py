"""Writes the call record of one rank through a mapping of a file: it outlives any end.

Compiled, for it is on the way of each call: what a call writes again takes two words.
"""

from __future__ import annotations

import marshal
import mmap
import os
from struct import Struct
from typing import TYPE_CHECKING, Final

from ompy import raw
from ompy.check.record import AGAIN, KEPT, file_name, program_frame, with_numbers
from ompy.compiled import U64, ccall, cclass, cfunc

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

CHUNK = 1 << 20  # bytes by which the file grows; arbitrary
NEAR: Final[int] = 4096  # lines found without comparing codes; arbitrary: more than a loop has
SHAPES: Final[int] = 4096  # entries that may come again; arbitrary, likewise
SPARE: Final[int] = 64  # left for a call that comes again; arbitrary: it writes a few
WORD = 8  # bytes; an entry begins at a multiple of them
HEAD = 4  # bytes before an entry: its length
AGAIN_SIZE = 12  # bytes of an entry that comes again, behind its head
_LENGTH: Final = Struct("<I")


@cclass
class Recorder:
    """Writes the record of a rank.

    Attributes:
        forked: this process is a child of the rank's, and writes nothing.
        first: of the entry written last, the number of its request; 0 for none.
        last: the entry written last that is no site, no communicator and no shape.
        left: entries that may be written.
        round: how often the record has begun: numbers of shapes are of one round.
        written: of entries that are none of these, how many.
    """

    _at: int
    _file: int
    _limit: int
    _map: Any
    _near: dict[tuple[int, int], tuple[CodeType, int]]
    _shapes: dict[tuple[Any, ...], int]
    _sites: dict[Any, int]
    _size: int
    _thread: U64
    _threads: bool
    _view: Any
    _number: int
    first: int
    forked: bool
    last: Any
    left: int
    round: int
    written: int
    __slots__ = (*__annotations__, "__weakref__")

    def __init__(self, path: str, limit: int) -> None:
        """Begin a new file.

        Args:
            path: its name.
            limit: entries at most.

        Raises:
            OSError: it cannot be written.
        """
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        os.register_at_fork(after_in_child=self._fork)
        self.round = self._number = 0
        self._map = self._view = None
        self._begin(limit)
        self._grow()

    def _begin(self, limit: int) -> None:
        self._limit = self.left = limit
        self._size = self._at = self.written = 0
        self.round += 1
        self.last = None
        self.first = 0
        self.forked = self._threads = False
        self._thread = raw.thread()
        self._sites = {}
        # the same by the codes' ids: the hash of a code is that of all its constants
        self._near = {}
        self._shapes = {}

    def _fork(self) -> None:
        """A forked child is not the rank."""
        self.forked = True

    def begin_anew(self) -> None:
        """Forget what was written."""
        self._unmap()
        os.ftruncate(self._file, 0)
        self._begin(self._limit)
        self._grow()

    def _unmap(self) -> None:
        if self._map is not None:
            self._view.release()
            self._map.close()

    def _grow(self) -> None:
        size: int = self._size + CHUNK
        os.ftruncate(self._file, size)
        self._unmap()
        self._map = mmap.mmap(self._file, size)
        self._view = memoryview(self._map)
        self._size = size

    @ccall
    def number(self) -> int:
        """A number that nothing else has here."""
        self._number += 1
        return self._number

    @ccall
    def write_event(self, event: tuple[Any, ...]) -> None:
        """Add an entry; beyond the limit only sites and findings."""
        if not self._may_write(event[0]):
            return
        self.written += 1
        self.last = event
        self.first = 0
        self.append_event(event)

    @cfunc
    def _may_write(self, name: str) -> bool:
        """Whether an entry may still be added; it is counted."""
        if self.left <= 0 and name not in KEPT:
            if not self.left:
                self.left = -1
                self.append_event(("cut",))
            return False
        if not self._threads and raw.thread() != self._thread:
            self._threads = True
            self.append_event(("threads",))
        self.left -= 1
        return True

    @ccall
    def append_event(self, event: tuple[Any, ...]) -> None:
        """Add an entry, whatever the limit."""
        if self.forked:
            return
        data: bytes = marshal.dumps(event)
        length: int = len(data)
        at: int = self._at
        end: int = (at + HEAD + length + WORD - 1) // WORD * WORD
        while end + WORD > self._size:
            self._grow()
        raw.copy(self._view, at + HEAD, data, 0, length)
        _LENGTH.pack_into(self._map, at, length)  # last: who is killed before leaves zeros
        self._at = end

    # entries that come again

    @ccall
    def write_again(self, event: tuple[Any, ...], first: int, second: int) -> None:
        """Add an entry that has come before, but for the numbers of its requests.

        Args:
            event: the entry, 0 or None where these numbers are.
            first: the number; 0 for none.
            second: another one; 0 for none.
        """
        if not self._may_write(event[0]):
            return
        self.written += 1
        self.last = event
        self.first = first
        self.append_again(self.shape(event), first, second)

    @ccall
    def shape(self, event: tuple[Any, ...]) -> int:
        """The number of an entry that comes again."""
        found = self._shapes.get(event)
        if found is None:
            if len(self._shapes) >= SHAPES:
                self._shapes.clear()
                self.round += 1
            found = len(self._shapes) + 1
            self._shapes[event] = found
            self.append_event(("shape", found, event))
        return found

    @ccall
    def append_again(self, shape: int, first: int, second: int) -> None:
        """Add an entry of a shape, whatever the limit."""
        if self.forked:
            return
        at: int = self._at
        end: int = at + WORD + WORD
        if end + WORD > self._size:
            self._grow()
        view = self._view
        number: U64 = first
        other: U64 = second
        begun: U64 = shape
        raw.put_word(view, at + WORD, other << 32 | number)
        raw.put_word(view, at, begun << 32 | AGAIN | AGAIN_SIZE)
        self._at = end

    @ccall
    def append_wait(self, shape: int, numbers: list[int]) -> None:
        """Add the entry of a wait for two requests or more, whatever the limit."""
        count: int = len(numbers)
        if self.forked:
            return
        at: int = self._at
        end: int = (at + HEAD + HEAD + HEAD * count + WORD - 1) // WORD * WORD
        while end + WORD > self._size:
            self._grow()
        view = self._view
        for place in range(0, count, 2):
            low: U64 = numbers[place]
            high: U64 = numbers[place + 1] if place + 1 < count else 0
            raw.put_word(view, at + WORD + HEAD * place, high << 32 | low)
        begun: U64 = shape
        size: U64 = HEAD + HEAD * count
        raw.put_word(view, at, begun << 32 | AGAIN | size)
        self._at = end

    @ccall
    def may_repeat(self, turn: int) -> bool:
        """Whether the calling thread may write an entry by its shape, with no more ado."""
        return (
            self.left > SPARE
            and turn == self.round
            and not self.forked
            and raw.thread() == self._thread
        )

    @ccall
    def repeat(self, shape: int, number: int) -> None:
        """Add an entry that has come before, but for its request; it `may_repeat`."""
        self.left -= 1
        self.append_again(shape, number, 0)

    # lines

    @ccall
    def site(self, frame: FrameType | None) -> int:
        """The number of the innermost line of the program; 0 if there is none."""
        found: Any = program_frame(frame)
        if found is None:
            return 0
        code = found.f_code
        place = (id(code), found.f_lasti)
        near = self._near.get(place)
        if near is not None:  # it is that code, which is kept here
            return near[1]
        if len(self._near) >= NEAR:
            self._near.clear()
        number: int = self._number_of(found)
        self._near[place] = (code, number)
        return number

    def _number_of(self, frame: FrameType) -> int:
        key = (frame.f_code, frame.f_lasti)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = len(self._sites) + 1
            code = frame.f_code
            name = file_name(code.co_filename)
            self._write_site(("site", found, name, frame.f_lineno, code.co_name))
        return found

    def line_site(self, code: CodeType, line: int) -> int:
        """The number of a line that has been left since, as a traceback has it."""
        key = (code, -line)  # no place in a code is negative
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = len(self._sites) + 1
            name = file_name(code.co_filename)
            self._write_site(("site", found, name, line, code.co_name))
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
            self._write_site(("started", found, at, made, call))
        return found

    def _write_site(self, event: tuple[Any, ...]) -> None:
        self._may_write(event[0])
        self.append_event(event)


@cclass
class ToldRecorder(Recorder):
    """The record of a rank whose world is explored: it goes to who conducts that."""

    _tell: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, tell: Callable[[tuple[Any, ...]], object], limit: int) -> None:
        """Begin one.

        Args:
            tell: takes an entry.
            limit: entries at most.
        """
        self._tell = tell
        self.round = self._number = 0
        self._map = self._view = None
        self._begin(limit)

    def begin_anew(self) -> None:
        """There is no second record in such a world."""
        raise NotImplementedError("the worlds of a notebook are not explored")

    @ccall
    def append_event(self, event: tuple[Any, ...]) -> None:
        """Tell of it."""
        self._tell(event)

    @ccall
    def write_again(self, event: tuple[Any, ...], first: int, second: int) -> None:
        """Tell of it, whole."""
        self.write_event(with_numbers(event, first, second))

    @ccall
    def may_repeat(self, turn: int) -> bool:
        """Each entry is told whole."""
        return False
