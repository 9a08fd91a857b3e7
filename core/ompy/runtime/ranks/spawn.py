"""Forking one rank: descriptors, process group, death with the agent; exec, or the program."""

from __future__ import annotations

import os
import resource
import signal
import socket
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from ompy.frameworks.job import App
from ompy.runtime.connections.control import AGENT_FD, Kind, encode
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.ranks.descendants import die_with_parent

if TYPE_CHECKING:
    from ompy.runtime.ranks.forked import ForkedRank
    from ompy.runtime.ranks.warm import Program

NOT_FOUND: Final = 127  # what a shell returns for a command it cannot find
NOT_EXECUTABLE: Final = 126  # what a shell returns for a file it cannot execute


class Spawned(NamedTuple):
    """A rank's process and the agent's ends of what it is connected by.

    Attributes:
        pid: also the number of its process group.
        registration: over which an MPI process of the rank makes itself known.
        stdout: read end.
        stderr: read end.
        stdin: write end, or -1 when it reads the null device.
    """

    pid: int
    registration: socket.socket
    stdout: int
    stderr: int
    stdin: int


class Setting(NamedTuple):
    """What few ranks have.

    Attributes:
        threads: hardware threads that it is bound to; none if it is not.
        merged: its standard error goes where its standard output does.
        terminal: path of a terminal that is all its standard streams; empty for the pipes.
    """

    threads: frozenset[int] = frozenset()
    merged: bool = False
    terminal: str = ""


PLAIN: Final = Setting()


class _Origin(NamedTuple):
    """What a child has to know of the agent it was forked from."""

    agent: int
    open_files: tuple[int, int]
    blocked: set[int]
    ignored: frozenset[int]
    setting: Setting


def spawn(
    app: App,
    environment: Mapping[str, str],
    *,
    with_stdin: bool,
    open_files: tuple[int, int],
    program: Program | None = None,
    ignored: frozenset[int] = frozenset(),
    orders: int = -1,
    setting: Setting = PLAIN,
) -> Spawned | ForkedRank:
    """Start a rank. That it cannot be executed is told over its registration socket.

    Args:
        app: its program.
        environment: its variables, but for `AGENT_FD`.
        with_stdin: give it a pipe to read from instead of the null device.
        open_files: its limits of open files.
        program: the same, if the fork itself is to run it.
        ignored: signals that were ignored before this process took them over.
        orders: where a spare is told all that (`spares.py`); -1: it is not one.
        setting: what else it is to have.

    Returns:
        In the agent the process. In a fork that is to run the program, that: its caller returns
        with it as far as it can, and runs it.

    Raises:
        OSError: no process or descriptor to be had.
    """
    agent = os.getpid()
    with ExitStack() as theirs, ExitStack() as ours:
        registration, inherited = socket.socketpair()
        theirs.callback(inherited.close)
        ours.callback(registration.close)
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
                origin = _Origin(agent, open_files, blocked, ignored, setting)
                if orders >= 0:
                    ends = (registration.fileno(), stdout, stderr, *standard, inherited.fileno())
                    return _spare(orders, origin, inherited, standard, ends)
                if program is not None:
                    return _fork_of(app, environment, origin, inherited, standard, program)
                _become(app, environment, origin, inherited, standard)
        finally:
            if os.getpid() == agent:  # in the rank they are blocked until its program begins
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        _set_group(pid)
        ours.pop_all()
    for end in (stdout, stderr, stdin):
        if end >= 0:
            os.set_blocking(end, False)
    return Spawned(pid, registration, stdout, stderr, stdin)


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
        variables = _prepare(app, environment, origin, inherited, standard)
        _reset(origin)
        os.execvpe(app.argv[0], app.argv, variables)  # noqa: S606 - starting programs is the task
    except BaseException as problem:
        if isinstance(problem, FileNotFoundError):
            code = NOT_FOUND
        send_all(inherited, encode(Kind.UNEXECUTABLE, {"code": code}, _reason(problem, app)))
    finally:
        os._exit(code)


def _reason(problem: BaseException, app: App) -> bytes:
    """Why a program cannot be run, and where."""
    reason = f"{getattr(problem, 'strerror', None) or problem}: {app.argv[0]}"
    return (f"{reason} (in {app.directory})" if app.directory else reason).encode()


def _prepare(
    app: App,
    environment: Mapping[str, str],
    origin: _Origin,
    inherited: socket.socket,
    standard: tuple[int, int, int],
) -> dict[str, str]:
    """What every rank has of its agent. Returns its variables."""
    os.setpgid(0, 0)
    die_with_parent(origin.agent)
    signal.set_wakeup_fd(-1)
    for number in origin.ignored:
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_NOFILE, origin.open_files)
    for number, end in enumerate(standard):
        os.dup2(end, number)
    if origin.setting.terminal:
        opened = os.open(origin.setting.terminal, os.O_RDWR | os.O_NOCTTY)
        for number in range(len(standard)):
            os.dup2(opened, number)
        os.close(opened)
    elif origin.setting.merged:
        os.dup2(1, 2)
    if origin.setting.threads:
        from ompy.runtime.place.host_place import bind_process  # few jobs ask for it

        bind_process(0, origin.setting.threads)
    if app.directory:
        os.chdir(app.directory)
    os.set_inheritable(inherited.fileno(), True)
    return {**environment, AGENT_FD: str(inherited.fileno())}


def _spare(
    orders: int,
    origin: _Origin,
    inherited: socket.socket,
    standard: tuple[int, int, int],
    kept: tuple[int, ...],
) -> ForkedRank:
    """The child that waits to be told what it is; its signals stay blocked until it runs that."""
    from ompy.runtime.launching.spares import await_order

    os.setpgid(0, 0)
    die_with_parent(origin.agent)
    app, environment, program = await_order(orders, kept)
    return _fork_of(app, environment, origin, inherited, standard, program)


def _fork_of(
    app: App,
    environment: Mapping[str, str],
    origin: _Origin,
    inherited: socket.socket,
    standard: tuple[int, int, int],
    program: Program,
) -> ForkedRank:
    """The child that is to run the program itself; its signals stay blocked until it does.

    It keeps the inherited socket by its number, for whoever will attach. Leaving the agent's
    functions closes all other descriptors that these have.
    """
    from ompy.runtime.ranks.forked import ForkedRank

    try:
        variables = _prepare(app, environment, origin, inherited, standard)
        inherited.detach()
        return ForkedRank(program, variables, origin.blocked)
    except BaseException as problem:
        said = encode(Kind.UNEXECUTABLE, {"code": NOT_EXECUTABLE}, _reason(problem, app))
        send_all(inherited, said)
        os._exit(NOT_EXECUTABLE)


def _reset(origin: _Origin) -> None:
    """Undo what Python changed and an exec would keep."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, origin.blocked)


def raise_open_files(wanted: int) -> tuple[int, int]:
    """Let this process open `wanted` files if it may. Returns the limits as they were."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return soft, hard
