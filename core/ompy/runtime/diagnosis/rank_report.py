"""What a rank says when it is asked: where it is, what it waits for, what it did last.

The launcher asks by SHORT_SIGNAL (`machines/diagnosis/inquest.py`): the answer is a word to it, of
which it makes one story of all ranks. A rank speaks for itself alone when it gets SIGUSR1 past the
launcher, and at an error of a message that nobody caught.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.data.errors import ERR_INTERN, ERR_OTHER, ERR_PROC_FAILED, ERR_TRUNCATE, MPIError
from ompy.frameworks.call_site import program_frame
from ompy.trace.tag_names import tag_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from ompy.runtime.ranks.process import RankProcess
    from ompy.trace.sink import Recent

REPORT_SIGNAL: Final = signal.SIGUSR1
# of the real-time signals, which have no meaning of their own; arbitrary: few programs use any
SHORT_SIGNAL: Final = signal.SIGRTMIN + 9
SHOWN: Final = 24  # entries of the flight recorder; arbitrary: with the rest they fill a screen
AT_ERRORS: Final = 8  # entries; arbitrary: those behind an error are mostly the last few
AT_AUTOPSIES: Final = 8  # entries; arbitrary: as at errors
# errors of messages, behind which there is a story; others have it in their own text
_WITH_STORY: Final = frozenset({ERR_OTHER, ERR_INTERN, ERR_PROC_FAILED, ERR_TRUNCATE})
PENDING_SHOWN: Final = 8  # operations; arbitrary: reports are bounded
LINE_SHOWN: Final = 160  # letters of a line of the program; arbitrary: reports are bounded
FRAMES: Final = 32  # of a thread; arbitrary: the innermost say where it is
THREADS: Final = 16  # arbitrary: who has more is told of these


def report_when_asked(process: RankProcess) -> None:
    """Report at SIGUSR1 from now on, unless the program has a use of its own for it."""
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may set handlers
    own = os.getpid()
    tell = getattr(process.context.wireup, "tell_where", None)

    def answer(_number: int, frame: FrameType | None) -> None:
        if os.getpid() == own:  # a forked child knows nothing of messages
            _say(report(process, frame, SHOWN, os.getpid()))

    def answer_in_short(_number: int, frame: FrameType | None) -> None:
        if os.getpid() == own and tell is not None:
            own_signal = signal.getsignal(REPORT_SIGNAL) is not answer
            tell(*in_short(process, frame), more_of(process, frame, own_signal=own_signal))

    if tell is not None and signal.getsignal(SHORT_SIGNAL) is signal.SIG_DFL:
        signal.signal(SHORT_SIGNAL, answer_in_short)
    if signal.getsignal(REPORT_SIGNAL) is not signal.SIG_DFL:
        return

    signal.signal(REPORT_SIGNAL, answer)


def tell_of_error(process: RankProcess, value: BaseException) -> None:
    """Say what the rank did last when an uncaught error is one of a message."""
    if not isinstance(value, MPIError) or value.code not in _WITH_STORY:
        return
    waiting = not process.finalized and (*process.pml.waiting(), *process.others_waiting())
    if waiting or process.context.trace.recent():  # else nothing has happened that helps
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
    recent = _recent(process, most)
    if recent:
        lines.append(f"  its last {len(recent)} event{'s' * (len(recent) > 1)}, ms before now")
        lines += [f"    {line}" for line in recent]
    return "\n".join(lines) + "\n"


def _recent(process: RankProcess, most: int) -> list[str]:
    """The last of the flight recorder, so many ms before now."""
    recent = process.context.trace.recent()[-most:] if most else []
    now = process.context.trace.clock()
    return [f"{(each.time - now) / 1e6:>10.3f}  {_told(process, each)}" for each in recent]


def in_short(process: RankProcess, frame: FrameType | None) -> tuple[str, str]:
    """The line the rank is at, and the first of what it waits for; either may be empty."""
    waiting = [] if process.finalized else [*process.pml.waiting(), *process.others_waiting()]
    more = f", and {len(waiting) - 1} more" if len(waiting) > 1 else ""
    return line_of_program(frame), f"{waiting[0]}{more}" if waiting else ""


def place_in_world(process: RankProcess, frame: FrameType | None) -> dict[str, Any]:
    """What a rank of a virtual world says; fields as the launcher hears them (`more_of`)."""
    line, waits = in_short(process, frame)
    return {
        "line": line,
        "waits": waits,
        "at": place_of_program(frame),
        "begun": {str(comm): number for comm, number in _begun(process).items()},
        "pending": _pending(process),
        "recent": _recent(process, AT_AUTOPSIES),
    }


def more_of(process: RankProcess, frame: FrameType | None, *, own_signal: bool = False) -> bytes:
    """What who watches the job is shown beside that, as JSON; less if not all can be told.

    For a signal handler: what was interrupted may be in the middle of changing any of it.

    Its fields: `asleep`, s since the program's main thread sleeps in a call, if that is long;
    `queues`, what the PML has counted; `messages` and `bytes`, pairs of a rank and how many it was
    sent; `threads`, pairs of a name and frames (file, line, function), the innermost first; `at`,
    the line as `place_of_program` has it; `pending`, lines of what is not complete; `begun`, by
    context id the number of the last collective call; `recent`, lines of the flight recorder;
    `own_signal`, as given: SIGUSR1 is the program's.
    """
    import json

    found: dict[str, Any] = {"at": place_of_program(frame), "own_signal": own_signal}
    try:
        found |= _counted(process, frame)
    except Exception as problem:  # it changes while it is read: the next time it is there
        found["missing"] = str(problem)
    return json.dumps(found, separators=(",", ":")).encode()


def _counted(process: RankProcess, frame: FrameType | None) -> dict[str, Any]:
    return {
        "asleep": _asleep(process),
        "begun": _begun(process),
        "pending": _pending(process),
        "recent": _recent(process, AT_AUTOPSIES),
        "queues": process.pml.counted(),
        "messages": list(process.pml.messages_to().items()),
        "bytes": _bytes_to(process),
        "threads": _threads(frame),
    }


def _pending(process: RankProcess) -> list[str]:
    """What is not complete, of MPI and beside it."""
    if process.finalized:
        return []
    return [*process.pml.waiting(), *process.others_waiting()][:PENDING_SHOWN]


def _begun(process: RankProcess) -> dict[int, int]:
    if process.finalized:
        return {}
    return {each.context_id: each.order.number for each in list(process.communicators.values())}


def _asleep(process: RankProcess) -> float:
    sleepers = getattr(process.context.engine, "sleepers", None)
    since = sleepers.since(threading.get_ident()) if sleepers is not None else None
    return 0.0 if since is None else (process.context.engine.now() - since) / 1e9


def _bytes_to(process: RankProcess) -> list[tuple[int, int]]:
    from ompy.frameworks.btl_base.byte_counts import CountsBytes

    sent: dict[int, int] = {}
    for module in list(process.context.btls):
        if isinstance(module, CountsBytes):
            for rank, count in module.bytes_to().items():
                sent[rank] = sent.get(rank, 0) + count
    return list(sent.items())


def _threads(interrupted: FrameType | None) -> list[tuple[str, list[tuple[str, int, str]]]]:
    """Where each thread is; the one that asks is where it was interrupted."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames: dict[int, Any] = dict(sys._current_frames())  # noqa: SLF001 - its only name
    parked = _parked_frame()  # the loop in which it sleeps says nothing
    frames[threading.get_ident()] = interrupted if parked is None else parked
    found = []
    for thread, frame in sorted(frames.items(), key=lambda each: each[0] != threading.get_ident()):
        found.append((names.get(thread, f"thread {thread}"), _frames(frame)))
    return found[:THREADS]


