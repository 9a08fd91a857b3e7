#!/usr/bin/env python3
"""Labelled programs under `ompy-run --check`: which faults are found, and who is accused wrongly.

    python tools/sweep checker                  both twins of each template once
    python tools/sweep checker --cases 1000     so many: again with the next seeds
    python tools/sweep checker --class epoch    of one class, or of several; `correct` is one
    python tools/sweep checker --case NAME      one again, with its text and what was said
    python tools/sweep checker --plain          without --check: correct ones end with 0, faulty
                                                ones do what their class says
    python tools/sweep checker --write          and write docs/checker-sweep.md

The programs are those of `tests/support/check_programs/`. A case is right if a fault is found with
its class and one of its lines, and if nothing is said of a correct program, which ends with 0.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ompy.check.findings import CLASSES

from tests.support.check_programs.cases import Case, find_case, make_cases
from tests.support.check_programs.templates import CORRECT
from tools.repository import ROOT, commit_name
from tools.sweep.worlds import today

LIMIT_S: Final = 60  # arbitrary: a job takes a second
STUCK: Final = 110  # exit code of a job after its time
NAME: Final = "app.py"  # says nothing of the class
PLAIN: Final = {  # exit codes of faulty programs that nobody checks; others may end as they like
    "deadlock": (4,),
    "buffering-dependent": (0,),
    "op-mismatch": (0,),
    "buffer-in-use": (0,),
    "rma-race": (0,),
    "leak": (0,),
}
HEADING: Final = """\
# The sweep of the checker

Programs as scientists write them with mpi4py (`tests/support/check_programs/`), each with one fault of a known class at known lines, and its mended twin; with them, correct programs that look suspicious. Each runs under `ompy-run --check`.
*Found*: there is any finding. *Class*: one has the class of the fault. *Line*: that one names a guilty line; *all lines*: all of them. *Others*: there are findings of another class too. *Accused*: a correct program, the twins of this class, with a finding."""  # noqa: E501 - a paragraph of Markdown


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        case: the program.
        code: how the job ended.
        findings: of the report; empty if there is none.
        said: the job's standard error, its end.
        seconds: that it took.
    """

    case: Case
    code: int
    findings: list[dict[str, Any]]
    said: str
    seconds: float

    @property
    def classes(self) -> set[str]:
        """Of the findings."""
        return {finding["class"] for finding in self.findings}

    @property
    def right(self) -> list[dict[str, Any]]:
        """Findings with the class of the fault."""
        accepted = (self.case.label, *self.case.also)
        return [finding for finding in self.findings if finding["class"] in accepted]

    @property
    def lines(self) -> set[int]:
        """Of the program, that the right findings name."""
        sites = [site for finding in self.right for site in finding["sites"]]
        return {site["line"] for site in sites if Path(site["file"]).name == NAME}

    def counts(self) -> Counter[str]:
        """What it adds to the table."""
        if not self.case.label:
            bad = bool(self.findings)
            return Counter(correct=1, accused=bad, failed=not bad and self.code != 0)
        guilty = set(self.case.lines)
        return Counter(
            cases=1,
            found=bool(self.findings),
            kind=bool(self.right),
            line=bool(self.lines & guilty),
            whole=bool(self.right) and guilty <= self.lines,
            others=bool(self.classes - {self.case.label, *self.case.also}),
        )

    def verdict(self) -> str:
        """What is wrong, in a few words; empty if nothing is."""
        if not self.case.label:
            if self.findings:
                return "accused: " + "; ".join(map(told, self.findings))
            return "" if self.code == 0 else f"ends with {self.code}: {self.said[-200:]!r}"
        if not self.findings:
            return f"missed; ends with {self.code}"
        if not self.right:
            return "other class: " + "; ".join(map(told, self.findings))
        if not self.lines & set(self.case.lines):
            return f"other line than {self.case.lines}: " + "; ".join(map(told, self.right))
        return ""


def told(finding: dict[str, Any]) -> str:
    """A finding in one line."""
    places = sorted({f"{site['line']} {site.get('call', '')}" for site in finding["sites"]})
    return f"{finding['class']} ({', '.join(places)}): {finding['message'].splitlines()[0][:160]}"


def run_case(case: Case, *, check: bool) -> Outcome:
    """Run one case.

    Args:
        case: the program.
        check: whether with `--check`.
    """
    with tempfile.TemporaryDirectory() as folder:
        program, report = Path(folder) / NAME, Path(folder) / "report.json"
        program.write_text(case.text)
        words = [str(Path(sys.executable).with_name("ompy-run")), "-n", str(case.ranks)]
        words += ["--timeout", str(LIMIT_S)]
        if check:
            words += ["--check", "--check-report", str(report)]
        words += [sys.executable, str(program)]
        begun = time.monotonic()
        try:
            done = subprocess.run(
                words, cwd=folder, capture_output=True, text=True, timeout=2 * LIMIT_S, check=False
            )
            code, said = done.returncode, done.stderr
        except subprocess.TimeoutExpired:
            code, said = STUCK, "the launcher did not end either"
        text = report.read_text() if report.exists() else ""
    findings = json.loads(text)["findings"] if text else []
    return Outcome(case, code, findings, said, time.monotonic() - begun)


