"""Asking Slurm's hosts about tasks that end before they have begun MPI.

Who waits for the ranks of other hosts has srun run a watcher there (`watch.py`); on one's own host
a look at the processes is enough (`tasks.py`). Nothing is asked while a job starts as it should.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from ompy.runtime.allocation import expand, repeat
from ompy.runtime.environment import OWN_CODE, own_import_path
from ompy.runtime.launchers import Membership
from ompy.runtime.passive.tasks import step_name

PATIENCE: Final = 1.0  # s; arbitrary: hosts of one step begin MPI within some tenths
_WATCHER: Final = "ompy.runtime.passive.watch"
_STEP: Final = ("--overlap", "--quiet", "--unbuffered", "--mpi=none", "--kill-on-bad-exit=0")


def tasks_by_host(environment: Mapping[str, str]) -> dict[str, int]:
    """The hosts of this step as Slurm calls them, with their tasks; empty when that is unknown."""
    try:
        hosts = expand(environment.get("SLURM_STEP_NODELIST", ""))
        counts = repeat(environment.get("SLURM_STEP_TASKS_PER_NODE", ""))
        return dict(zip(hosts, counts, strict=True))
    except ValueError:
        return {}


def watched(member: Membership) -> bool:
    """Whether this is a step whose tasks can be looked at."""
    return member.launcher == "srun" and bool(step_name(os.environ))


class StepWatch:
    """Watchers on other hosts, until all have come."""

    def __init__(self, hosts: Mapping[str, int], on_gone: Callable[[str], object]) -> None:
        """Prepare; `run` runs.

        Args:
            hosts: which, with their number of tasks.
            on_gone: called with a host whose tasks have not all lived until now.
        """
        self._hosts = hosts
        self._on_gone = on_gone
        self._process: asyncio.subprocess.Process | None = None

    async def run(self) -> None:
        """Start the watchers and pass on what they say, until they or this task are ended."""
        srun = shutil.which("srun")
        if srun is None or not self._hosts:
            return
        count = str(len(self._hosts))
        words = [*_STEP, "--nodes", count, "--ntasks", count, "--ntasks-per-node", "1"]
        words += ["--nodelist", ",".join(self._hosts), sys.executable, *OWN_CODE, "-m", _WATCHER]
        words += [step_name(os.environ), *(f"{host}={n}" for host, n in self._hosts.items())]
        self._process = await asyncio.create_subprocess_exec(
            srun,
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": own_import_path(os.environ)},
            start_new_session=True,
        )
        try:
            assert self._process.stdout is not None
            while line := await self._process.stdout.readline():
                self._on_gone(line.decode().strip())
        finally:
            self._end()

    def _end(self) -> None:
        """Its standard input ends, so the watchers do."""
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError):
                self._process.stdin.close()


def gone_early(host: str) -> str:
    """What is said of it."""
    return (
        f"a task on host {host} ended before it began MPI, so not all ranks of the job can come; "
        "its output above may say why. The job was ended"
    )


def cancel_step() -> None:
    """Have Slurm end the whole step: for a host that no other can be told through."""
    scancel = shutil.which("scancel")
    if scancel is not None:
        words = [scancel, "--quiet", step_name(os.environ)]
        with suppress(OSError):
            os.posix_spawn(scancel, words, os.environ)
