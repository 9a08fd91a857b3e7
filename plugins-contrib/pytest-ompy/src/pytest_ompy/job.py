"""The processes of a pool: `ompy-run`, in a session of its own, and what it and its ranks write."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from typing import Final

from pytest_ompy.channel import REGISTRATION
from pytest_ompy.plan import Pairs

READ_SIZE: Final = 65536  # bytes; Linux: what a pipe holds
TAIL_SIZE: Final = 65536  # bytes; arbitrary: the end of what was written, for a report
KILL_PATIENCE_S: Final = 10.0  # s; arbitrary: what is killed goes at once
_HEADLINE: Final = re.compile(r"\bRank (\d+)\b")
_RULE: Final = "-" * 20  # what ompy-run puts around its words on the end of a job begins so


class JobProcess:
    """`ompy-run` and below it the ranks of one pool.

    It dies with this process, whatever ends it; Ctrl-C at the terminal goes to this process only.

    Attributes:
        output: descriptor of what the job writes, standard output and error alike.
    """

    def __init__(
        self,
        size: int,
        mca: Pairs,
        directory: str,
        registration_socket: socket.socket,
        echo: bool,
        report: str,
    ):
        """Start it.

        Args:
            size: number of ranks.
            mca: parameters.
            directory: to run in.
            registration_socket: the ranks' end; closed here once it is inherited.
            echo: pass on what is written to standard output, line by line with its rank.
            report: a file for what the checker finds; empty for ranks that are not checked.
        """
        self.output, writer = os.pipe()
        self._tail = bytearray()
        self._echo = echo
        command = [sys.executable, "-m", "pytest_ompy.launcher", str(os.getpid())]
        command += ["-n", str(size), "--stdin", "none"]
        command += ["--check-report", report] if report else ["--no-deadlock-detection"]
        command += ["--tag-output"] if echo else []
        for name, value in mca:
            command += ["--mca", name, value]
        command += [sys.executable, "-m", "pytest_ompy.worker"]
        environment = {**os.environ, REGISTRATION: str(registration_socket.fileno())}
        environment.pop("PYTEST_CURRENT_TEST", None)
        try:
            self._process = subprocess.Popen(  # noqa: S603 - starting programs is the task
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=writer,
                stderr=writer,
                pass_fds=(registration_socket.fileno(),),
                start_new_session=True,
            )
        finally:
            os.close(writer)
            registration_socket.close()

    def read(self) -> bool:
        """Take what was written; call it when `output` is readable. False at its end."""
        if self.output < 0:
            return False
        data = os.read(self.output, READ_SIZE)
        if not data:
            os.close(self.output)
            self.output = -1
            return False
        self._tail += data
        del self._tail[:-TAIL_SIZE]
        if self._echo:
            os.write(1, data)
        return True

    def text(self) -> str:
        """The end of what was written."""
        return self._tail.decode(errors="replace").strip()

    def how_it_ended(self) -> str:
        """What `ompy-run` said of the end of the job, or its exit code."""
        lines = self.text().splitlines()
        rules = [number for number, line in enumerate(lines) if line.startswith(_RULE)]
        if len(rules) >= 2:
            return "\n".join(lines[rules[-2] + 1 : rules[-1]])
        return f"the job has ended with exit code {self._process.poll()}"

    def first_failed_rank(self) -> int | None:
        """The rank whose end was the first, as far as `ompy-run` has named one."""
        found = _HEADLINE.search(self.how_it_ended())
        return int(found.group(1)) if found else None

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def end(self) -> None:
        """Have `ompy-run` end the ranks, and do what it does at the end of a job."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End all its processes at once and see that they have gone."""
        if self.running:
            self._process.send_signal(signal.SIGKILL)  # its agent ends the ranks when it goes
        self._process.wait()
        deadline = time.monotonic() + KILL_PATIENCE_S
        if self.output >= 0:
            os.set_blocking(self.output, False)
        while self.output >= 0 and time.monotonic() < deadline:
            self._read_some()
        self.close()

    def _read_some(self) -> None:
        try:
            self.read()
        except BlockingIOError:
            time.sleep(0.002)

    def close(self) -> None:
        """Read no more."""
        if self.output >= 0:
            os.close(self.output)
            self.output = -1
