#!/usr/bin/env python3
"""Labelled programs under `ompy sim --explore`: what is decided, and in how many worlds.

    python tools/sweep explore                  all of them once
    python tools/sweep explore --class deadlock of one class
    python tools/sweep explore --case NAME      one again, with its text and what was said
    python tools/sweep explore --write          and write docs/explore-sweep.md
    python tools/sweep explore --minutes 10     no case begins after so long; all classes in turn

The programs are those of `tests/support/check_programs/`. Right is: a deadlock and sends that only
end because they are buffered fail; the receives of a message race have more than one schedule; a
correct program is proven, or ends well in all worlds that were tried.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from tests.support.check_programs.cases import Case, find_case, make_cases
from tests.support.check_programs.templates import CORRECT
from tools.repository import ROOT, commit_name
from tools.sweep.worlds import today

DEADLOCK: Final = "deadlock"
BUFFERING: Final = "buffering-dependent"
RACE: Final = "message-race"
WORLDS: Final = 200  # of a case in each mode; arbitrary: some seconds
LIMIT_S: Final = 200  # arbitrary: far above what a case takes
NAME: Final = "app.py"  # says nothing of the class
PROVEN: Final = re.compile(r"(\d+) schedules?, 2 modes of buffering: .* \((\d+) worlds\)")
REFUSED: Final = "this program cannot be explored"  # of threads, for example
LEFT: Final = re.compile(r"not proven: (\d+) worlds all ended well")
HEADING: Final = """\
# Labelled programs, explored

Programs as scientists write them with mpi4py (`tests/support/check_programs/`), under `ompy sim --explore`: those of the classes that an order of things decides, their mended twins, and correct ones that look suspicious.
*Fails*: a schedule was found that does. *Proven*: all schedules end well. *Tried*: all worlds ended well and some were left. *Refused*: ompy says that it cannot explore the program: a rank has several threads, or files have what other worlds have left. *Wrong*: a deadlock or a send that has to be buffered did not fail, a race has one schedule, a correct program failed."""  # noqa: E501 - a paragraph of Markdown


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        case: the program.
        code: how the exploration ended.
        said: what it said.
        seconds: that it took.
    """

    case: Case
    code: int
    said: str
    seconds: float

    @property
    def schedules(self) -> int:
        """That were proven to end well; 0 if none was."""
        found = PROVEN.search(self.said)
        return int(found[1]) if found else 0

    @property
    def worlds(self) -> int:
        """That ended well."""
        found = PROVEN.search(self.said)
        tried = LEFT.search(self.said)
        return int(found[2]) if found else int(tried[1]) if tried else 0

    @property
    def refused(self) -> bool:
        """Whether it cannot be explored, which was said."""
        return REFUSED in self.said

    def verdict(self) -> str:
        """What is wrong, in a few words; empty if nothing is."""
        label = self.case.label
        if self.refused:
            return ""
        if label in {DEADLOCK, BUFFERING}:
            return "" if self.code == 4 else f"ends with {self.code}: {self.said[-300:]!r}"
        if label == RACE:
            return "it has one schedule" if self.code == 0 and self.schedules == 1 else ""
        return "" if self.code == 0 else f"ends with {self.code}: {self.said[-300:]!r}"

    def counts(self) -> Counter[str]:
        """What it adds to the table."""
        return Counter(
            cases=1,
            fails=self.code != 0 and not self.refused,
            proven=bool(self.schedules),
            tried=self.code == 0 and not self.schedules,
            refused=self.refused,
            schedules=self.schedules,
            worlds=self.worlds,
            wrong=bool(self.verdict()),
        )


