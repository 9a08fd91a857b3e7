"""The processes of a notebook's ranks: `ompy-run` in a session of its own, and what it says."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from ompy.addons.notebook.channel import REGISTRATION
from ompy.runtime.ranks.environment import OWN_CODE

READ_SIZE: Final = 65536  # bytes; Linux: what a pipe holds
KILL_PATIENCE_S: Final = 10.0  # s; arbitrary: what is killed goes at once
_POLL_S: Final = 0.002  # s; arbitrary: how often is looked whether it has gone
_RANK: Final = "from ompy.addons.notebook.worker import main; main()"


class NotebookJob:
    """`ompy-run` and below it the ranks.

    It dies with this process, whatever ends it; Ctrl-C goes to this process only.

    Attributes:
        output: descriptor of what `ompy-run` says; -1 when it has said all.
    """

    def __init__(self, size: int, mca: Sequence[tuple[str, str]], theirs: socket.socket) -> None:
        """Start it.

        Args:
            size: number of ranks.
            mca: parameters.
            theirs: the ranks' end of the registration socket; closed here once it is inherited.
        """
        self.output, writer = os.pipe()
        self._autopsy = os.memfd_create("ompy-autopsy")
        command = [
            sys.executable, *OWN_CODE, "-m", "ompy.cli.notebook.launcher", str(os.getpid()),
        ]  # fmt: skip
        command += ["-n", str(size), "--stdin", "none"]
        command += ["--autopsy", f"/proc/self/fd/{self._autopsy}"]
        for name, value in mca:
            command += ["--mca", name, value]
        command += [sys.executable, *OWN_CODE, "-c", _RANK]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - starting programs is the task
                command,
                env={**os.environ, REGISTRATION: str(theirs.fileno())},
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                pass_fds=(theirs.fileno(), self._autopsy),
                start_new_session=True,
            )
        finally:
            os.close(writer)
            theirs.close()

    def read_output(self) -> bytes:
        """What it has said; call it when `output` is readable. Nothing at its end."""
        data = os.read(self.output, READ_SIZE)
        if not data:
            os.close(self.output)
            self.output = -1
        return data

    def deadlock(self) -> dict[str, Any] | None:
        """What the launcher has proven, if ranks could never go on."""
        text = os.pread(self._autopsy, os.fstat(self._autopsy).st_size, 0)
        found = json.loads(text) if text else None
        return found if found is not None and found["proven"] else None

    def kill(self) -> None:
        """End all its processes at once and see that they have gone."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)  # its agent ends the ranks when it goes
        self._process.wait()
        deadline = time.monotonic() + KILL_PATIENCE_S
        if self.output >= 0:
            os.set_blocking(self.output, False)
        while self.output >= 0 and time.monotonic() < deadline:
            try:
                self.read_output()
            except BlockingIOError:
                time.sleep(_POLL_S)
        for descriptor in (self.output, self._autopsy):
            if descriptor >= 0:
                os.close(descriptor)
        self.output = self._autopsy = -1
