"""Which threads of a process wait for others of it, so that nothing else can wake them.

That is known of `Thread.join` and of `Condition.wait` without a time limit, which `Queue.get`,
`Event.wait`, `Semaphore.acquire`, `Barrier.wait` and `Future.result` end in, and of the main thread
that has come to the end of the program and waits for the rest. It is not known of a bare lock: who
has called `acquire` may have got it. A thread that was woken and has not run yet waits no more.
"""

# ruff: noqa: SLF001 - what the standard library says of its locks has no other name

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator
from time import sleep
from types import FrameType
from typing import Any, Final

from ompy.mca.plugins.loading import OURS

OWN_THREADS: Final = "ompy "  # names of threads of ours begin so
# of `Thread.join`: until 3.12 a lock is waited for in a function of its own
_JOINS: Final = frozenset({"join", "_wait_for_tstate_lock"})
_ENDLESS: Final = (None, -1)
PAUSE: Final = 0.1  # s; arbitrary: twice that is soon for a person
LONGEST: Final = 2.0  # s; arbitrary: a look takes some microseconds


def program_threads() -> list[threading.Thread]:
    """Those that are not our own."""
    return [each for each in threading.enumerate() if not each.name.startswith(OWN_THREADS)]


def waits_for_threads(thread: threading.Thread, alive: Collection[threading.Thread]) -> bool:
    """Whether a thread goes on only if another one of the program does something.

    Args:
        thread: which; never the caller's own.
        alive: all threads of the program that have not ended.
    """
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None or frame.f_globals is not vars(threading) or _is_in_ours(frame):
        return False
    known, name = frame.f_locals, frame.f_code.co_name
    if frame.f_code is threading.Condition.wait.__code__:
        return _is_in_line(known)
    if name in _JOINS and isinstance(known.get("self"), threading.Thread):
        return known.get("timeout") in _ENDLESS and known["self"] in alive
    is_end = frame.f_code is threading._shutdown.__code__  # type: ignore[attr-defined]
    return is_end and any(each is not thread and not each.daemon for each in alive)


def when_nobody_is_left(then: Callable[[], object], over: Callable[[], bool]) -> None:
    """Call something once every thread of the program waits for others of it.

    Nothing wakes them then but a handler of a signal. Two looks some time apart agree.

    Args:
        then: what is called, by a thread of ours.
        over: whether nobody wants to know any longer.
    """

    def watch() -> None:
        pause, found = PAUSE, False
        while not over():
            sleep(pause)
            threads = program_threads()
            before, found = found, all(waits_for_threads(each, threads) for each in threads)
            if found and before:
                then()
                return
            pause = PAUSE if found else min(2 * pause, LONGEST)

    threading.Thread(target=watch, name=f"{OWN_THREADS}bereft", daemon=True).start()


def _is_in_line(known: dict[str, Any]) -> bool:
    """Whether `Condition.wait` has begun to wait and nobody has woken it: `notify` crosses out."""
    waiters = known["self"]._waiters
    return known["timeout"] is None and any(each is known.get("waiter") for each in waiters)


def _is_in_ours(frame: FrameType) -> bool:
    """Whether a call of MPI is under way there: what that waits for is not the program's."""
    for each in _outwards(frame):
        package = each.f_globals.get("__name__", "").partition(".")[0]
        if package in OURS:
            return True
        if package not in sys.stdlib_module_names:
            break  # the program: what is below may be what runs it
    return False


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