def _frames(frame: FrameType | None) -> list[tuple[str, int, str]]:
    found: list[tuple[str, int, str]] = []
    while frame is not None and len(found) < FRAMES:
        code = frame.f_code
        found.append((code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return found


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
    return place_text(place_of_program(frame))


def place_text(place: Mapping[str, Any]) -> str:
    """What `place_of_program` has found, in words; empty when that is nothing."""
    if not place:
        return ""
    text = f": {place['text']}" if place["text"] else ""
    return f"{place['file']}:{place['line']} in {place['function']}{text}"


def place_of_program(frame: FrameType | None) -> dict[str, Any]:
    """The innermost line that is not ours: file, line, function, text; empty when there is none."""
    import linecache

    for start in (frame, _parked_frame()):
        place = program_frame(start)
        if place is not None:
            path, function = place.f_code.co_filename, place.f_code.co_name
            text = linecache.getline(path, place.f_lineno).strip()[:LINE_SHOWN]
            return {"file": path, "line": place.f_lineno, "function": function, "text": text}
    return {}


def _parked_frame() -> Any:
    """Where the program stands while the rank sleeps in its event loop, a greenlet beside it."""
    greenlet = sys.modules.get("greenlet")
    if greenlet is None:
        return None
    program = greenlet.getcurrent()
    while program.parent is not None:
        program = program.parent
    return program.gr_frame
