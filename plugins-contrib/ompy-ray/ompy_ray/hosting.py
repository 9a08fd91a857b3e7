"""What an actor does for a job: an agent as its child, which the launcher calls."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import Final

from ompy.runtime.dialing.starting_dialer import LISTENS, PATIENCE_S
from ompy.runtime.launching.launchers import SECRET
from ompy.runtime.ranks.environment import OWN_CODE

# Ray's workers have threads, so nothing may run between fork and exec; the child sees to it itself
# that it dies with the actor: Linux prctl(PR_SET_PDEATHSIG, SIGKILL)
TIED: Final = (
    "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 9); "
    "os.getppid() == int(sys.argv[1]) or os._exit(1); os.execv(sys.argv[2], sys.argv[2:])"
)
_KEY: Final = "key"


def tied(*words: str) -> list[str]:
    """The command that dies with this process, as long as the calling thread lives."""
    return [sys.executable, *OWN_CODE, "-c", TIED, str(os.getpid()), *words]


def write_secret(secret: bytes) -> str:
    """Put a job's secret where only this user can read it. The path of the file."""
    folder = tempfile.mkdtemp(prefix="ompy-ray-")
    path = os.path.join(folder, _KEY)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secret)
    return path


def remove_secret(path: str) -> None:
    """Take it away again, with its folder."""
    shutil.rmtree(os.path.dirname(path), ignore_errors=True)


class AgentHost:
    """An actor: one on each node of a job. Its agent dies with it."""

    def __init__(self) -> None:
        """Begin nothing."""
        self._agent: subprocess.Popen[bytes] | None = None
        self._path = ""

    def start_agent(self, secret: bytes) -> int:
        """Start the agent.

        Args:
            secret: of the job, which came over Ray's own connection.

        Returns:
            The port at which it waits for the launcher.

        Raises:
            RuntimeError: it did not start.
        """
        self._path = write_secret(secret)
        waiting = ("-m", "ompy.cli.start", "agent", "--port", "0", "--patience", str(PATIENCE_S))
        self._agent = subprocess.Popen(  # noqa: S603 - our own
            tied(sys.executable, *OWN_CODE, *waiting),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={**os.environ, SECRET: self._path},
        )
        assert self._agent.stdout is not None, "it was asked for"
        said = self._agent.stdout.readline().decode(errors="replace")
        before, found, port = said.partition(LISTENS)
        if before or not found:
            raise RuntimeError(f"no agent was started on node {os.uname().nodename}: {said!r}")
        return int(port)

    def stop_agent(self, patience_s: float) -> None:
        """Wait until the agent has ended, as it does with its job, and remove the secret.

        Args:
            patience_s: then it is killed.
        """
        if self._agent is not None:
            try:
                self._agent.wait(patience_s)
            except subprocess.TimeoutExpired:
                self._agent.kill()
                self._agent.wait()
        if self._path:
            remove_secret(self._path)
