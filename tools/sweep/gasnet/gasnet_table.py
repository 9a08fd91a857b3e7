#!/usr/bin/env python3
"""What GASNet's test programs check, over both conduits and both variants: the table in docs.

    python tools/sweep gasnet_table [--seeds 3] [--write]

Every program of `tests/support/gasnet_programs.py` runs in a virtual world for each seed, over each
conduit of `tests/support/gasnet_worlds.py` but the late ones. Threads and ends of jobs need real
processes: those programs run once each. `--write` replaces the tables of `docs/gasnet-tests.md`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from typing import Final

from tests.support.gasnet_programs import PROGRAMS, Program
from tests.support.gasnet_worlds import CONDUITS, Under, run
from tools.repository import ROOT

SEEDS: Final = 3  # arbitrary: what docs/gasnet-tests.md shows, in a few minutes of one core
DOCUMENT: Final = ROOT / "docs" / "gasnet-tests.md"
# those whose NIC does everything late take long: the nightly run has them
COLUMNS: Final = {name: under for name, under in CONDUITS.items() if not under.nic}
HEAD: Final = "| program | GASNet's | ranks |"

# programs of real processes: GASNet's, ranks, the exit code they are to end with
REAL: Final = {
    "threads": ("testthreads, testcontend", 3, 0),
    "all_exit": ("testexit (all at once)", 3, 0),
    "one_exits": ("testexit (one, others poll)", 3, 7),
    "one_leaves": ("testexit (return with a code)", 3, 5),
    "handler_exits": ("testexit (in a handler)", 3, 9),
    "exits_before_attach": ("testexit (before attach)", 3, 5),
    "one_fails": ("testexit (an error)", 3, 1),
    "one_is_killed": ("testexit (a signal)", 3, 137),
}
PATIENCE: Final = 60  # s; arbitrary: they take a second


def main() -> None:
    options = argparse.ArgumentParser(description="GASNet's tests over every conduit.")
    options.add_argument("--seeds", type=int, default=SEEDS, help="worlds for each cell")
    options.add_argument("--write", action="store_true", help="replace the table in docs")
    chosen = options.parse_args()
    table = [HEAD + "".join(f" {name} |" for name in COLUMNS)]
    table.append("|---" * (3 + len(COLUMNS)) + "|")
    failed = 0
    for name, program in PROGRAMS.items():
        cells = [cell(program, under, chosen.seeds) for under in COLUMNS.values()]
        failed += sum(not text.endswith("worlds") for text in cells)
        table.append(f"| `{name}` | {program.follows} | {program.ranks} | {' | '.join(cells)} |")
        print(table[-1], flush=True)
    ends, wrong = real_table()
    print(ends)
    failed += wrong
    table += ["", "Between real processes, with the code the job ended with:", "", ends]
    if chosen.write:
        text = DOCUMENT.read_text()
        DOCUMENT.write_text(text[: text.index(HEAD)] + "\n".join(table) + "\n")
    sys.exit(failed > 0)


def real_table() -> tuple[str, int]:
    """The table of `REAL`, and how many of its cells are wrong."""
    ways = [
        (conduit, messages, pshm)
        for pshm in (0, 1)
        for conduit in ("gemini", "aries")
        for messages in (("smsg", "mailboxes") if not pshm else ("smsg",))
    ]
    names = [f"{way[0]}, {'neighbours' if way[2] else way[1]}" for way in ways]
    lines = [
        f"| program | GASNet's | ranks | {' | '.join(names)} |",
        "|---" * (3 + len(ways)) + "|",
    ]
    wrong = 0
    for name, (follows, ranks, expected) in REAL.items():
        codes = [real_code(name, ranks, *way) for way in ways]
        wrong += sum(code != expected for code in codes)
        cells = [str(code) if code == expected else f"**{code}**" for code in codes]
        lines.append(f"| `{name}` | {follows} | {ranks} | {' | '.join(cells)} |")
    return "\n".join(lines), wrong


def real_code(name: str, ranks: int, conduit: str, messages: str, pshm: int) -> int:
    """What a job of a program ends with."""
    command = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), "--timeout", str(PATIENCE)]
    for key, value in (("messages", messages), ("pshm", str(pshm))):
        command += ["--mca", f"conduit_{conduit}_{key}", value]
    command += [
        "--mca",
        "conduit",
        conduit,
        sys.executable,
        "-m",
        "tests.support.gasnet_rank",
        name,
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, check=False, cwd=ROOT, env=environment)
    return done.returncode


def cell(program: Program, under: Under, seeds: int) -> str:
    """How a program did: the worlds it passed, or the seed that it failed at and why."""
    for seed in range(seeds):
        try:
            run(under, program.ranks, program.run, seed=seed)
        except Exception as problem:
            return f"seed {seed}: {str(problem).splitlines()[0][:80]}"
    return f"{seeds} worlds"


if __name__ == "__main__":
    main()
