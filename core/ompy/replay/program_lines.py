"""Lines of the program: numbers for them, and which one makes a call."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Final
from zlib import crc32

from ompy.check.record import file_name, is_ours
from ompy.replay.events import File, Site

SKIPPED: Final = ("importlib", "runpy")  # the interpreter's own, below a program's first line


class ProgramLines:
    """Numbers of lines; who first asks for one has it written down.

    Attributes:
        outermost: code that runs the program: what is around it is not the program's. None where
            the interpreter does.
    """

    def __init__(self, write: Callable[[File | Site], object]) -> None:
        """Know of none.

        Args:
            write: takes each new file and line.
        """
        self.outermost: CodeType | None = None
        self._write = write
        self._ours: dict[CodeType, bool] = {}
        self._sites: dict[tuple[CodeType, int], int] = {}
        self._numbers: dict[tuple[int, int, str], int] = {}
        self._files: dict[str, int] = {}

    def number_of_caller(self) -> int:
        """The number of the innermost line of the program that is being run; 0 for none."""
        frame = self.frame_of_caller()
        if frame is None:
            return 0
        key = (frame.f_code, frame.f_lasti)
        found = self._sites.get(key)
        return found if found is not None else self._tell_site(key, frame)

    def frame_of_caller(self) -> FrameType | None:
        """The innermost frame of the program."""
        frame: FrameType | None = sys._getframe(2)  # noqa: SLF001 - its only name
        ours = self._ours
        while frame is not None:
            code = frame.f_code
            known = ours.get(code)
            if known is None:
                known = ours[code] = is_ours(frame)
            if not known:
                return frame
            if code is self.outermost:
                return None
            frame = frame.f_back
        return None

    def number_of_raise(self, traceback: TracebackType | None) -> int:
        """The number of the innermost line of the program that an exception went through."""
        found = 0
        while traceback is not None:
            frame, traceback_here, traceback = traceback.tb_frame, traceback, traceback.tb_next
            if not is_ours(frame):
                found = self._number(frame.f_code, traceback_here.tb_lineno)
        return found

    def _tell_site(self, key: tuple[CodeType, int], frame: FrameType) -> int:
        number = self._sites[key] = self._number(frame.f_code, frame.f_lineno or 0)
        return number

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
