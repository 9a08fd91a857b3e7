"""Long test runs made of steps, each entered into the ledger when it ends.

    python tools/nightly.py                     every step that has not passed with this code
    python tools/nightly.py --minutes 60        begins no step after an hour
    python tools/nightly.py --only "no room"    the steps whose names hold the words
    python tools/nightly.py --list              the steps, and when each passed last

`docs/ledger.csv` has a line for each step that ran, passed or failed; `docs/ledger.md` shows the
last one of each. A step has passed with this code when nothing but documents has changed since the
commit at which it passed; such a step is not run again. The steps whose last pass is the longest
ago come first, so that short runs on many days come around to all of them.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime

from tools.repository import DOCUMENTS, ROOT, commit_name, git

LEDGER = ROOT / "docs" / "ledger.csv"
PAGE = ROOT / "docs" / "ledger.md"
SUMMARY = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)
PASSED = "passed"


@dataclass(frozen=True)
class Step:
    """One command of a sweep.

    Attributes:
        name: what the ledger calls it.
        command: arguments after the interpreter of this environment.
        environment: added to ours.
        before: a command that has to pass first: it makes what the step tries.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[str] = ()


@dataclass(frozen=True)
class Entry:
    """A line of the ledger.

    Attributes:
        date: the day on which the step ended, UTC.
        sweep: which tool ran it.
        step: its name.
        commit: of the tree, with a `+` behind it when something was not committed.
        machine: what it ran on.
        outcome: `passed`, or the exit code.
        figures: pytest's counts, where there are any.
        seconds: how long it took.
        processor: seconds of processor time, which other work on the machine changes little.
    """

    date: str
    sweep: str
    step: str
    commit: str
    machine: str
    outcome: str
    figures: str
    seconds: str
    processor: str = ""


def tests(name: str, *arguments: str, **environment: str) -> Step:
    """A step that runs pytest, with an hour for the single test."""
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "timeout=3600"]
    command += ["-o", "faulthandler_timeout=3600", *arguments]
    return Step(name, command, environment)


def sweep(title: str, steps: Sequence[Step]) -> None:
    """Run the steps that are left and enter each; exit 1 when one failed."""
    options = _options(title)
    entries = read()
    wanted = [step for step in steps if options.only in step.name]
    if not wanted:
        sys.exit(f"{title}: no step's name holds {options.only!r}; --list shows them")
    if options.list:
        for step in steps:
            print(f"{step.name:<45} {_told(entries, step.name)}")
        return
    until = time.monotonic() + options.minutes * 60
    failed = []
    for step in in_turn(wanted, entries):
        if time.monotonic() > until:
            print(f"{title}: the time is over; {step.name} and what follows are left", flush=True)
            break
        entry = _run(title, step)
        _enter(entry)
        if entry.outcome != PASSED:
            failed.append(step.name)
    write_page(title, read(), steps)
    sys.exit(f"{title}: failed: {', '.join(failed)}" if failed else 0)


def _options(title: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"tools/{title}.py")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none later")
    parser.add_argument("--only", default="", help="steps whose names hold this")
    parser.add_argument("--list", action="store_true", help="say when each passed last")
    return parser.parse_args()


def in_turn(steps: Sequence[Step], entries: Sequence[Entry]) -> list[Step]:
    """The steps that have not passed with this code, the longest neglected first."""
    last = {entry.step: place for place, entry in enumerate(entries) if entry.outcome == PASSED}
    left = [
        step for step in steps if step.name not in last or changed(entries[last[step.name]].commit)
    ]
    return sorted(left, key=lambda step: last.get(step.name, -1))


def read() -> list[Entry]:
    """The ledger, oldest first."""
    if not LEDGER.exists():
        return []
    with LEDGER.open(newline="") as opened:
        return [Entry(**line) for line in csv.DictReader(opened)]


@functools.cache
def changed(commit: str) -> bool:
    """Whether anything but documents differs from a commit. Unknown commits differ."""
    if commit.endswith("+") or git("status", "--porcelain", "--", ".", *DOCUMENTS):
        return True
    command = ["git", "diff", "--quiet", commit, "HEAD", "--", ".", *DOCUMENTS]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode != 0


def _run(title: str, step: Step) -> Entry:
    """Run one step and show what it prints."""
    commit = commit_name()
    begun, used = time.monotonic(), _used()
    code, output = _made(tuple(step.before)) if step.before else (0, "")
    if not code:
        code, output = _shown(step.command, step.environment)
    counts = SUMMARY.findall(output)
    return Entry(
        date=datetime.now(UTC).date().isoformat(),
        sweep=title,
        step=step.name,
        commit=commit,
        machine=f"{platform.machine()} {os.cpu_count()} cores Python {platform.python_version()}",
        outcome=f"exit code {code}" if code else PASSED,
        figures=counts[-1] if counts else "",
        seconds=f"{time.monotonic() - begun:.0f}",
        processor=f"{_used() - used:.0f}",
    )


@functools.cache
def _made(command: tuple[str, ...]) -> tuple[int, str]:
    """Make what several steps try: the same code makes it once."""
    return _shown(command, {})


def _used() -> float:
    """Processor time of what has been waited for."""
    times = os.times()
    return times.children_user + times.children_system


def _shown(command: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command and show what it prints. Returns its exit code, and that."""
    print(f"$ {' '.join(command)}", flush=True)
    output = []
    env = {**os.environ, **environment}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # each rank would compile all that it imports
    with subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            output.append(line)
            print(line, end="", flush=True)
    return process.returncode, "".join(output)


def _enter(entry: Entry) -> None:
    new = not LEDGER.exists()
    with LEDGER.open("a", newline="") as opened:
        writer = csv.DictWriter(opened, [one.name for one in fields(Entry)], lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(asdict(entry))
    print(f"{entry.step}: {entry.outcome} {entry.figures} in {entry.seconds} s", flush=True)


def _told(entries: Iterable[Entry], name: str) -> str:
    """When a step passed last, and whether it has failed since."""
    mine = [entry for entry in entries if entry.step == name]
    passed = next((entry for entry in reversed(mine) if entry.outcome == PASSED), None)
    said = f"passed {passed.date} at {passed.commit}" if passed else "never passed"
    return said if not mine or mine[-1] == passed else f"{said}; failed {mine[-1].date}"


def write_page(title: str, entries: Sequence[Entry], steps: Sequence[Step]) -> None:
    """Show the last entry of each step in `docs/ledger.md`, and which of a tool's has none."""
    last = {entry.step: entry for entry in entries}
    rows = [
        f"| {one.step} | {one.outcome} | {one.figures or '-'} | {one.seconds} |"
        f" {one.processor or '-'} | {one.date} | {one.commit} | {one.machine} |"
        for one in sorted(last.values(), key=lambda entry: (entry.sweep, entry.step))
    ]
    never = "".join(f"- {step.name}\n" for step in steps if step.name not in last)
    PAGE.write_text(
        "# Ledger\n\n"
        "What the steps of `tools/nightly.py` and `tools/release.py` came to when each ran last.\n"
        "The tools write this page from `ledger.csv`, which has every run. A `+` after a commit\n"
        "means that something was not committed. Besides the seconds that a step took stands the\n"
        "processor time, which other work on the machine changes little.\n\n"
        "| step | outcome | tests | s | processor s | date | commit | machine |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        + "\n".join(rows)
        + "\n"
        + (f"\nSteps of `tools/{title}.py` that have never run:\n\n{never}" if never else "")
    )
