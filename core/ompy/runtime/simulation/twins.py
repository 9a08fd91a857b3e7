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
from ompy.runtime.simulation import forks
from ompy.runtime.simulation.line import FORK, Line

_DIE_WITH_PARENT: Final = 1  # Linux PR_SET_PDEATHSIG
_COLLAPSE: Final = 25  # Linux MADV_COLLAPSE
_HUGE: Final = 1 << 21  # bytes of a huge page of x86-64, and of arm64 with pages of 4 KiB
MANY: Final = 24  # twins; measured: joining pages takes as long as about so many save by it


def make_twin(line: Line) -> None:
    """Be two from now on, and one more each time the same is asked; all wait for an answer.

    A process that has other threads cannot: these would not be there in the second. It says so.

    Raises:
        OSError: there is no room for one more.
    """
    if threading.active_count() > 1:
        ours, theirs = socket.socketpair()
        line.send_end(theirs, 0)
        ours.close()
        theirs.close()
        return
    gc.freeze()  # what is not looked at again is not copied
    found = forks.fork_when_asked(line.descriptor, FORK, 0 if _joined else MANY)
    if found == forks.HERE:
        _joined.clear()
        ending.twin = os.getpid()
    elif found == forks.MOST:
        _joined.append(True)
        join_pages()


_joined: Final[list[bool]] = []  # of this process, once they are


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it has gone."""
    _libc().prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)


def join_pages() -> None:
    """Have the kernel make huge pages of this process's own memory, as far as it can.

    A fork copies an entry of the page table for each page, of which a huge one has one. What is
    written afterwards is copied in small pages, as before.
    """
    with open("/proc/self/maps") as maps:
        regions = [line.split() for line in maps]
    for where, access, _, _, inode, *name in regions:
        if access != "rw-p" or inode != "0" or name not in ([], ["[heap]"]):
            continue
        begin, end = (int(one, 16) for one in where.split("-"))
        for at in range(-(-begin // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
            _libc().madvise(ctypes.c_void_p(at), ctypes.c_size_t(_HUGE), _COLLAPSE)


@cache
def _libc() -> ctypes.PyDLL:
    return ctypes.PyDLL(None, use_errno=True)  # which keeps the interpreter's lock
