"""Where a rank stands: its stacks written, read and made readable."""

from __future__ import annotations

import gc
import linecache
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import _pytest
import ompy
import pluggy

STACK_SIGNAL: Final = signal.SIGRTMIN + 7  # arbitrary: libraries take the first ones
_FRAME: Final = re.compile(r'^  File "(?P<path>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_STACK: Final = re.compile(r"^(Current thread|Thread|Greenlet)\b")
STACKS_END: Final = "End of stacks\n"
_PYTEST: Final = tuple(
    f"{Path(str(module.__file__)).parent}{os.sep}" for module in (_pytest, pluggy)
)
_SELF: Final = f"{Path(__file__).parent}{os.sep}"
_CALLERS: Final = (*_PYTEST, _SELF)
_HUB: Final = os.path.join("ompy", "engine", "hub.py")
_OMPY: Final = f"{Path(str(ompy.__file__)).parent}{os.sep}"


class Frame(NamedTuple):
    """A line of code a rank is in."""

    path: str
    line: int
    function: str


def greenlets() -> str:
    """The stacks of the greenlets that do not run, as `faulthandler` writes those of threads.

    The last line is `STACKS_END`.
    """
    kind: Any = getattr(sys.modules.get("greenlet"), "greenlet", ())
    text = ""
    for found in gc.get_objects():
        if isinstance(found, kind) and found.gr_frame is not None:
            text += "Greenlet (most recent call first):\n"
            for frame in reversed(traceback.extract_stack(found.gr_frame)):
                text += f'  File "{frame.filename}", line {frame.lineno} in {frame.name}\n'
    return text + STACKS_END


class Stacks(NamedTuple):
    """Where a process is.

    Attributes:
        test: the stack that runs the test, outermost frame first; empty if there is none.
        others: further threads and greenlets of it.
    """

    test: list[Frame]
    others: list[list[Frame]]


def parse(text: str) -> Stacks:
    """The stacks of a process that has written `faulthandler`'s and then `greenlets`'."""
    found: list[list[Frame]] = []
    for line in text.splitlines():
        if _STACK.match(line):
            found.append([])
        elif found and (match := _FRAME.match(line)):
            frame = Frame(match["path"], int(match["line"]), match["function"])
            found[-1].insert(0, frame)
    test = next((stack for stack in found if _runs_pytest(stack)), [])
    others = [stack for stack in found if stack is not test and not _is_hub(stack)]
    return Stacks(test, others)


def _runs_pytest(stack: Sequence[Frame]) -> bool:
    return any(frame.path.startswith(_PYTEST) for frame in stack)


def _is_hub(stack: Sequence[Frame]) -> bool:
    """Whether it is the event loop in which a rank sleeps."""
    return bool(stack) and stack[0].path.endswith(_HUB)


def trim(frames: Sequence[Frame], *, full: bool = False) -> list[Frame]:
    """The frames a test's author wants to see, outermost first.

    What calls the test goes, and what ompy does inside: compiled modules have no frames there.

    Args:
        frames: outermost first.
        full: keep all of them.
    """
    if full:
        return list(frames)
    end = len(frames)
    while end and frames[end - 1].path.startswith(_CALLERS):  # called by the test
        end -= 1
    begins = [index for index in range(end) if frames[index].path.startswith(_CALLERS)]
    kept = list(frames[begins[-1] + 1 if begins else 0 :])
    while kept and kept[-1].path.startswith(_SELF):  # what has interrupted it
        kept.pop()
    for index, frame in enumerate(kept):
        if frame.path.startswith(_OMPY):
            return kept[: max(index, 1)]
    return kept


def innermost_user_frame(frames: Sequence[Frame]) -> Frame | None:
    """The line of the user's program that has called what a rank is in."""
    users = [frame for frame in trim(frames) if not frame.path.startswith(_OMPY)]
    return users[-1] if users else None


def show(frames: Sequence[Frame], directory: str = "") -> str:
    """Frames as Python's tracebacks show them, with paths below `directory` shortened."""
    lines = []
    for frame in frames:
        lines.append(
            f'  File "{shorten(frame.path, directory)}", line {frame.line}, in {frame.function}'
        )
        source = linecache.getline(frame.path, frame.line).strip()
        if source:
            lines.append(f"    {source}")
    return "\n".join(lines)


def source_of(frame: Frame) -> str:
    """The line of code itself; empty if its file cannot be read."""
    return linecache.getline(frame.path, frame.line).strip()


def shorten(path: str, directory: str) -> str:
    """A path below `directory` without it."""
    prefix = f"{directory}{os.sep}"
    return path[len(prefix) :] if directory and path.startswith(prefix) else path
