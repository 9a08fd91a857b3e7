"""The launcher's part of a trace: the directory, and `job.json` with the facts of the job."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Any

from ompy import __version__
from ompy.cli.launch.kept_files import begin_in, end_in
from ompy.trace.trace_files import prepare_directory, write_job

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.mca.registry import Registry


class JobFacts:
    """Writes `job.json`: when the job starts, and again when it has ended."""

    def __init__(self, directory: str, facts: dict[str, Any]) -> None:
        self._directory = directory
        self._facts = facts
        self._began = time.monotonic()
        write_job(directory, facts)

    def ended(self, code: int) -> None:
        """The job has ended."""
        seconds = round(time.monotonic() - self._began, 6)
        facts = {**self._facts, "exit_code": code, "seconds": seconds}
        end_in("--trace", self._directory, lambda: write_job(self._directory, facts))


def start_trace(directory: str, job: Job, registry: Registry) -> JobFacts | None:
    """Make the directory of a job's trace ready and write down what the job is.

    Returns:
        None if it cannot be written, which has been said: the job runs without a trace.

    Raises:
        CommandError: it is no directory, or a stranger's.
    """
    facts = {
        "ompy": __version__,
        "job": job.job_id,
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "hosts": list(job.hosts),
        "ranks": [
            {"rank": p.rank, "node": p.node, "program": shlex.join(job.apps[p.app].argv)}
            for p in job.placements
        ],
        "parameters": {
            name: {"value": variable.value, "origin": variable.origin.place}
            for name, variable in (
                (name, registry.variable(name)) for name in sorted(job.mca["values"])
            )
        },
    }

    def begin() -> JobFacts:
        prepare_directory(directory)
        return JobFacts(directory, facts)

    return begin_in("--trace", directory, "nothing is traced", begin)
