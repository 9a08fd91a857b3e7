#!/usr/bin/env python3
"""What failing over costs while nothing fails: bfo beside ob1; prints Markdown.

    python tools/bench bfo_cost [--tree build/compiled] [--rounds 30] [--btl self,sm]

Two ranks play ping-pong: small messages for their latency, large ones for their bandwidth. In
every round each PML has a job, the first one in turns. A job's figure is its quickest batch; the
quotient of a round's two figures is what else the machine does taken out, as far as that goes.
The table has the median of the quotients and its 95 % interval (bootstrap: the rounds drawn anew
10,000 times). Over tcp there is a third job, ob1 with the acknowledgements that bfo has tcp keep:
what these cost, and what is bfo's own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from tools.repository import commit_name

DRAWS: Final = 10_000  # arbitrary: the interval's ends are steady in the third digit
SIZES: Final = {8: 100, 1024: 100, 1 << 20: 8, 16 << 20: 1}  # bytes, and round trips of a batch
BATCHES: Final = 60  # arbitrary: short ones, of which some are undisturbed
LIMITS: Final = {8: 1.05, 1024: 1.05, 1 << 20: 1.03, 16 << 20: 1.03}  # what the project promises
LABELS: Final = {8: "8 B", 1024: "1 KiB", 1 << 20: "1 MiB", 16 << 20: "16 MiB"}
ACKNOWLEDGING: Final = "send,put,inplace,need-ack,need-csum,rdma-completion,hetero-rdma,failover"
PROGRAM: Final = """
import json, sys
from time import perf_counter
from mpi4py import MPI
comm = MPI.COMM_WORLD
sizes, batches = json.loads(sys.argv[1]), int(sys.argv[2])
found = {}
for size, trips in sizes.items():
    out, back = bytearray(int(size)), bytearray(int(size))
    quickest = float("inf")
    for _ in range(batches):
        begun = perf_counter()
        for _ in range(trips):
            if comm.rank == 0:
                comm.Send(out, 1)
                comm.Recv(back, 1)
            else:
                comm.Recv(back, 0)
                comm.Send(out, 0)
        quickest = min(quickest, (perf_counter() - begun) / trips / 2)
    found[size] = quickest
if comm.rank == 0:
    print(json.dumps(found))
"""


def variants(btl: str) -> dict[str, list[str]]:
    """Options of the jobs that are compared, by name."""
    found = {"ob1": ["--mca", "pml", "ob1"], "bfo": ["--mca", "pml", "bfo"]}
    if "tcp" in btl:
        found["ob1, acknowledged"] = [*found["ob1"], "--mca", "btl_tcp_flags", ACKNOWLEDGING]
    return found


def job(btl: str, options: Sequence[str], environment: Mapping[str, str]) -> dict[int, float]:
    """Seconds of a message one way, by size."""
    words = [sys.executable, "-m", "ompy.cli.run", "-n", "2", "--mca", "btl", btl, *options]
    words += [sys.executable, "-c", PROGRAM, json.dumps(SIZES), str(BATCHES)]
    done = subprocess.run(
        words,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return {int(size): seconds for size, seconds in json.loads(done.stdout).items()}


def interval(quotients: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median."""
    chance = np.random.default_rng(0)
    drawn = chance.choice(np.array(quotients), (DRAWS, len(quotients)))
    low, high = np.percentile(np.median(drawn, axis=1), (2.5, 97.5))
    return float(low), float(high)


Found = dict[tuple[str, str], list[dict[int, float]]]


def play(btls: Sequence[str], rounds: int, environment: Mapping[str, str]) -> Found:
    """Figures of all jobs, by BTL and variant; of the rounds so far when it is interrupted."""
    found: Found = {(btl, name): [] for btl in btls for name in variants(btl)}
    with suppress(KeyboardInterrupt):
        for number in range(rounds):
            for btl, name in found if number % 2 else reversed(found):
                found[btl, name].append(job(btl, variants(btl)[name], environment))
    whole = min(len(figures) for figures in found.values())
    return {key: figures[:whole] for key, figures in found.items()}


def compare(btl: str, found: Found) -> list[str]:
    """Rows of the table for one BTL."""
    names = list(variants(btl))
    pairs = [("bfo", "ob1")]
    if len(names) > 2:
        pairs += [(names[2], "ob1"), ("bfo", names[2])]
    rows = []
    for one, other in pairs:
        for size, limit in LIMITS.items():
            both = list(zip(found[btl, one], found[btl, other], strict=True))
            quotients = [mine[size] / theirs[size] for mine, theirs in both]
            low, high = interval(quotients)
            times = [f"{1e6 * median(pair[index][size] for pair in both):.1f}" for index in (0, 1)]
            judged = f"{limit} | {'yes' if median(quotients) <= limit else '**no**'}"
            rows.append(
                f"| {btl} | {one} / {other} | {LABELS[size]} | {' | '.join(times)} | "
                f"**{median(quotients):.3f}** | {low:.3f} to {high:.3f} | "
                f"{judged if other == 'ob1' and one == 'bfo' else '- | -'} |"
            )
    return rows


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tree", type=Path, help="made by tools/package compile_hot")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--btl", action="append", default=[], help="repeatedly; sm and tcp")
    options = parser.parse_args()
    environment = {"PYTHONPATH": str(options.tree.resolve())} if options.tree else {}
    btls = options.btl or ["self,sm", "self,tcp"]
    found = play(btls, options.rounds, environment)
    rounds = len(found[btls[0], "ob1"])
    if not rounds:
        raise SystemExit("not one round was finished")
    rows = [row for btl in btls for row in compare(btl, found)]
    loads = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, ompy at {commit_name()}, "
        f"{'compiled' if options.tree else 'interpreted'}, {os.cpu_count()} cores, Linux "
        f"{platform.release()}, Python {platform.python_version()}, {rounds} rounds; load "
        f"averages at the end {loads}. Times in us one way, medians.",
        "",
        "| btl | what | bytes | first | second | quotient | 95 % | at most | reached |",
        "|---" * 9 + "|",
        *rows,
        sep="\n",
    )


if __name__ == "__main__":
    main()
