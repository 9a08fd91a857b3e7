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
    process = os.fork()
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


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it has gone."""
    _libc().prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
