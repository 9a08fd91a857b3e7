"""A process that nobody has launched, and the job that it founds when it is to start others.

Alone it needs nobody. When it first asks for what only a launcher can do, it starts one
(`ompy.cli.launch.adopting`), and becomes rank 0 of that one's job (README.md, "started later").
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ompy.data.errors import ERR_RANK, ERR_SPAWN, MPIError
from ompy.frameworks.proc import Modex, Proc
from ompy.frameworks.wireup import Inquiry, WireUp

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.runtime.ranks.client import AgentClient

_SHELL: Final = "/bin/sh"
# as that of agents on other hosts, and for the same reasons (`agent_command.py`); it may be that
# only the program itself knows where ompy is. The launcher is of an upper floor, so by name
_CODE: Final = (
    "import os, sys; sys.path[0] = sys.path[0] or sys.prefix\n"
    "began = os.environ.pop('{}'); os.path.isdir(began) and os.chdir(began)\n"
    "root = sys.argv.pop(1)\n"
    "try: import ompy\n"
    "except ImportError: sys.path.append(root)\n"
    "from ompy.cli.launch.adopting import main; main()"
)


class SingletonWireUp(WireUp):
    """The wire-up of a process that nobody launched: its own, until it founds a job.

    Attributes:
        on_founded: called with the agent's client when this process has become one of a job.
    """

    def __init__(self) -> None:
        self._mine: dict[str, bytes] = {}
        self._client: AgentClient | None = None
        self.on_founded: Callable[[AgentClient], object] = lambda _client: None

    @property
    def job(self) -> Job | None:
        """What runs, once there is a job."""
        return self._client.job if self._client is not None else None

    def found_job(self) -> None:
        """Start a launcher that takes this process in.

        Raises:
            MPIError: ERR_SPAWN, there is none to be had.
        """
        if self._client is not None:
            return
        self._client = client = _adopted()
        for key, value in self._mine.items():
            client.publish(key, value)
        client.commit()
        self.on_founded(client)

    def publish(self, key: str, value: bytes) -> None:
        """Keep it."""
        self._mine[key] = value
        if self._client is not None:
            self._client.publish(key, value)

    def commit(self) -> None:
        """Without a job nobody is there to see it."""
        if self._client is not None:
            self._client.commit()

    def lookup(self, rank: int) -> Modex:
        """Without a job only the own entry exists."""
        if rank and self._client is not None:
            return self._client.lookup(rank)
        if rank:
            raise MPIError(ERR_RANK, f"there is no rank {rank} in a world of one")
        return self._mine

    def fence(self) -> None:
        """Nobody of this world to wait for."""

    def procs_from(self, rank: int) -> Sequence[Proc]:
        """Those that the agent knows of."""
        if self._client is None:
            return super().procs_from(rank)
        return self._client.procs_from(rank)

    def ask_launcher(self, what: str, header: Mapping[str, Any], body: bytes = b"") -> Inquiry:
        """Ask the launcher, after starting one if there is none."""
        self.found_job()
        assert self._client is not None, "there is a job now"
        return self._client.ask_launcher(what, header, body)

    def leaving(self, told: Sequence[int]) -> None:
        """The others hear of it, if there are any."""
        if self._client is not None:
            self._client.leaving(told)

    def finalized(self, calls: dict[str, Any] | None = None) -> None:
        """This process has finalized MPI."""
        if self._client is not None:
            self._client.finalized(calls)

    def set_expendable(self, on: bool) -> None:
        """Whether the job goes on without this process."""
        if self._client is not None:
            self._client.set_expendable(on)

    def leaves_shared_memory(self) -> None:
        """Have the agent remove it, if there is one."""
        if self._client is not None:
            self._client.leaves_shared_memory()

    def abort(self, code: int, reason: str) -> None:
        """End this process, and the job if there is one."""
        if self._client is not None:
            self._client.abort(code, reason)
        os._exit(code & 0xFF)

    def memory(self, name: str, size: int) -> int:
        """Anonymous memory; without a job of this process alone."""
        if self._client is not None:
            return self._client.memory(name, size)
        descriptor = os.memfd_create(name)
        os.ftruncate(descriptor, size)
        return descriptor

    def doorbell(self, local_rank: int) -> int:
        """An eventfd; without a job one nobody else has."""
        if self._client is not None:
            return self._client.doorbell(local_rank)
        return os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)


def _adopted() -> AgentClient:
    """Start a launcher, and be taken in by its agent.

    Raises:
        MPIError: ERR_SPAWN, there is none.
    """
    import socket  # late: most such processes need none

    import ompy
    from ompy.runtime.agents.agent_command import BEGAN_IN, START
    from ompy.runtime.connections.control import AGENT_FD
    from ompy.runtime.ranks.client import attach
    from ompy.runtime.ranks.environment import OWN_CODE

    ours, theirs = socket.socketpair()
    root = os.path.dirname(os.path.dirname(os.path.abspath(ompy.__file__)))
    words = [_SHELL, "-c", START, "sh", sys.executable, *OWN_CODE, "-c"]
    words += [_CODE.format(BEGAN_IN), root]
    words += [str(os.getpid()), *sys.orig_argv]
    try:
        with theirs:
            actions = [(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)]
            pid = os.posix_spawn(_SHELL, words, os.environ, file_actions=actions)
        os.waitpid(pid, 0)  # it forks at once, so that it is no child of the program's
        os.environ[AGENT_FD] = str(ours.detach())
        client = attach()
    except OSError as problem:
        raise MPIError(ERR_SPAWN, f"no launcher can be started: {problem}") from None
    except MPIError as problem:
        text = f"the launcher that was started does not take this process in: {problem.detail}"
        raise MPIError(ERR_SPAWN, text) from None
    assert client is not None, "the variable is set"
    return client
