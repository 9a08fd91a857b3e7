#!/usr/bin/env python3
"""4,000 jobs of programs that are right and wait in every way, then stand still: who is accused.

    python tools/sweep deadlocks             all of them: over an hour of two cores
    python tools/sweep deadlocks --worlds N  the first N jobs
    python tools/sweep deadlocks --world N   one again, and what it says

The programs are those of `tests/support/waiting_programs.py`; what a sweep does is in `worlds.py`.
When all have passed, `docs/deadlocks-sweep.md` is written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from ompy.runtime.diagnosis.autopsy import DEADLOCK

from tools.repository import ROOT
from tools.sweep.worlds import Sums, WorldSweep, main

HEADING: Final = """\
# The sweep of deadlocks

A job runs 25 random programs that are right (`tests/support/waiting_programs.py`), with messages, collective calls, windows, files and ports, with late, stopped and threaded ranks, and ranks that say how they stand after 0 to 20 ms asleep. None may be accused. Then two of its ranks wait for each other for ever, each in one
of fifteen ways, the others in a collective call: the job has to end with exit code 4 within a minute, and to name the two."""  # noqa: E501 - a paragraph of Markdown
PROGRAMS: Final = 25  # of a job; arbitrary: some seconds
PATIENCE_S: Final = 120  # arbitrary: far longer than any takes
BTLS: Final = ("self,sm", "self,sm", "self,tcp", "self,sm,tcp")
PATIENCES_MS: Final = (0, 1, 5, 20)
COLUMNS: Final = {  # heading: counters that are summed
    "jobs": ("worlds",),
    "right programs": ("programs",),
    "accused": ("accused",),
    "stood still": ("stood",),
    "found": ("found",),
}


def command(number: int, autopsy: Path) -> tuple[str, list[str]]:
    """The class of a job, and its command line."""
    chance = Random(f"job {number}")  # noqa: S311 - it repeats a job
    ranks, btl = chance.randint(2, 4), chance.choice(BTLS)
    words = [str(Path(sys.executable).with_name("ompy-run")), "-n", str(ranks), "--oversubscribe"]
    words += ["--mca", "btl", btl, "--autopsy", str(autopsy)]
    words += ["--mca", "mca_base_deadlock_patience_ms", str(chance.choice(PATIENCES_MS))]
    program = ROOT / "tests" / "support" / "waiting_programs.py"
    words += [sys.executable, str(program), str(number * PROGRAMS), str(PROGRAMS), "stand"]
    return f"{ranks} ranks, {btl}", words


def run(number: int) -> tuple[str, Counter[str]]:
    """One job: its class, and what it counted."""
    with tempfile.TemporaryDirectory() as folder:
        autopsy = Path(folder) / "autopsy.json"
        what, words = command(number, autopsy)
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        lines = done.stdout.splitlines()
        assert f"{PROGRAMS} programs ended" in lines, f"accused, or failed: {done}"
        assert done.returncode == DEADLOCK, done
        (stood,) = (line for line in lines if line.startswith("stand "))
        pair = {int(word) for word in stood.split()[1:]}
        accused = set(json.loads(autopsy.read_text())["ranks"])
    assert pair <= accused, f"{pair} stood still, {accused} were accused: {done.stderr}"
    return what, Counter({"programs": PROGRAMS, "accused": 0, "stood": 1, "found": 1})


def show(number: int) -> None:
    """Run one job and show what it says."""
    what, words = command(number, Path("autopsy.json"))
    print(what, " ".join(words), sep="\n")
    subprocess.run(words, check=False)


def silent(_sums: Sums) -> list[str]:
    """Each job has to find what stands still, so nothing can stay away."""
    return []


DEADLOCKS: Final = WorldSweep(
    name="deadlocks",
    worlds=4000,  # with 25 programs each: the 100,000 that none of may be accused
    shard=20,  # arbitrary: less than a minute
    run=run,
    show=show,
    silent=silent,
    heading=HEADING,
    columns=COLUMNS,
)

if __name__ == "__main__":
    main(DEADLOCKS, __doc__ or "")
