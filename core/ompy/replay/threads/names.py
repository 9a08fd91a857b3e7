"""Names of threads that are the same in each run: whose child a thread is, and the how-manieth.

`main.2.1` is the first thread that the second thread of the main one has started. What `threading`
calls a thread counts all of them together, and the kernel's numbers are others each time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

MAIN: Final = "main"  # the thread that the rank came up in
OWN: Final = "ompy "  # names of threads of ours begin so
# attributes of threads that debugpy and pydevd start for themselves
DEBUGGERS: Final = ("pydev_do_not_trace", "is_pydev_daemon_thread")
_PATH: Final = "_ompy_replay_path"
_CHILDREN: Final = "_ompy_replay_children"


def path_here() -> str:
    """The name of the calling thread; empty for one that `threading.Thread` did not start."""
    found: str = getattr(threading.current_thread(), _PATH, "")
    return found


def watch_starts(begins: Callable[[str, threading.Thread], object]) -> None:
    """Give each thread that is started from now on its name, for good. The caller's is MAIN.

    Args:
        begins: called with the name and the thread, before it runs.
    """
    setattr(threading.current_thread(), _PATH, MAIN)
    original = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        path = "" if _is_no_program(thread) or thread.ident else _name_child(thread)
        if path:
            begins(path, thread)
        original(thread)

    threading.Thread.start = start  # type: ignore[assignment, method-assign]


def _is_no_program(thread: threading.Thread) -> bool:
    """Whether a thread is one of ours, or of a debugger: it has no turns, and is nobody's child."""
    return thread.name.startswith(OWN) or any(getattr(thread, each, False) for each in DEBUGGERS)


def _name_child(thread: threading.Thread) -> str:
    parent = threading.current_thread()
    above: str = getattr(parent, _PATH, "")
    if not above:  # of a stranger nobody knows which child it is
        return ""
    number = getattr(parent, _CHILDREN, 0) + 1
    setattr(parent, _CHILDREN, number)
    path = f"{above}.{number}"
    setattr(thread, _PATH, path)
    return path
