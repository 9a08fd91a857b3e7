"""A process that forks each time it is asked to. Compiled, `forks.pxd` takes its place.

A process and its forks have the same pages until one of both writes to them; that one is given a
copy then, and pages that were joined to a huge one are apart again. Python writes to whatever it
looks at. So the process waits in C, where it writes to its stack alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
from typing import Final

HERE: Final = 0  # this is a fork
OTHER: Final = 1  # something else was said, a signal has come, or nobody is there any more
MOST: Final = 2  # as many forks were made as were to be
_DIE_WITH_PARENT: Final = 1  # Linux PR_SET_PDEATHSIG
_IGNORE: Final = 1  # SIG_IGN of C
_ACTION: Final = 256  # bytes; arbitrary: more than C's `struct sigaction` has anywhere
_NUMBER: Final = struct.Struct("!I")
_library: Final = ctypes.PyDLL(None, use_errno=True)  # which keeps the interpreter's lock
_before: Final = ctypes.create_string_buffer(_ACTION)  # what SIGCHLD meant
_ignores: Final[list[int]] = []  # this process, once it ignores the ends of its forks


def fork_when_asked(line: int, asked: bytes, most: int) -> int:
    """Be two for each question that comes, until something else does; the first has come already.

    Each fork has a line of its own in place of this one, whose other end goes over this one with
    the fork's number: four bytes, network order. The kernel kills it when this process has gone.
    Nobody waits for its end.

    Python's own table of handlers hears of none of that: what the program has set stays there. What
    the program and its libraries do in their children is left out: `random` begins anew, say.

    Args:
        line: descriptor of a socket.
        asked: the bytes of a question, 64 at most.
        most: give the turn back as soon as so many were made; 0 for no such bound.

    Returns:
        HERE in a fork. Else OTHER, where what has come is still to be read, or MOST.

    Raises:
        OSError: there is no room for one more, or for its line.
    """
    if _ignores != [os.getpid()]:
        _library.sigaction(signal.SIGCHLD, None, _before)
        _library.signal(signal.SIGCHLD, ctypes.c_void_p(_IGNORE))
        _ignores[:] = [os.getpid()]
    made = 0
    with socket.socket(fileno=os.dup(line)) as end:
        while True:
            if not _fork_once(end, line):
                return HERE
            made += 1
            if made == most:
                return MOST
            if end.recv(len(asked), socket.MSG_PEEK) != asked:
                return OTHER
            end.recv(len(asked))


def _fork_once(end: socket.socket, line: int) -> int:
    """Returns the number of the fork, and 0 there."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process: int = _library.fork()
        if process < 0:
            problem = ctypes.get_errno()
            raise OSError(problem, os.strerror(problem))
        if process:
            socket.send_fds(end, [_NUMBER.pack(process)], [theirs.fileno()])
            return process
        _library.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        _library.sigaction(signal.SIGCHLD, _before, None)
        os.dup2(ours.fileno(), line, inheritable=False)
        return 0
