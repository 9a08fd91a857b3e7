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
_IGNORE: Final = 1  # SIG_IGN of C
_ACTION: Final = 256  # bytes; arbitrary: more than C's `struct sigaction` has anywhere
_COLLAPSE: Final = 25  # Linux MADV_COLLAPSE
_HUGE: Final = 1 << 21  # bytes of a huge page of x86-64, and of arm64 with pages of 4 KiB
MANY: Final = 128  # twins; measured: joining pages takes as long as about so many save by it


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
    _twins.ignore_ends()
    process = _fork_as_it_is()
    if process:
        line.send_end(theirs, process)
        ours.close()
        theirs.close()
        return
    _twins.restore_handler()
    die_with_parent()
    ending.twin = os.getpid()
    theirs.close()
    line.replace(ours)


class _Twins:
    """What the twins of this process need.

    Python's own table of handlers does not hear of this: what the program has set stays there.
    """

    def __init__(self) -> None:
        self._made = 0
        self._before = ctypes.create_string_buffer(_ACTION)  # what SIGCHLD meant

    def ignore_ends(self) -> None:
        """Before one is made: nobody waits for its end."""
        if not self._made:
            _libc().sigaction(signal.SIGCHLD, None, self._before)
            _libc().signal(signal.SIGCHLD, ctypes.c_void_p(_IGNORE))
        self._made += 1
        if self._made == MANY:
            join_pages()

    def restore_handler(self) -> None:
        """In a new one, which has made none."""
        self._made = 0
        _libc().sigaction(signal.SIGCHLD, self._before, None)


_twins = _Twins()


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
