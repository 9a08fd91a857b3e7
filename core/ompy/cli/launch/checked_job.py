"""The launcher's part of `--check`: the folder of the records, and what is made of them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ompy import outputs
from ompy.check.analysis import findings_of
from ompy.check.findings import EXIT, Found, as_json, expected, lines_of, merged
from ompy.check.logs import read_records
from ompy.cli.launch.command_line import CHECK_BUFFERING, PROGRAM, CommandError, write_error_line
from ompy.mca.hooks import HookCaller
from ompy.mca.reporting import Finding, Reporter
from ompy.runtime.diagnosis.verdict import TIMED_OUT

if TYPE_CHECKING:
    from ompy.frameworks.job import Job

# reference openmpi.md 2.6: after Ctrl-C; what was not finished is not judged
ENDED_BY_USER: Final = 130
KILLED: Final = 128  # reference openmpi.md 2.6: and the signal's number


class Listener(HookCaller):
    """Hears of deadlocks, and hands everything on to the packages."""

    def __init__(self, packages: HookCaller) -> None:
        self._packages = packages
        self.active = packages.active
        self.deadlock: Mapping[str, Any] | None = None

    def ompy_finding(self, finding: Finding) -> None:
        """There is something that the job's user should know."""
        if finding.name == "deadlock":
            self.deadlock = finding.fields
        self._packages.ompy_finding(finding)

    def _call(self, hook: str, **arguments: object) -> None:
        getattr(self._packages, hook)(**arguments)


class CheckedJob:
    """One job's.

    Attributes:
        directory: where its ranks write.
        listener: stands between the launcher and the packages.
    """

    def __init__(
        self,
        job: Job,
        directory: str,
        report: str,
        reporter: Reporter,
        packages: HookCaller,
        *,
        quiet: bool,
    ) -> None:
        self.directory = directory
        self.listener = Listener(packages)
        self._report = report
        self._reporter = reporter
        self._quiet = quiet
        self._synchronous = bool(job.mca["values"].get(CHECK_BUFFERING))

    def ended(self, code: int) -> int:
        """The job has ended: tell what was found. Returns the exit code."""
        records = read_records(self.directory)
        shutil.rmtree(self.directory, ignore_errors=True)
        deadlock = self.listener.deadlock
        how = {"went_well": code == 0, "stopped": code == TIMED_OUT or code > KILLED}
        found = merged(findings_of(records, deadlock, synchronous=self._synchronous, **how))
        found = [one for one in found if not expected(one)]
        self._write(found)
        if not self._quiet and code != ENDED_BY_USER:
            text = "".join(f"{PROGRAM}: {line}\n" for line in lines_of(found))
            level = "error" if found else "info"
            finding = Finding("check", text, level, as_json(found))
            write_error_line(self._reporter.lines(finding).removesuffix("\n"))
        return EXIT if found else code

    def _write(self, found: list[Found]) -> None:
        if not self._report:
            return
        try:
            outputs.write_text(self._report, json.dumps(as_json(found), indent=1) + "\n")
        except OSError as problem:
            write_error_line(
                f"{PROGRAM}: warning: --check-report {self._report}: {problem.strerror}; it is lost"
            )


def begin_check(
    job: Job, report: str, reporter: Reporter, packages: HookCaller, *, quiet: bool
) -> CheckedJob:
    """Make the folder of a job's records ready.

    Ranks on other hosts have to reach it: it is in the working directory then, which they share.

    Args:
        job: what will run.
        report: a file for what is found, or empty.
        reporter: makes the lines.
        packages: calls the hooks of installed packages.
        quiet: say nothing.

    Raises:
        CommandError: there is no room for it.
    """
    try:
        where = None if len(job.hosts) == 1 else os.getcwd()
        directory = tempfile.mkdtemp(prefix=f"ompy-check-{job.job_id}-", dir=where)
    except OSError as problem:
        raise CommandError(f"--check: no folder for the calls of ranks: {problem}") from None
    return CheckedJob(job, directory, report, reporter, packages, quiet=quiet)
