"""What `ps` shows of a process that was forked and never executed."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Final

from ompy.runtime.descendants import control_process

_SET_NAME: Final = 15  # Linux PR_SET_NAME
_ARGUMENTS_BEGIN: Final = 45  # field of /proc/N/stat after the state, which is 0: `arg_start`
_ARGUMENTS_END: Final = 46  # `arg_end`


def show_as(argv: Sequence[str]) -> None:
    """Have this process listed with another command line, as far as the room of its own goes.

    The kernel shows the memory where the command line of the last exec lies, so that is written
    over. Linux only; elsewhere, and where it cannot be found out, nothing happens.
    """
    words = [os.fsencode(word) for word in argv]
    control_process(_SET_NAME, os.path.basename(words[0])[:15])
    begin, end = _room()
    if begin:
        text = b"\0".join(words)[: end - begin - 1]
        ctypes.memset(begin, 0, end - begin)
        ctypes.memmove(begin, text, len(text))


def _room() -> tuple[int, int]:
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
    except (OSError, IndexError, ValueError):
        return 0, 0
