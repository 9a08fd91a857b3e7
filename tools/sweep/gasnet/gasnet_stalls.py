#!/usr/bin/env python3
"""GASNet's tests between two laboratory hosts, again and again beside heavy load.

    python tools/sweep gasnet_stalls                 500 runs: one or two hours under load
    python tools/sweep gasnet_stalls --runs 40       the first 40
    python tools/sweep gasnet_stalls --run 17        one again
    python tools/sweep gasnet_stalls --part 2/4      the second quarter
    python tools/sweep gasnet_stalls --next 40       40 from where the last such run stopped

A run is one of the programs of `tests/support/gasnet_programs.py` on two hosts of two ranks each,
over one of the conduits and ways of messages, neighbours by shared memory or not, in turn. Beside
them `--burners` processes compute at the same priority, and in every second round of all programs
ranks are stopped for up to a second (SIGSTOP), as a busy machine does it. What is looked for is a
job that stands still: one that does not end within `--patience` seconds. The first that does, or
fails, ends this with exit code 1; its whole report is kept in `build/gasnet-stalls/`. Runs of a
commit that have passed are not done again. `--record` keeps what was run in
`docs/sweeps/gasnet-stalls.csv` and enters the figures of all that is there in docs/gasnet-tests.md.

Needs what `tools/lab` needs: root, iproute2, sshd.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from tests.support.gasnet_programs import PROGRAMS
from tools.lab.laboratory import Laboratory, why_not
from tools.repository import ROOT, commit_name
from tools.sweep import parts

RUNS: Final = 500  # arbitrary: what was once tried, with three or four stalls
PATIENCE: Final = 240  # s; arbitrary: far beyond what a run takes beside all that
KEPT: Final = ROOT / "build" / "gasnet-stalls"
DATA: Final = ROOT / "docs" / "sweeps" / "gasnet-stalls.csv"
DOCUMENT: Final = ROOT / "docs" / "gasnet-tests.md"
TABLE: Final = "| program | GASNet's | ranks |"  # where the page's tables begin
OWN: Final = "`python tools/sweep gasnet_stalls`"  # what our paragraph begins with
COLUMNS: Final = (
    *("run", "program", "conduit", "messages", "pshm", "stops", "code", "seconds", "stopped"),
    *("commit", "date"),
)
TIMED_OUT: Final = 110  # exit code of ompy-run
SILENT: Final = -1  # the job says that all is well, and a rank has not said that it did it
BURNER: Final = "while True: pass"
RANK: Final = "tests.support.gasnet_rank"
WAYS: Final = tuple(product(("gemini", "aries"), ("smsg", "mailboxes"), (True, False)))
LATE: Final = 60  # s; arbitrary: the launcher ends a job at its timeout, and then we do


class Run(NamedTuple):
    """What a number stands for."""

    program: str
    conduit: str
    messages: str
    pshm: bool
    stops: bool


def design(number: int) -> Run:
    """Programs go round first, then the ways: neighbouring runs differ in the program."""
    turn, place = divmod(number, len(PROGRAMS))
    conduit, messages, pshm = WAYS[(turn * 3 + place) % len(WAYS)]  # all ways in eight turns
    return Run([*PROGRAMS][place], conduit, messages, pshm, bool(turn % 2))


def command(run: Run, patience: float) -> list[str]:
    """What is started on the first host."""
    own = f"conduit_{run.conduit}"
    settings = {"conduit": run.conduit, f"{own}_messages": run.messages, f"{own}_pshm": run.pshm}
    words = [sys.executable, "-m", "ompy.cli.run", "--host", "h1:2,h2:2", "-n", "4"]
    words += ["--timeout", f"{patience:g}"]
    for name, value in settings.items():
        words += ["--mca", name, str(int(value) if isinstance(value, bool) else value)]
    return [*words, sys.executable, "-m", RANK, run.program]


@contextmanager
def burning(count: int) -> Iterator[None]:
    """So many processes compute meanwhile."""
    started = [subprocess.Popen([sys.executable, "-c", BURNER]) for _ in range(count)]
    try:
        yield
    finally:
        for one in started:
            one.kill()
            one.wait()


class Stopping(threading.Thread):
    """Stops ranks of a laboratory for a while, one at a time.

    Attributes:
        stops: how often it has.
    """

    def __init__(self, lab: Laboratory, number: int) -> None:
        super().__init__(daemon=True)
        self._lab = lab
        self._random = Random(number)  # noqa: S311 - chance is the point
        self._over = threading.Event()
        self.stops = 0

    def run(self) -> None:
        """Until `end`."""
        while not self._over.wait(self._random.uniform(0.02, 0.5)):
            ranks = [
                pid
                for host in ("h1", "h2")
                for pid, words in self._lab.processes(host).items()
                if RANK in words and "ompy" not in words.partition(RANK)[0]
            ]
            if not ranks:
                continue
            with suppress(ProcessLookupError):
                chosen = self._random.choice(ranks)
                os.kill(chosen, signal.SIGSTOP)
                self.stops += 1
                self._over.wait(self._random.expovariate(1 / 0.2) % 1.0)
                os.kill(chosen, signal.SIGCONT)

    def end(self) -> None:
        """Nothing is stopped afterwards."""
        self._over.set()
        self.join()


def attempt(lab: Laboratory, number: int, patience: float) -> dict[str, object]:
    """One run: what it was, and what came of it."""
    made = design(number)
    words = [sys.executable, str(ROOT / "tools" / "lab"), "--name", lab.name, "exec", "h1", "--"]
    stopping = Stopping(lab, number) if made.stops else None
    begun = time.monotonic()
    if stopping:
        stopping.start()
    try:
        done = subprocess.run(
            [*words, *command(made, patience)],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=patience + LATE,
        )
        code, report = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        code, report = TIMED_OUT, f"{late}: the launcher itself did not end\n{late.stderr!r}"
    finally:
        if stopping:
            stopping.end()
    said = {f"rank {rank} of 4 did {made.program}" for rank in range(4)}
    if not code and not said <= set(report.splitlines()):
        code = SILENT
    found = {"run": number, "code": code, "seconds": time.monotonic() - begun, "report": report}
    return {**made._asdict(), **found, "stopped": stopping.stops if stopping else 0}


def run_all(numbers: Sequence[int], arguments: argparse.Namespace, record: Path) -> bool:
    """Run some, and note each. Returns whether all passed."""
    lab = Laboratory(f"stalls{os.getpid()}")
    lab.up(2, 1)
    try:
        with burning(arguments.burners):
            for number in numbers:
                found = attempt(lab, number, arguments.patience)
                report = found.pop("report")
                with record.open("a") as lines:
                    lines.write(json.dumps(found) + "\n")
                what = f"run {number}: {found['program']}, {found['seconds']:.1f} s"
                print(what, f"code {found['code']}", flush=True)
                if found["code"]:
                    path = KEPT / f"{commit_name()}-run-{number}.txt"
                    path.write_text(f"{found}\n{shown(number, arguments.patience)}\n{report}")
                    print(f"FAILED; all it said is in {path}", flush=True)
                    if not arguments.keep_going:
                        return False
    finally:
        lab.down()
    return not any(one["code"] for one in passed_and_not(record))


def shown(number: int, patience: float) -> str:
    """A run as it is typed."""
    return " ".join(command(design(number), patience))


def passed_and_not(record: Path) -> list[dict[str, object]]:
    """All runs of a commit that are noted."""
    if not record.exists():
        return []
    return [json.loads(line) for line in record.read_text().splitlines()]


def of(run: dict[str, object], commit: str) -> dict[str, object]:
    """A run as the data have it."""
    seconds = f"{float(str(run['seconds'])):.1f}"
    return {**run, "seconds": seconds, "commit": commit, "date": f"{datetime.now(UTC):%Y-%m-%d}"}


def keep(found: Sequence[dict[str, object]], commit: str) -> list[dict[str, object]]:
    """Put runs into the data, each in the place of its earlier one. Returns all that is there."""
    rows: dict[int, dict[str, object]] = {}
    if DATA.exists():
        with DATA.open(newline="") as opened:
            rows = {int(row["run"]): dict(row) for row in csv.DictReader(opened)}
    rows |= {int(str(one["run"])): of(one, commit) for one in found}
    DATA.parent.mkdir(exist_ok=True)
    with DATA.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows[run] for run in sorted(rows))
    return [rows[run] for run in sorted(rows)]


def paragraph(found: Sequence[dict[str, object]], burners: int) -> str:
    """The figures, as docs/gasnet-tests.md has them."""
    counts = Counter(int(str(one["code"])) for one in found)
    seconds = sorted(float(str(one["seconds"])) for one in found)
    stops = sum(int(str(one["stopped"])) for one in found)
    passed = Counter(f"{one['commit']} of {one['date']}" for one in found)
    stalls = counts.pop(TIMED_OUT, 0)
    well = counts.pop(0, 0)
    return (
        f"{OWN}, commits {', '.join(f'{name} ({runs} runs)' for name, runs in passed.items())}: "
        f"{len(found)} runs of these "
        f"programs between two laboratory hosts of two ranks each, over every conduit and way of "
        f"messages, beside {burners} processes that compute at the same priority, ranks stopped "
        f"{stops:,} times for up to a second: {well} ended well, {stalls} stood still, "
        f"{sum(counts.values())} failed otherwise; {seconds[len(seconds) // 2]:.1f} s in the "
        f"median, {seconds[-1]:.1f} s at most."
        + ("" if len(found) >= RUNS else f" NOT COMPLETE: all are {RUNS}.")
    )


def enter(text: str) -> None:
    """Put the figures before the tables of the page, in the place of older ones."""
    page = DOCUMENT.read_text()
    page = re.sub(rf"^{re.escape(OWN)}.*\n\n", "", page, flags=re.MULTILINE)
    DOCUMENT.write_text(page.replace(TABLE, f"{text}\n\n{TABLE}", 1))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        "tools/sweep", "gasnet_stalls", description=__doc__.partition("\n")[0]
    )
    found.add_argument("--runs", type=int, default=RUNS, help="how many, from the first")
    found.add_argument("--part", help="only this part of all: 2/4 is the second quarter")
    found.add_argument("--run", type=int, help="only this one")
    found.add_argument("--next", type=int, help="only so many, after those of the last such run")
    found.add_argument("--burners", type=int, default=os.cpu_count() or 1, help="one for each core")
    found.add_argument("--patience", type=float, default=PATIENCE, help="seconds for a run")
    found.add_argument("--keep-going", action="store_true", help="past one that fails")
    found.add_argument("--record", action="store_true", help="enter the figures of what was run")
    return found


def main() -> int:
    arguments = parser().parse_args()
    if problem := why_not():
        print(f"no laboratory here: {problem}")
        return 0
    KEPT.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # and take the laboratory down
    commit = commit_name()
    record, turn = KEPT / f"{commit}.jsonl", KEPT / "next"
    if arguments.run is not None:
        record, numbers = KEPT / "again.jsonl", [arguments.run]
        record.unlink(missing_ok=True)
    elif arguments.next is not None:
        first = int(turn.read_text()) if turn.exists() else 0
        record, numbers = KEPT / "next.jsonl", [(first + at) % RUNS for at in range(arguments.next)]
        record.unlink(missing_ok=True)
    else:
        wanted = parts.bounds(arguments.part, RUNS) if arguments.part else range(arguments.runs)
        known = {one["run"] for one in passed_and_not(record)}
        numbers = [number for number in wanted if number not in known]
    well = run_all(numbers, arguments, record)
    if arguments.next is not None and well:
        turn.write_text(str((numbers[-1] + 1) % RUNS))
    if found := passed_and_not(record):
        rows = keep(found, commit) if arguments.record else [of(one, commit) for one in found]
        print(text := paragraph(rows, arguments.burners))
        if arguments.record:
            enter(text)
    return not well


if __name__ == "__main__":
    sys.exit(main())
