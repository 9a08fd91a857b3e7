#!/usr/bin/env python3
"""SIGKILL to every kind of process of jobs over several hosts, and a table of what came of it.

    python tools/sweep host_kills                    fifty of each: about an hour on two cores
    python tools/sweep host_kills --each 5 --how ssh

By ssh, in a Slurm allocation, and by srun alone, on the laboratory of `tools/lab` (root, sshd,
Slurm). The trials are `tests/netns/test_kills.py`; those that passed before at the same commit are
not done again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.repository import ROOT, commit_name

EACH = 50  # arbitrary: fifty of each, at random moments
TESTS = {"ssh": "test_by_ssh", "slurm": "test_in_an_allocation", "srun": "test_by_srun_alone"}
NAMES = {"ssh": "ompy-run by ssh", "slurm": "ompy-run by Slurm", "srun": "srun alone"}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser("tools/sweep", "host_kills", description=__doc__)
    found.add_argument("--each", type=int, default=EACH, help="kills of each kind of process")
    found.add_argument("--how", choices=TESTS, action="append", help="default: all")
    found.add_argument("--record", type=Path, help="default: build/host-kills-COMMIT.jsonl")
    found.add_argument("--table", action="store_true", help="only show what there is")
    return found


def main() -> int:
    arguments = parser().parse_args()
    commit = commit_name()
    record = arguments.record or ROOT / "build" / f"host-kills-{commit}.jsonl"
    record.parent.mkdir(parents=True, exist_ok=True)
    code = 0 if arguments.table else _kill(arguments.how or [*TESTS], arguments.each, record)
    lines = record.read_text().splitlines() if record.exists() else []
    print("\n".join(table([json.loads(line) for line in lines])))
    return code


def _kill(hows: Sequence[str], each: int, record: Path) -> int:
    """Do the trials that are left. The exit code of pytest, which shows what fails."""
    tests = [f"tests/netns/test_kills.py::{TESTS[how]}" for how in hows]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    environment = {
        **os.environ,
        "OMPY_EFFORT": "2",
        "OMPY_KILL_EACH": str(each),
        "OMPY_KILL_RECORD": str(record.resolve()),
    }
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def table(trials: Sequence[dict[str, Any]]) -> list[str]:
    """Markdown: how often each was killed, when, and how long something was left."""
    rows = [
        "| job | killed | times | of them while it started | empty after, s: median, longest |",
        "|---|---|---|---|---|",
    ]
    for how, victim in dict.fromkeys((trial["how"], trial["victim"]) for trial in trials):
        here = [trial for trial in trials if (trial["how"], trial["victim"]) == (how, victim)]
        early = sum(trial["moment"] == "starting" for trial in here)
        took = [trial["empty_s"] for trial in here]
        rows.append(
            f"| {NAMES[how]} | {victim} | {len(here)} | {early} | "
            f"{statistics.median(took):.2f}, {max(took):.2f} |"
        )
    return rows


if __name__ == "__main__":
    sys.exit(main())
