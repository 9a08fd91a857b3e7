"""The life-cycle hooks: what is told of a job is kept, and written when it has ended."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ompy.mca.hookspecs import hookimpl

from ompy_junit.report import JobReport

if TYPE_CHECKING:
    from ompy.frameworks.job import Job
    from ompy.mca.reporting import Finding

VARIABLE: Final = "OMPY_JUNIT"


class _Kept:
    """What was told of the job that this launcher runs."""

    report: JobReport | None = None
    began = 0.0


@hookimpl
def ompy_job_launching(job: Job) -> None:
    """Begin a report, if one is wanted."""
    if os.environ.get(VARIABLE):
        programs = [" ".join(app.argv) for app in job.apps]
        _Kept.report = JobReport(job.job_id, programs, len(job.placements), job.hosts)
        _Kept.began = time.monotonic()


@hookimpl
def ompy_finding(finding: Finding) -> None:
    """Keep what was found."""
    if _Kept.report is not None:
        _Kept.report.findings.append(finding)


@hookimpl
def ompy_rail_lost(event: Mapping[str, Any]) -> None:
    """Keep it."""
    _keep_rail("lost", event)


@hookimpl
def ompy_rail_healed(event: Mapping[str, Any]) -> None:
    """Keep it."""
    _keep_rail("healed", event)


def _keep_rail(what: str, event: Mapping[str, Any]) -> None:
    if _Kept.report is not None:
        where = f"rank {event['rank']} to {event['peer']}, {event['rail']}"
        _Kept.report.rails.append(f"{where}: {what}: {event['cause']}")


@hookimpl
def ompy_job_finished(exit_code: int) -> None:
    """Write the report."""
    report, _Kept.report = _Kept.report, None
    if report is None:
        return
    path = os.environ[VARIABLE]
    try:
        report.write(path, exit_code, time.monotonic() - _Kept.began)
    except OSError as problem:
        print(f"ompy-junit: {VARIABLE}: {problem}", file=sys.stderr)
