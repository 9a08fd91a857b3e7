"""What a rank says when it is asked: where it is, what it waits for, what it did last.

It is asked by SIGUSR1, by the launcher before a timeout ends the job, and by an error of a
message that nobody caught.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.data.errors import ERR_INTERN, ERR_OTHER, ERR_PROC_FAILED, ERR_TRUNCATE, MPIError
from ompy.trace.tag_names import tag_text

if TYPE_CHECKING:
    from types import FrameType

    from ompy.runtime.process import RankProcess
    from ompy.trace.sink import Recent

REPORT_SIGNAL: Final = signal.SIGUSR1
# of the real-time signals, which have no meaning of their own; arbitrary: few programs use any
SHORT_SIGNAL: Final = signal.SIGRTMIN + 9
SHOWN: Final = 24  # entries of the flight recorder; arbitrary: with the rest they fill a screen
AT_ERRORS: Final = 8  # entries; arbitrary: those behind an error are mostly the last few
# errors of messages, behind which there is a story; others have it in their own text
_WITH_STORY: Final = frozenset({ERR_OTHER, ERR_INTERN, ERR_PROC_FAILED, ERR_TRUNCATE})
_OURS: Final = ("ompy", "ompy_components")  # packages whose lines are not the program's


def report_when_asked(process: RankProcess) -> None:
    """Report at SIGUSR1 from now on, unless the program has a use of its own for it."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set handlers
    own = os.getpid()
    tell = getattr(process.context.wireup, "tell_where", None)

    def answer_in_short(_number: int, frame: FrameType | None) -> None:
        if os.getpid() == own and tell is not None:
            tell(*in_short(process, frame))

    if tell is not None and signal.getsignal(SHORT_SIGNAL) is signal.SIG_DFL:
        signal.signal(SHORT_SIGNAL, answer_in_short)
    if signal.getsignal(REPORT_SIGNAL) is not signal.SIG_DFL:
        return

    def answer(_number: int, frame: FrameType | None) -> None:
        if os.getpid() == own:  # a forked child knows nothing of messages
            _say(report(process, frame, SHOWN, os.getpid()))

    signal.signal(REPORT_SIGNAL, answer)


def tell_of_error(process: RankProcess, value: BaseException) -> None:
    """Say what the rank did last when an uncaught error is one of a message."""
    if isinstance(value, MPIError) and value.code in _WITH_STORY:
        _say(report(process, None, AT_ERRORS, os.getpid()))


def _say(text: str) -> None:
    """Past Python's buffers: what was interrupted may be in the middle of writing to them."""
    outputs.write(text, "rank report")


def report(process: RankProcess, frame: FrameType | None, most: int, pid: int = 0) -> str:
    """The report as text; changes nothing, so it may be made at any moment.

    Args:
        process: the rank.
        frame: what it was executing, None when that is over.
        most: entries of the flight recorder.
        pid: of the rank, where it is worth telling: in a virtual world it ends with the report.
    """
    context = process.context
    lines = [f"ompy: rank {context.rank}" + (f" (process {pid})" if pid else "")]
    where = line_of_program(frame)
    if where:
        lines.append(f"  is at {where}")
    if process.finalized:
        lines.append("  has finalized MPI")
    else:
        waiting = [*process.pml.waiting(), *process.others_waiting()]
        lines.append("  waits for" if waiting else "  has no message that is not complete")
        lines += [f"    {line}" for line in waiting]
    recent = context.trace.recent()[-most:] if most else []
    if recent:
        lines.append(f"  its last {len(recent)} events, ms before now")
        now = context.trace.clock()
        for entry in recent:
            ago = (entry.time - now) / 1e6
            lines.append(f"    {ago:>10.3f}  {_told(process, entry)}")
    return "\n".join(lines) + "\n"


def in_short(process: RankProcess, frame: FrameType | None) -> tuple[str, str]:
    """The line the rank is at, and the first of what it waits for; either may be empty."""
    waiting = [] if process.finalized else [*process.pml.waiting(), *process.others_waiting()]
    more = f", and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    return line_of_program(frame), f"{waiting[0]}{more}" if waiting else ""


def _told(process: RankProcess, entry: Recent) -> str:
    way = "to" if entry.what.startswith(">") else "from"
    text = f"{entry.what:<8} {way} rank {entry.peer}"
    if entry.context >= 0:
        communicator = process.communicators.get(entry.context)
        name = communicator.name if communicator else f"communicator {entry.context}"
        text += f" in {name}, {tag_text(entry.tag)}, message {entry.sequence}"
    return f"{text}, {entry.size} bytes"


def line_of_program(frame: FrameType | None) -> str:
    """The innermost line that is not ours, with its text; empty when there is none."""
    for start in (frame, _parked_frame()):
        place = start
        while place is not None:
            package = str(place.f_globals.get("__name__", "")).partition(".")[0]
            path = place.f_code.co_filename
            if package not in _OURS and not path.startswith("<frozen"):
                return _described(path, place.f_lineno, place.f_code.co_name)
            place = place.f_back
    return ""


def _parked_frame() -> Any:
    """Where the program stands while the rank sleeps in its event loop, a greenlet beside it."""
    greenlet = sys.modules.get("greenlet")
    if greenlet is None:
        return None
    program = greenlet.getcurrent()
    while program.parent is not None:
        program = program.parent
    return program.gr_frame


def _described(path: str, line: int, function: str) -> str:
    import linecache

    text = linecache.getline(path, line).strip()
    return f"{path}:{line} in {function}" + (f": {text}" if text else "")