def run_case(case: Case) -> Outcome:
    """Explore one case."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / NAME).write_text(case.text)
        ompy = str(Path(sys.executable).with_name("ompy"))
        words = [ompy, "sim", "--explore", "-n", str(case.ranks), "--worlds", str(WORLDS)]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                [*words, "--jobs", "1", NAME],
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
                cwd=folder,
            )
            code, said = done.returncode, done.stderr
        except subprocess.TimeoutExpired:
            code, said = -1, f"no end within {LIMIT_S} s"
    return Outcome(case, code, said, time.monotonic() - begun)


def in_turn(classes: Sequence[str], seed: int) -> list[Case]:
    """All cases, of each class one after the other, so that a part of them has all classes."""
    columns = [list(make_cases(0, seed, (one,))) for one in classes]
    return [case for row in zip_longest(*columns) for case in row if case is not None]


def make_table(outcomes: Sequence[Outcome]) -> list[str]:
    """A row for each class and kind of twin, in Markdown."""
    sums: dict[str, Counter[str]] = {}
    for one in sorted(outcomes, key=lambda each: each.case.name):
        name = one.case.name.split("/")[0]
        row = name if one.case.label or name == CORRECT else f"{name}, mended"
        sums.setdefault(row, Counter()).update(one.counts())
    sums["**all**"] = sum(sums.values(), Counter[str]())
    columns = ("cases", "fails", "proven", "tried", "refused", "schedules", "worlds", "wrong")
    lines = [f"| class | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    return lines + [
        f"| {name} | " + " | ".join(f"{counts[column]:,}" for column in columns) + " |"
        for name, counts in sums.items()
    ]


def write_document(outcomes: Sequence[Outcome], options: argparse.Namespace) -> Path:
    """Write the figures to `docs/`."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    seconds = sum(outcome.seconds for outcome in outcomes)
    wrong = [f"- `{one.case.name}`: {one.verdict()}" for one in outcomes if one.verdict()]
    lines = [HEADING, ""]
    given = f" --minutes {options.minutes}" if options.minutes else ""
    part = (
        f"{len(outcomes)} of {options.cases} cases, all classes in turn" if given else "all cases"
    )
    lines.append(
        f"`python tools/sweep explore --seed {options.seed}{given} --jobs {options.jobs} --write` "
        f"(at most {WORLDS} worlds in each mode): {part}, {today()}, commit {commit_name()}, "
        f"{machine}, {seconds:,.0f} s. *Schedules* are those of the mode that has more, none "
        "equivalent to another; *worlds* are those of both modes."
    )
    lines += ["", *make_table(outcomes), "", *(wrong or ["None is wrong."])]
    figures = ROOT / "docs" / "explore-sweep.md"
    figures.write_text("\n".join(lines) + "\n")
    return figures


def main(words: Sequence[str] | None = None) -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    every = (DEADLOCK, BUFFERING, RACE, CORRECT)
    parser.add_argument(
        "--class", action="append", choices=every, dest="classes", help="only these"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the programs; 0 by default")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time; 1 by default")
    parser.add_argument("--minutes", type=float, default=0, help="no case begins after these")
    parser.add_argument("--case", help="only this one, and show it")
    parser.add_argument("--write", action="store_true", help="write docs/explore-sweep.md")
    options = parser.parse_args(words)
    if options.case:
        one = run_case(find_case(options.case))
        print(one.case.text, one.said, one.verdict() or "right", sep="\n")
        return
    outcomes = []
    cases = in_turn(options.classes or every, options.seed)
    options.cases = len(cases)
    until = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")

    def run_in_time(case: Case) -> Outcome | None:
        return run_case(case) if time.monotonic() < until else None

    with ThreadPoolExecutor(options.jobs) as pool:
        for one in filter(None, pool.map(run_in_time, cases)):
            outcomes.append(one)
            print(f"{one.case.name}: {one.verdict() or 'right'}", flush=True)
    print(*make_table(outcomes), sep="\n")
    if options.write:
        print(f"written to {write_document(outcomes, options)}")
    sys.exit(1 if any(one.verdict() for one in outcomes) else 0)


if __name__ == "__main__":
    main()
