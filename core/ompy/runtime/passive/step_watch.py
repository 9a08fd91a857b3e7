"""Asking Slurm's hosts about tasks that end before they have begun MPI.

Who waits for the ranks of other hosts has srun run a watcher there (`watch.py`); on one's own host
a look at the processes is enough (`tasks.py`). Nothing is asked while a job starts as it should.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Final

from ompy.engine.reactor import Loop
from ompy.runtime.connections.blocking_calls import BlockingCalls
from ompy.runtime.launching.allocation import expand, repeat
from ompy.runtime.launching.launchers import Membership
from ompy.runtime.passive.tasks import count_tasks, step_name
from ompy.runtime.ranks.environment import OWN_CODE, own_import_path

if TYPE_CHECKING:
    from concurrent.futures import Future

LOOK: Final = 0.25  # s; arbitrary: twice that is far below two seconds
PATIENCE: Final = 1.0  # s; arbitrary: hosts of one step begin MPI within some tenths
STAGGER: Final = 30.0  # s; arbitrary: a thousand hosts need not ask at once what one has asked
_READ_SIZE: Final = 4096  # bytes at once; arbitrary: names of hosts, a line each
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


def watch_after(node: int) -> float:
    """How long a host looks for the coordinator before it watches the host of that, s.

    The second host is enough, unless it fails, too: then the next one finds it out later.

    Args:
        node: the number of the host in the step, from 1; that of the coordinator is 0.
    """
    return PATIENCE + STAGGER * (node - 1)


class StepWatch:
    """Watchers on other hosts, until all have come."""

    def __init__(
        self, loop: Loop, hosts: Mapping[str, int], on_gone: Callable[[str], object]
    ) -> None:
        """Start the watchers; without srun there are none.

        Args:
            loop: listens to them.
            hosts: which, with their number of tasks.
            on_gone: called with a host whose tasks have not all lived until now.
        """
        self._loop = loop
        self._on_gone = on_gone
        self._said = b""
        self._process: subprocess.Popen[bytes] | None = None
        srun = shutil.which("srun")
        if srun is None or not hosts:
            return
        self._process = subprocess.Popen(  # noqa: S603 - srun is how it is done
            [srun, *_watcher_words(hosts)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": own_import_path(os.environ)},
            start_new_session=True,
            bufsize=0,
        )
        loop.add_reader(_pipe(self._process.stdout), self._readable)

    def _readable(self) -> None:
        assert self._process is not None, "it has said something"
        data = os.read(_pipe(self._process.stdout).fileno(), _READ_SIZE)
        if not data:
            self.cancel()
            return
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            self._on_gone(line.decode(errors="replace").strip())

    def cancel(self) -> None:
        """Have the watchers end, by the end of their standard input; harmless when they have."""
        process, self._process = self._process, None
        if process is None:
            return
        self._loop.remove_reader(_pipe(process.stdout))
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                _pipe(pipe).close()
        ended = os.pidfd_open(process.pid)
        self._loop.add_reader(ended, self._reap, process, ended)

    def _reap(self, process: subprocess.Popen[bytes], ended: int) -> None:
        self._loop.remove_reader(ended)
        os.close(ended)
        process.wait()


def _pipe(end: IO[bytes] | None) -> IO[bytes]:
    assert end is not None, "watchers are started with both pipes"
    return end


def _watcher_words(hosts: Mapping[str, int]) -> list[str]:
    """What srun is told: one watcher on each host."""
    count = str(len(hosts))
    words = [*_STEP, "--nodes", count, "--ntasks", count, "--ntasks-per-node", "1"]
    words += ["--nodelist", ",".join(hosts), sys.executable, *OWN_CODE, "-m", _WATCHER]
    return [*words, step_name(os.environ), *(f"{host}={n}" for host, n in hosts.items())]


class TaskWatch:
    """Looks after the tasks of a step on this host, until one has ended or nobody wants to know.

    Twice in a row, as one may have begun just before it was looked for.
    """

    def __init__(
        self, loop: Loop, calls: BlockingCalls, wanted: int, on_gone: Callable[[], object]
    ) -> None:
        """Look from now on, again and again.

        Args:
            loop: keeps the time.
            calls: for the look, which goes through all processes of this host.
            wanted: tasks that have to be there.
            on_gone: called once when some are not.
        """
        self._loop = loop
        self._calls = calls
        self._wanted = wanted
        self._on_gone = on_gone
        self._few = 0  # looks in a row that found too few
        self._over = False
        self._timer = loop.call_later(LOOK, self._look)

    def cancel(self) -> None:
        """Look no more; harmless when it is over."""
        self._over = True
        self._timer.cancel()

    def _look(self) -> None:
        self._calls.start_call(self._counted, count_tasks, step_name(os.environ))

    def _counted(self, future: Future[int | None]) -> None:
        count = future.result()
        if self._over or count is None:  # a container hides them: there is no more to be known
            return
        self._few = self._few + 1 if count < self._wanted else 0
        if self._few == 2:
            self._over = True
            self._on_gone()
        else:
            self._timer = self._loop.call_later(LOOK, self._look)


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
