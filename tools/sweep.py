"""Long test runs made of steps: each step once per commit, the outcome written to the ledger.

A finished step is kept in `build/sweep/`, so a run that was cut off goes on where it stopped.
When every step has passed the run adds one line to `docs/ledger.md`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "docs" / "ledger.md"
SUMMARY = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """One command of a sweep.

    Attributes:
        name: what the ledger calls it.
        command: arguments after the interpreter of this environment.
        environment: added to ours.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


def tests(name: str, *arguments: str, **environment: str) -> Step:
    """A step that runs pytest, with an hour for the single test."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "timeout=3600"]
    command += ["-o", "faulthandler_timeout=3600", *arguments]
    return Step(name, command, environment)


def sweep(title: str, steps: Sequence[Step]) -> None:
    """Run the steps that have not passed at this commit; exit 1 at the first that fails."""
    commit = commit_name()
    kept = ROOT / "build" / "sweep" / f"{title}-{commit}.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    # what is not committed may differ from one run to the next
    done = {} if commit.endswith("+") or not kept.exists() else json.loads(kept.read_text())
    for step in steps:
        if step.name in done:
            print(f"{step.name}: passed before: {done[step.name]}", flush=True)
            continue
        done[step.name] = _run(step)
        kept.write_text(json.dumps(done, indent=2))
    _record(title, commit, done)


def commit_name() -> str:
    """The commit of the tree, with a `+` behind it when there are changes."""
    return _git("rev-parse", "--short", "HEAD") + ("+" if _git("status", "--porcelain") else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def _run(step: Step) -> str:
    """Run one step and show what it prints.

    Returns:
        What it came to: pytest's counts where there are any, and how long it took.
    """
    print(f"== {step.name}: {' '.join(step.command)}", flush=True)
    begun = time.monotonic()
    output = []
    with subprocess.Popen(
        [sys.executable, *step.command],
        cwd=ROOT,
        env={**os.environ, **step.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            print(line, end="", flush=True)
    if process.returncode:
        sys.exit(f"{step.name} FAILED with exit code {process.returncode}")
    counts = SUMMARY.findall("".join(output))
    took = f"{time.monotonic() - begun:.0f} s"
    return f"{counts[-1]} in {took}" if counts else f"done in {took}"


def _record(title: str, commit: str, done: Mapping[str, str]) -> None:
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    outcome = "; ".join(f"{name}: {figure}" for name, figure in done.items())
    day = datetime.now(UTC).date().isoformat()
    with LEDGER.open("a") as ledger:
        ledger.write(f"| {day} | `tools/{title}.py` | {commit} | {machine} | {outcome} |\n")
    print(f"{title}: all steps passed, written to {LEDGER.relative_to(ROOT)}")
