"""Forking one rank: descriptors, process group, death with the agent, exec."""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import Final, NamedTuple, NoReturn

from ompy.frameworks.job import App
from ompy.runtime.control import AGENT_FD, Kind, encode, send_all
from ompy.runtime.descendants import die_with_parent

NOT_FOUND: Final = 127  # what a shell returns for a command it cannot find
NOT_EXECUTABLE: Final = 126  # what a shell returns for a file it cannot execute


class Spawned(NamedTuple):
    """A rank's process and the agent's ends of what it is connected by.

    Attributes:
        pid: also the number of its process group.
        door: over which an MPI process of the rank makes itself known.
        stdout: read end.
        stderr: read end.
        stdin: write end, or -1 when it reads the null device.
    """

    pid: int
    door: socket.socket
    stdout: int
    stderr: int
    stdin: int


class _Origin(NamedTuple):
    """What a child has to know of the agent it was forked from."""

    agent: int
    open_files: tuple[int, int]
    blocked: set[int]


def spawn(
    app: App,
    environment: Mapping[str, str],
    *,
    with_stdin: bool,
    open_files: tuple[int, int],
) -> Spawned:
    """Start a rank. That it cannot be executed is told over the door, before it exits.

    Args:
        app: its program.
        environment: its variables, but for `AGENT_FD`.
        with_stdin: give it a pipe to read from instead of the null device.
        open_files: its limits of open files.

    Raises:
        OSError: no process or descriptor to be had.
    """
    agent = os.getpid()
    with ExitStack() as theirs, ExitStack() as ours:
        door, inherited = socket.socketpair()
        theirs.callback(inherited.close)
        ours.callback(door.close)
        stdout, their_stdout = _pipe(ours, theirs)
        stderr, their_stderr = _pipe(ours, theirs)
        if with_stdin:
            their_stdin, stdin = _pipe(theirs, ours)
        else:
            their_stdin, stdin = os.open(os.devnull, os.O_RDONLY), -1
            theirs.callback(os.close, their_stdin)
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid = os.fork()
            if pid == 0:
                standard = (their_stdin, their_stdout, their_stderr)
                origin = _Origin(agent, open_files, blocked)
                _become(app, environment, origin, inherited, standard)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        _set_group(pid)
        ours.pop_all()
    for end in (stdout, stderr, stdin):
        if end >= 0:
            os.set_blocking(end, False)
    return Spawned(pid, door, stdout, stderr, stdin)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """A pipe whose ends `reader` and `writer` will close."""
    ends = os.pipe()
    reader.callback(os.close, ends[0])
    writer.callback(os.close, ends[1])
    return ends


def _set_group(pid: int) -> None:
    """Both parent and child do it: whoever comes first."""
    with suppress(OSError):  # it has executed already, so it has done it itself
        os.setpgid(pid, pid)


def _become(
    app: App,
    environment: Mapping[str, str],
    origin: _Origin,
    inherited: socket.socket,
    standard: tuple[int, int, int],
) -> NoReturn:
    """The child between fork and exec. Never returns, whatever happens.

    Signals are blocked until they do what they do to a new program: Python's own handler would
    take a SIGINT and lose it in the exec.
    """
    code = NOT_EXECUTABLE
    try:
        os.setpgid(0, 0)
        die_with_parent(origin.agent)
        _reset(origin)
        for number, end in enumerate(standard):
            os.dup2(end, number)
        os.set_inheritable(inherited.fileno(), True)
        if app.directory:
            os.chdir(app.directory)
        variables = {**environment, AGENT_FD: str(inherited.fileno())}
        os.execvpe(app.argv[0], app.argv, variables)  # noqa: S606 - starting programs is the task
    except BaseException as problem:
        if isinstance(problem, FileNotFoundError):
            code = NOT_FOUND
        reason = f"{getattr(problem, 'strerror', None) or problem}: {app.argv[0]}"
        if app.directory:
            reason += f" (in {app.directory})"
        send_all(inherited, encode(Kind.UNEXECUTABLE, {"code": code}, reason.encode()))
    finally:
        os._exit(code)


def _reset(origin: _Origin) -> None:
    """Undo what Python and the agent changed and an exec would keep."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_NOFILE, origin.open_files)
    signal.pthread_sigmask(signal.SIG_SETMASK, origin.blocked)


def raise_open_files(wanted: int) -> tuple[int, int]:
    """Let this process open `wanted` files if it may. Returns the limits as they were."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return soft, hard
