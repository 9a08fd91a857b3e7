"""What `ps` shows of a process that was forked and never executed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

NAME_LENGTH: Final = 15  # bytes; Linux TASK_COMM_LEN without the zero at the end
_ARGUMENTS_BEGIN: Final = 45  # fields of /proc/N/stat from the state on: Linux `arg_start`
_ARGUMENTS_END: Final = 46  # Linux `arg_end`


def show_as(argv: Sequence[str]) -> None:
    """Have this process listed with another command line, as far as the room of its own goes.

    The kernel shows the memory where the command line of the last exec lies, so that is written
    over. Linux only; elsewhere, and where it cannot be done, nothing happens.
    """
    words = [os.fsencode(word) for word in argv]
    try:
        with open("/proc/self/comm", "wb", buffering=0) as name:
            name.write(os.path.basename(words[0])[:NAME_LENGTH])
        begin, end = _room()
        text = b"\0".join(words)[: end - begin - 1]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(text.ljust(end - begin, b"\0"))
    except (OSError, IndexError, ValueError):
        pass


def _room() -> tuple[int, int]:
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
