"""Lines of the program: numbers for them, and which one makes a call."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING
from zlib import crc32

from ompy.check.record import file_name, is_ours
from ompy.compiled import ccall, cclass
from ompy.replay.events import File, Site

if TYPE_CHECKING:
    from typing import Any

_frame = sys._getframe  # noqa: SLF001 - its only name


@cclass
class ProgramLines:
    """Numbers of lines; who first asks for one has it written down.

    Attributes:
        outermost: code that runs the program: what is around it is not the program's. None where
            the interpreter does.
    """

    _files: dict[str, int]
    _known: list[CodeType]
    _last: Any
    _last_at: int
    _last_number: int
    _numbers: dict[tuple[int, int, str], int]
    _ours: dict[int, bool]
    _sites: dict[tuple[int, int], int]
    _write: Any
    outermost: Any
    __slots__ = tuple(__annotations__)

    def __init__(self, write: Callable[[File | Site], object]) -> None:
        """Know of none.

        Args:
            write: takes each new file and line.
        """
        self.outermost = None
        self._write = write
        # by `id`: to hash code is to hash its constants. So code that is known stays
        self._known = []
        self._ours = {}
        self._sites = {}
        self._numbers = {}
        self._files = {}
        self._last = None  # what was asked for last, and where in it
        self._last_at = self._last_number = 0

    @ccall
    def number_of_caller(self) -> int:
        """The number of the innermost line of the program that is being run; 0 for none."""
        frame = self.frame_of_caller()
        if frame is None:
            return 0
        code = frame.f_code
        at: int = frame.f_lasti
        if code is self._last and at == self._last_at:
            return self._last_number
        number: int = self._number_at(code, at, frame)
        self._last, self._last_at, self._last_number = code, at, number
        return number

    def _number_at(self, code: CodeType, at: int, frame: FrameType) -> int:
        key = (id(code), at)
        found = self._sites.get(key)
        if found is None:
            found = self._sites[key] = self._number(code, frame.f_lineno or 0)
        return found

    @ccall
    def frame_of_caller(self) -> FrameType | None:
        """The innermost frame of the program. Frames of compiled modules are none."""
        frame: Any = _frame()
        while frame is not None:
            code = frame.f_code
            known = self._ours.get(id(code))
            if known is None:
                known = self._look_at(code, frame)
            if not known:
                return frame  # type: ignore[no-any-return]
            if code is self.outermost:
                return None
            frame = frame.f_back
        return None

    def _look_at(self, code: CodeType, frame: FrameType) -> bool:
        self._known.append(code)
        ours = self._ours[id(code)] = is_ours(frame)
        return ours

    def number_of_raise(self, traceback: TracebackType | None) -> int:
        """The number of the innermost line of the program that an exception went through."""
        found = 0
        while traceback is not None:
            frame, traceback_here, traceback = traceback.tb_frame, traceback, traceback.tb_next
            if not is_ours(frame):
                found = self._number(frame.f_code, traceback_here.tb_lineno)
        return found

    def _number(self, code: CodeType, line: int) -> int:
        file = self._file(code.co_filename)
        place = (file, line, code.co_name)
        number = self._numbers.get(place)
        if number is None:
            number = self._numbers[place] = len(self._numbers) + 1
            self._write(Site(number, *place))
        return number

    def _file(self, written: str) -> int:
        found = self._files.get(written)
        if found is None:
            found = self._files[written] = len(self._files) + 1
            name = file_name(written)
            self._write(File(found, check_of(name), name))
        return found


def check_of(path: str) -> int:
    """The checksum of a file of the program; 0 if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return crc32(file.read())
    except (OSError, ValueError):
        return 0


def shown_path(path: str) -> str:
    """A path as people want it: from the working directory on, if it is below that."""
    here = os.getcwd() + os.sep
    return path.removeprefix(here)
