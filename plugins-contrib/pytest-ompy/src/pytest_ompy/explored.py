"""A test over all schedules: `ompy sim --explore` runs it, on ranks that are sessions of pytest."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from pytest_ompy.plan import Plan

PROGRAM: Final = Path(__file__).with_name("explored_rank.py")
FOLDER: Final = "sim-failures"  # in the directory that pytest was started in
LEFT: Final = 0.9  # of the time of the test, for worlds; arbitrary: the rest is for telling
PROVEN: Final = re.compile(
    r"; proven (within --polls )?for -n \d+ and this input(, if standard sends all .* wait)?"
    r"(, (and )?if no rank loads .*)?$",
    re.MULTILINE,
)
SAYS: Final = "ompy sim: "


def explore_test(item: pytest.Function, plan: Plan, size: int) -> None:
    """Run a test in every schedule.

    Raises:
        Failed: one fails, or not all were tried. The text has the schedule, and the command that
            runs it again.
    """
    folder = Path(FOLDER) / re.sub(r"\W+", "-", item.nodeid).strip("-")
    words = [sys.executable, "-m", "ompy.cli.main", "sim", "--explore", "-n", str(size)]
    words += ["--keep", str(folder)]
    if plan.timeout:
        words += ["--time", f"{plan.timeout * LEFT:g}s"]
    for pair in plan.mca:
        words += ["--mca", *pair]
    program = os.path.relpath(PROGRAM)
    command = [*words, program, *map(str, _arguments(item))]
    here = [str(PROGRAM.parents[1]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(  # noqa: S603 - our own program
        command,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, here))},
    )
    if done.returncode == 0 and PROVEN.search(done.stderr):
        return
    said = done.stderr.replace(SAYS, "").strip() or shlex.join(command)
    if done.returncode == 0:
        said += "\nnot all schedules were tried; the test may take more time with timeout=..."
    pytest.fail(said, pytrace=False)


def _arguments(item: pytest.Function) -> list[str]:
    """What a rank's session is told: where the tests are rooted, and which test."""
    config = item.config
    found = ["--rootdir", str(config.rootpath)]
    if config.inipath is not None:
        found += ["-c", str(config.inipath)]
    return [*found, str(config.rootpath / item.nodeid)]
