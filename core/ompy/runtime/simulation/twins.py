"""A rank's process that becomes two, each with a line of its own to who conducts its world."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import threading
from functools import cache
from typing import Final

from ompy.runtime.ranks import ending
from ompy.runtime.simulation.line import Line

_DIE_WITH_PARENT: Final = 1  # Linux PR_SET_PDEATHSIG


def make_twin(line: Line) -> None:
    """Be two from now on; both wait for an answer.

    A process that has other threads cannot: these would not be there in the second. It says so.
    """
    ours, theirs = socket.socketpair()
    if threading.active_count() > 1:
        line.send_end(theirs, 0)
        ours.close()
        theirs.close()
        return
    gc.freeze()  # what is not looked at again is not copied
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the twins
    process = _fork_as_it_is()
    if process:
        line.send_end(theirs, process)
        ours.close()
        theirs.close()
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    die_with_parent()
    ending.twin = os.getpid()
    theirs.close()
    line.replace(ours)


def _fork_as_it_is() -> int:
    """Fork as `os.fork` does, and let nobody notice in the child: it is the same rank.

    What the program and its libraries do in their children is left out: `random` begins anew, say.
    That is also most of the memory that a child would need for itself at once.

    Raises:
        OSError: there is no room for one more.
    """
    process: int = _libc().fork()
    if process < 0:
        problem = ctypes.get_errno()
        raise OSError(problem, os.strerror(problem))
    return process


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it has gone."""
    _libc().prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


@cache
def _libc() -> ctypes.PyDLL:
    return ctypes.PyDLL(None, use_errno=True)  # which keeps the interpreter's lock
