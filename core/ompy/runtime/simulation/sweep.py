"""Many worlds, each in a process of its own that is forked from the same beginning.

So one world cannot leave anything behind for the next, and a world comes out the same wherever in a
sweep it is run.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from ompy.runtime.diagnosis.shortage import Short, shortage
from ompy.runtime.simulation.simulated_world import Outcome, Scenario, World

OUTPUT_KEPT: Final = 65_536  # bytes; arbitrary: the end of what a world's ranks have written
_DIE_WITH_PARENT: Final = 1  # Linux PR_SET_PDEATHSIG
BROKEN: Final = 70  # exit code of a world's process; arbitrary: nobody but us sees it
TOO_LITTLE: Final = 71  # exit code, too; the last line of its output says of what
FULL: Final = "what a world has to say is too large for a file here; raise the limit (ulimit -f)"


class Trial(NamedTuple):
    """One world that has been run.

    Attributes:
        scenario: what it was made of.
        outcome: how it ended.
        output: the end of what its ranks wrote.
    """

    scenario: Scenario
    outcome: Outcome
    output: str

    @property
    def failed(self) -> bool:
        """Whether it ended badly."""
        return bool(self.outcome.code)

    @property
    def signature(self) -> tuple[str, int, str]:
        """What two failures have in common that are taken for the same.

        How the world ended, its exit code, and the name of the exception if there was one.
        """
        raised = re.search(r"exit code \d+, (\w+)", self.outcome.text)
        return self.outcome.kind, self.outcome.code, raised[1] if raised else ""


class WorldBroke(RuntimeError):
    """A world's process ended without an outcome: a mistake of ours."""


class _Running:
    """A world under way in a process of its own."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.output = os.memfd_create("output")
        self._result = os.memfd_create("result")
        sys.stdout.flush()
        sys.stderr.flush()
        self.process = os.fork()
        if not self.process:
            self._be()

    def _be(self) -> None:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        code = BROKEN
        try:
            outcome = World(self.scenario._replace(output=self.output)).run()
            with open(self._result, "wb", closefd=False) as result:
                result.write(marshal.dumps(tuple(outcome)))
            code = 0
        except BaseException as problem:
            code = TOO_LITTLE if (short := _short(problem)) else BROKEN
            with suppress(OSError):
                os.write(self.output, (short or traceback.format_exc()).encode())
        finally:
            os._exit(code)

    def finish(self, status: int) -> Trial:
        """Its process has been waited for."""
        try:
            text = _end_of(self.output)
            if os.waitstatus_to_exitcode(status) == TOO_LITTLE:
                raise Short(text.rpartition("\n")[2] or FULL)
            if status:
                raise WorldBroke(f"seed {self.scenario.seed}: status {status}\n{text}")
            size = os.fstat(self._result).st_size
            outcome = Outcome(*marshal.loads(os.pread(self._result, size, 0)))  # noqa: S302 - ours
        finally:
            os.close(self.output)
            os.close(self._result)
        return Trial(self.scenario, outcome, text)


def _short(problem: BaseException) -> str:
    """What there was too little of; empty if an error is about something else."""
    if isinstance(problem, OSError) and problem.errno == errno.EFBIG:
        return FULL
    return shortage(problem)


def _end_of(descriptor: int) -> str:
    size = os.fstat(descriptor).st_size
    start = max(0, size - OUTPUT_KEPT)
    return os.pread(descriptor, size - start, start).decode(errors="replace")


def attempt(scenario: Scenario) -> Trial:
    """Run one world.

    Raises:
        WorldBroke: it did not come to an outcome.
        Short: for want of something.
    """
    running = _Running(scenario)
    return running.finish(os.waitpid(running.process, 0)[1])


def attempts(scenarios: Iterable[Scenario], jobs: int) -> Iterator[Trial]:
    """Run worlds, `jobs` at a time; their trials as they end.

    Raises:
        WorldBroke: one did not come to an outcome.
        Short: for want of something.
    """
    running: dict[int, _Running] = {}
    source = iter(scenarios)
    try:
        while True:
            while len(running) < jobs and (scenario := next(source, None)) is not None:
                started = _Running(scenario)
                running[started.process] = started
            if not running:
                return
            process, status = os.wait()
            if process in running:
                yield running.pop(process).finish(status)
    finally:
        for process in running:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