def run_cases(cases: Sequence[Case], jobs: int, *, check: bool) -> Iterator[Outcome]:
    """Run cases, so many at a time, in order."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda case: run_case(case, check=check), cases)


def sum_up(outcomes: Sequence[Outcome]) -> dict[str, Counter[str]]:
    """What was counted, by class; a mended twin counts for the class of its fault."""
    sums: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        sums.setdefault(outcome.case.name.split("/")[0], Counter()).update(outcome.counts())
    return sums


def make_table(sums: dict[str, Counter[str]]) -> list[str]:
    """A row for each class, and one for all, in Markdown."""
    columns = {
        "faulty": "cases",
        "found": "found",
        "class": "kind",
        "line": "line",
        "all lines": "whole",
        "others": "others",
        "correct": "correct",
        "accused": "accused",
        "failed": "failed",
    }
    rows = [*sums.items(), ("**all**", sum(sums.values(), Counter[str]()))]
    width = max(len(name) for name, _ in rows)
    lines = [f"| {'class':{width}} | " + " | ".join(columns) + " |"]
    lines.append("|---|" + "---:|" * len(columns))
    for name, counts in rows:
        cells = [f"{counts[key]:{len(heading)}}" for heading, key in columns.items()]
        lines.append(f"| {name:{width}} | " + " | ".join(cells) + " |")
    return lines


def make_rates(total: Counter[str]) -> str:
    """Recall, specificity, and how precise class and line are."""

    def share(part: int, whole: int) -> str:
        return f"{part / whole:.1%} ({part} of {whole})" if whole else "-"

    quiet = total["correct"] - total["accused"]
    return (
        f"Recall {share(total['found'], total['cases'])}, with the right class "
        f"{share(total['kind'], total['cases'])}; specificity {share(quiet, total['correct'])}; "
        f"precision {share(total['found'], total['found'] + total['accused'])}, of the class "
        f"{share(total['kind'], total['found'])}, of the line {share(total['line'], total['kind'])}"
    )


def list_wrong(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each case that is wrong."""
    return [f"- `{one.case.name}`: {one.verdict()}" for one in outcomes if one.verdict()]


def write_document(outcomes: Sequence[Outcome], options: argparse.Namespace) -> Path:
    """Write the figures to `docs/`."""
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    sums = sum_up(outcomes)
    wrong = list_wrong(outcomes) or ["None is wrong."]
    seconds = sum(outcome.seconds for outcome in outcomes)
    command = f"`python tools/sweep checker --cases {len(outcomes)} --seed {options.seed}`"
    ran = f"{len(outcomes):,} jobs in {seconds:,.0f} s, {options.jobs} at a time."
    lines = [HEADING, "", f"{command}, {today()}, commit {commit_name()}, {machine}: {ran}", ""]
    lines += [*make_table(sums), "", make_rates(sum(sums.values(), Counter[str]())) + "."]
    lines += ["", "## Cases that are wrong", "", *wrong]
    figures = ROOT / "docs" / "checker-sweep.md"
    figures.write_text("\n".join(lines) + "\n")
    return figures


def show_case(name: str, *, check: bool) -> None:
    """Run one case and show its text, what was expected, and what was said."""
    case = find_case(name)
    for number, line in enumerate(case.text.splitlines(), 1):
        print(f"{'>' if number in case.lines else ' '}{number:3} {line}")
    outcome = run_case(case, check=check)
    print(f"\n{case.name}: {case.ranks} ranks, label {case.label or 'none'}, exit {outcome.code}")
    print(json.dumps(outcome.findings, indent=1), outcome.said, sep="\n")
    print(outcome.verdict() or "right")


def show_plain(outcomes: Sequence[Outcome]) -> bool:
    """How jobs ended that nobody checked, and those that should have ended otherwise."""
    codes: dict[str, Counter[int]] = {}
    wrong = []
    for outcome in outcomes:
        codes.setdefault(outcome.case.label or CORRECT, Counter())[outcome.code] += 1
        expected = PLAIN.get(outcome.case.label, ()) if outcome.case.label else (0,)
        if expected and outcome.code not in expected:
            wrong.append(f"{outcome.case.name} ends with {outcome.code}:\n{outcome.said[-1500:]}")
    for name, counts in codes.items():
        ends = ", ".join(f"{count} with {code}" for code, count in sorted(counts.items()))
        print(f"{name}: {ends}")
    print(*wrong, sep="\n")
    return not wrong


def main(words: Sequence[str] | None = None) -> None:
    """Run what the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    every = (*CLASSES, CORRECT)
    parser.add_argument("--cases", type=int, default=0, help="how many; each twin once by default")
    parser.add_argument(
        "--class", action="append", choices=every, dest="classes", help="only these"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first turn; 0 by default")
    parser.add_argument("--jobs", type=int, default=1, help="cases at a time; 1 by default")
    parser.add_argument("--case", help="only this one, and show it")
    parser.add_argument("--plain", action="store_true", help="without --check")
    parser.add_argument("--write", action="store_true", help="write docs/checker-sweep.md")
    options = parser.parse_args(words)
    if options.case:
        show_case(options.case, check=not options.plain)
        return
    cases = make_cases(options.cases, options.seed, options.classes or every)
    outcomes = []
    for outcome in run_cases(cases, options.jobs, check=not options.plain):
        outcomes.append(outcome)
        if not options.plain and (verdict := outcome.verdict()):
            print(f"{outcome.case.name}: {verdict}", flush=True)
    if options.plain:
        sys.exit(0 if show_plain(outcomes) else 1)
    sums = sum_up(outcomes)
    print(*make_table(sums), make_rates(sum(sums.values(), Counter[str]())), sep="\n")
    if options.write:
        print(f"written to {write_document(outcomes, options)}")


if __name__ == "__main__":
    main()
