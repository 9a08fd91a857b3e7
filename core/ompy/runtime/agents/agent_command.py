"""Agents on other hosts by a local command: a remote shell, or a resource manager's."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final, NoReturn

from ompy.frameworks.plm import AGENT_MODULE, AgentLink
from ompy.mca.parameter import Parameter
from ompy.runtime.ranks.descendants import die_with_parent

NOT_EXECUTABLE: Final = 126  # as a shell has it
# `-m` would import from the directory a shell begins in, whatever lies there; `-c` does before the
# code runs, from Python 3.13 on; `-P` would be seen by the programs that run in forks of the agent.
# So Python starts in the root's directory, and a folder without modules takes its place.
BEGAN_IN: Final = "OMPY_BEGAN_IN"
START: Final = f'{BEGAN_IN}=$PWD; export {BEGAN_IN}; cd / && exec "$@"'
AGENT_CODE: Final = (
    "import os, sys; sys.path[0] = sys.path[0] or sys.prefix; "
    f"began = os.environ.pop('{BEGAN_IN}'); os.path.isdir(began) and os.chdir(began); "
    f"from {AGENT_MODULE} import main; main()"
)

PYTHON: Final = Parameter(  # of each component that starts agents on other hosts
    "python",
    "string",
    "",
    "Python of the other hosts that has ompy; empty for the path of the launcher's own.",
    level=2,
)


def agent_words(python: str = "") -> list[str]:
    """The command that is an agent, on the host it is for. It names no secret.

    Args:
        python: of that host; empty for the path of the launcher's own.
    """
    words = ["sh", "-c", START, "sh", "env"]
    if os.environ.get("PYTHONPATH"):
        words.append(f"PYTHONPATH={os.environ['PYTHONPATH']}")
    return [*words, python or sys.executable, "-c", AGENT_CODE]


def start_by(command: Sequence[str], host: str) -> AgentLink:
    """Run a local command that starts an agent; a socket is its standard input and output.

    It dies with this process. The caller has one thread and no running event loop.

    Args:
        command: a path and arguments; where there is no such path, a program of its name in PATH.
        host: where the agent will be.
    """
    ours, theirs = socket.socketpair()
    pid = start_over(command, theirs)
    theirs.close()
    return AgentLink(host, ours, pid, remote=True)


def start_over(command: Sequence[str], connection: socket.socket) -> int:
    """Run a command whose standard input and output is a connection. Its process.

    It dies with this process. The caller has one thread and no running event loop.

    Args:
        command: a path and arguments; where there is no such path, a program of its name in PATH.
        connection: stays the caller's, too.
    """
    parent = os.getpid()
    path = command[0] if os.access(command[0], os.X_OK) else _of_this_host(command[0])
    pid = os.fork()
    if pid == 0:
        _become(path, command, connection, parent)
    return pid


def _of_this_host(path: str) -> str:
    """The path was found on the launcher's host, and another may have it elsewhere."""
    return shutil.which(os.path.basename(path)) or path


def _become(path: str, command: Sequence[str], connection: socket.socket, parent: int) -> NoReturn:
    """The child between fork and exec. Never returns, whatever happens.

    It has a session of its own: Ctrl-C is for the launcher, which then ends the ranks in peace.
    """
    try:
        os.setsid()
        die_with_parent(parent)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.dup2(connection.fileno(), 0)
        os.dup2(connection.fileno(), 1)
        os.execv(path, [*command])  # noqa: S606 - starting it is the task
    except OSError as problem:
        os.write(2, f"ompy-run: {path}: {problem.strerror}\n".encode())
    finally:
        os._exit(NOT_EXECUTABLE)
