"""A rank that another launcher has started, and the way to the passive agent of its host."""

from __future__ import annotations

import errno
import os
import socket
import sys
import time
from typing import Final

from ompy.data.errors import ERR_OTHER, MPIError
from ompy.runtime.connections.control import ControlError, Decoder, Frame, Kind, encode
from ompy.runtime.connections.frame_io import receive_frames, send_all
from ompy.runtime.launching.launchers import Membership
from ompy.runtime.ranks.client import AgentClient
from ompy.runtime.ranks.environment import OWN_CODE, identity, own_import_path

AGENT: Final = "ompy.runtime.passive.agent"  # what is run for a host: `python -P -m` it
BACKLOG: Final = 4096  # arbitrary: more ranks than a host will run
PATIENCE: Final = 10.0  # s; arbitrary: an agent starts in some tenths, and one that ends is quick
_PAUSE: Final = 0.01  # s; arbitrary: from bind to listen it is microseconds
_NAME_MAX: Final = 100  # bytes; Linux has 108 for the address of a Unix socket


def agent_socket_name(member: Membership) -> str:
    """The abstract socket of the agent of this host: no file, and gone with its last user."""
    name = f"\0ompy:{os.geteuid()}:{member.job}"
    if len(name.encode()) <= _NAME_MAX:
        return name
    import hashlib

    return f"\0ompy:{os.geteuid()}:{hashlib.sha256(member.job.encode()).hexdigest()}"


def join(member: Membership) -> AgentClient:
    """Make this process a rank of the job. Returns when all other ranks have come, too.

    What this process starts are plain programs from then on.

    Raises:
        MPIError: ERR_OTHER: there is no way to an agent, or it refuses us; the text says why.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        connection = _reach(member, deadline)
        decoder = Decoder()
        try:
            hello = {
                "rank": member.rank,
                "local_rank": member.local_rank,
                "cores": sorted(os.sched_getaffinity(0)),
                "parent": os.getppid(),
                "argv": sys.orig_argv[:8],  # arbitrary: who reads a message knows the rest
            }
            answer = _exchange_hello(connection, decoder, encode(Kind.HELLO, hello))
        except (OSError, ControlError) as problem:
            connection.close()
            raise _no_agent(str(problem)) from None
        if answer.kind is not Kind.ALIVE:
            return _admitted(connection, decoder, answer)
        connection.close()  # it was the end of an earlier program of the same step
        if time.monotonic() > deadline:
            raise _no_agent("it ends without an answer")
        time.sleep(_PAUSE)


def _exchange_hello(connection: socket.socket, decoder: Decoder, hello: bytes) -> Frame:
    """What the agent answers; ALIVE if it has ended, by which there will be another."""
    try:
        send_all(connection, hello)
    except ConnectionError:  # between our connecting and this
        return Frame(Kind.ALIVE, {}, b"")
    return _first_frame(connection, decoder)


def _admitted(connection: socket.socket, decoder: Decoder, answer: Frame) -> AgentClient:
    if answer.kind is not Kind.ADMITTED:
        connection.close()
        if not answer.body:  # the reason has been told, once for all ranks
            os._exit(answer.header["code"])
        raise MPIError(ERR_OTHER, answer.body.decode())
    client = AgentClient(connection, decoder, answer)
    placement = client.job.placements[client.rank]
    os.environ.update(identity(client.job, placement, len(client.job.placements)))
    return client


def _no_agent(why: str) -> MPIError:
    text = f"no agent of this host takes this process: {why}; a message above may say more"
    return MPIError(ERR_OTHER, text)


def _first_frame(connection: socket.socket, decoder: Decoder) -> Frame:
    """What the agent answers when all ranks are here; ALIVE if it ends before it has taken us.

    Raises:
        ConnectionError: it ends when it has.
    """
    taken = False
    while True:
        while (frame := decoder.next()) is None:
            try:
                there = receive_frames(connection, decoder)
            except ConnectionError:
                there = False
            if not there and not taken:
                return Frame(Kind.ALIVE, {}, b"")
            if not there:
                raise ConnectionError("it has been killed, or failed")
        if frame.kind is not Kind.ALIVE:
            return frame
        taken = True


def _reach(member: Membership, deadline: float) -> socket.socket:
    """A connection to the agent of this host, which is started if there is none."""
    name = agent_socket_name(member)
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(name)
        except OSError as problem:
            connection.close()
            if problem.errno != errno.ECONNREFUSED or time.monotonic() > deadline:
                raise _no_agent(problem.strerror or str(problem)) from None
        else:
            _see_that_it_is_ours(connection)
            return connection
        if not _start_agent(name):
            time.sleep(_PAUSE)


def _see_that_it_is_ours(connection: socket.socket) -> None:
    """Any user may take the name."""
    from ompy.runtime.ranks.rank_server import peer_credentials

    _, user = peer_credentials(connection)
    if user != os.geteuid():
        connection.close()
        raise _no_agent(f"user {user} has taken the place of ours")


def _start_agent(name: str) -> bool:
    """Start the agent with a listening socket as its standard input; false if there is one."""
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(name)
        except OSError as problem:
            if problem.errno == errno.EADDRINUSE:
                return False
            raise _no_agent(problem.strerror or str(problem)) from None
        listener.listen(BACKLOG)
        actions = [
            (os.POSIX_SPAWN_DUP2, listener.fileno(), 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        ]
        words = [sys.executable, *OWN_CODE, "-m", AGENT]
        variables = {**os.environ, "PYTHONPATH": own_import_path(os.environ)}
        try:
            pid = os.posix_spawn(
                sys.executable, words, variables, file_actions=actions, setsid=True
            )
        except OSError as problem:
            raise _no_agent(f"{sys.executable} cannot be started: {problem}") from None
        os.waitpid(pid, 0)  # it forks at once, so that it is no child of the program's
    return True
