"""The agent as another host's remote shell starts it (`agent_command.py` has the words).

Its standard input and output are the control connection to the launcher; where nothing protects
that, it proves itself first (`agent_proof.py`). It is two processes:
the agent proper, and a guard that is its parent. Whichever of them is killed, the other sees to
it that nothing of the job stays on this host.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final, NoReturn

from ompy import __version__, outputs
from ompy.runtime.agents.agent import LAUNCHER_GONE, PATIENCE, serve
from ompy.runtime.agents.agent_start import BANNER
from ompy.runtime.connections.control import Kind, encode
from ompy.runtime.connections.frame_io import send_all
from ompy.runtime.connections.pipes import Connection, PipePair
from ompy.runtime.ranks.descendants import (
    become_subreaper,
    control_process,
    die_with_parent,
    kill_descendants,
)
from ompy.runtime.ranks.warm import WarmStart

if TYPE_CHECKING:
    from ompy.runtime.agents.agent_proof import AgentProof
    from ompy.runtime.connections.sealed_connection import SealedConnection
    from ompy.runtime.ranks.forked import ForkedRank

_SET_NAME: Final = 15  # Linux PR_SET_NAME
_GUARD_NAME: Final = b"ompy-guard"


def main() -> None:
    """Be the guard, and the parent of the agent. Returns at the end of a rank it has become."""
    if os.isatty(0):
        sys.exit("this is started by ompy-run on other hosts, and talks to it alone")
    become_subreaper()
    guard = os.getpid()
    child = os.fork()
    if child == 0:
        _be_agent(guard).run()
        return
    control_process(_SET_NAME, _GUARD_NAME)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)  # or the launcher would not see the agent's end
    os.dup2(null, 1)
    _, status = os.waitpid(child, 0)
    kill_descendants(PATIENCE)
    os._exit(max(os.waitstatus_to_exitcode(status), 0) or int(status != 0))


def _be_agent(guard: int) -> ForkedRank:
    """The agent proper. SIGTERM, which it also gets when the guard dies, ends it tidily.

    Returns in a rank that is a fork of it.
    """
    warm = WarmStart()
    signal.signal(signal.SIGTERM, end_at_once)
    die_with_parent(guard, signal.SIGTERM)
    channel = PipePair(os.dup(0), os.dup(1))
    connection: Connection = channel
    proof: AgentProof | None = None
    try:
        if os.getppid() != guard:  # it died before the line above the last
            raise BrokenPipeError
        if len(sys.argv) > 1:
            connection, proof = _prove(channel, *sys.argv[1:])
            send_all(connection, encode(Kind.READY, _facts()))
        else:
            send_all(connection, BANNER + encode(Kind.READY, _facts()))
    except OSError:  # nobody is there to hear it
        os._exit(LAUNCHER_GONE)
    return serve(connection, warm, proof)


def _prove(channel: PipePair, name: str, secret: str) -> tuple[SealedConnection, AgentProof]:
    """Prove this agent to who has started it and the other way round."""
    from ompy.runtime.agents.agent_proof import accept  # few agents have to
    from ompy.runtime.connections.credentials import CredentialError

    try:
        return accept(channel, name, secret, BANNER)
    except CredentialError as problem:
        outputs.tell(
            f"ompy-agent: error: host {os.uname().nodename}: {problem}\n", "error", "error"
        )
        os._exit(LAUNCHER_GONE)


def end_at_once(*_: object) -> NoReturn:
    """A handler that raises nothing: Python drops what is raised in a callback of an import."""
    kill_descendants(PATIENCE)
    os._exit(LAUNCHER_GONE)


def _facts() -> dict[str, object]:
    """What the launcher wants to know of this host before it sends a job."""
    cores = len(os.sched_getaffinity(0))
    return {"version": __version__, "pid": os.getpid(), "cores": cores}


if __name__ == "__main__":
    main()
