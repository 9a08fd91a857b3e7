#!/usr/bin/env python3
"""Jobs over four hosts of `tools/lab`: how long they take to start, OSU's loops, ranks to 64.

    python tools/bench hosts [--rounds 5] [--only start,loops,ranks]

Prints Markdown for docs/hosts-figures.md. By ssh, in a Slurm allocation and by srun alone, in turn
in every round. Needs root and what `tools/lab up --slurm` needs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from tools.lab.laboratory import Laboratory
from tools.repository import ROOT

BIN = Path(sys.executable).parent

LAB = [sys.executable, str(ROOT / "tools" / "lab"), "--name", "figures"]
RUN = [sys.executable, "-m", "ompy.cli.run"]
BENCH = [sys.executable, "-m", "ompy.cli.main", "bench"]
HOSTS = ("h1", "h2", "h3", "h4")
RAILS = ("--mca", "btl_tcp_if_include", "10.77.0.0/16")
RING = [sys.executable, str(ROOT / "examples" / "ring.py")]
DROPIN = ROOT / "core" / "ompy" / "dropin"
PASSIVE = ["env", f"PYTHONPATH={DROPIN}", "srun", "-Q", "-N4", "-n8"]
ALLOCATION = ["salloc", "-Q", "-N4", "-n8"]
# a rank's proportional share of memory once it is connected to all others
MEMORY = """
from mpi4py import MPI
c = MPI.COMM_WORLD
c.allreduce(1)
text = open("/proc/self/smaps_rollup").read()
found = c.gather(int(text.partition("Pss:")[2].split()[0]))
if c.rank == 0:
    print(sorted(found)[len(found) // 2])
"""


def on_first_host(words: Sequence[str]) -> tuple[float, str]:
    """Seconds a command on h1 takes, and what it prints."""
    begun = time.perf_counter()
    done = subprocess.run(
        [*LAB, "exec", "h1", "--", *words], capture_output=True, text=True, check=False, timeout=300
    )
    took = time.perf_counter() - begun
    if done.returncode:
        sys.exit(f"hosts: {' '.join(words)}: {done.stderr}")
    return took, done.stdout


def slots(count: int) -> list[str]:
    return ["--host", ",".join(f"{host}:{count}" for host in HOSTS)]


def starts(rounds: int) -> list[str]:
    """From start to end, against what ssh, srun and one host take."""
    ssh = " ".join(f"ssh {host} true &" for host in HOSTS[1:]) + " wait"
    commands = {
        "`srun -N4 hostname`": ["srun", "-Q", "-N4", "hostname"],
        "`srun -N4 -n8 python -c pass`": ["srun", "-Q", "-N4", "-n8", sys.executable, "-c", "pass"],
        "`srun -N4 -n8 python examples/ring.py`, passive": [*PASSIVE, *RING],
        "`salloc -N4 -n8 ompy-run`, the same": [*ALLOCATION, *RUN, *RING],
        "`salloc -N4 -n8 ompy-run true`": [*ALLOCATION, *RUN, "true"],
        "`ssh` to three hosts at once, `true`": ["sh", "-c", ssh],
        "`ompy-run` by ssh, 8 ranks, `true`": [*RUN, *slots(2), "true"],
        "the same, `examples/ring.py`": [*RUN, *slots(2), *RING],
        "`ompy-run -n 8` on one host, `examples/ring.py`": [*RUN, "-n", "8", *RING],
    }
    took: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, words in commands.items():
            took[name].append(on_first_host(words)[0])
    rows = [f"| {name} | {median(took[name]):.2f} | {min(took[name]):.2f} |" for name in commands]
    return ["| start to end | median, s | best, s |", "|---|---|---|", *rows]


LOOPS = {  # what is measured: kind, size, hosts, ranks
    "latency h1-h2, 8 bytes": ("latency", "8", "h1:1,h2:1", 2),
    "latency h1-h2, 64 KiB": ("latency", "64k", "h1:1,h2:1", 2),
    "bandwidth h1-h2, 1 MiB": ("bandwidth", "1m", "h1:1,h2:1", 2),
    "allreduce of 8 ranks on 4 hosts, 8 bytes": ("allreduce", "8", "", 8),
    "the same, 128 KiB": ("allreduce", "128k", "", 8),
}


def loops(rounds: int) -> list[str]:
    """OSU's loops over both rails."""
    rows = []
    for name, (kind, size, hosts, ranks) in LOOPS.items():
        where = ["--host", hosts] if hosts else slots(2)
        words = [*BENCH, kind, "-n", str(ranks), "--sizes", size, "--rounds", "3", "--json"]
        words += [*where, *RAILS]
        figures: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(rounds):
            for allocated in figures:
                told = on_first_host([*ALLOCATION, *words] if allocated else words)[1]
                figures[allocated] += json.loads(told)["rows"][0]["seconds"]
        cells = [_cell(kind, figures[allocated]) for allocated in (False, True)]
        rows.append(f"| {name} | {cells[0]} | {cells[1]} |")
    head = "| | by ssh: median, best | in an allocation: median, best |"
    return [head, "|---|---|---|", *rows]


def _cell(kind: str, seconds: list[float]) -> str:
    """Median and best, in the unit that reads best."""
    if kind == "bandwidth":
        return f"{1.048576 / median(seconds):.0f}, {1.048576 / min(seconds):.0f} MB/s"
    if median(seconds) < 1e-3:
        return f"{median(seconds) * 1e6:.0f}, {min(seconds) * 1e6:.0f} us"
    return f"{median(seconds) * 1e3:.1f}, {min(seconds) * 1e3:.1f} ms"


def ranks(rounds: int) -> list[str]:
    """From 4 ranks to 64."""
    heads = ("ranks on four hosts", "start to end, median", "memory of a rank (PSS)")
    rows = [f"| {' | '.join(heads)} | management bytes out of the launcher's host |"]
    rows.append("|---|---|---|---|")
    for each in (1, 2, 4, 8, 16):
        took, memory, moved = [], [], []
        for _ in range(rounds):
            before = _sent()
            seconds, told = on_first_host([*RUN, *slots(each), sys.executable, "-c", MEMORY])
            took.append(seconds)
            memory.append(int(told))
            moved.append(_sent() - before)
        rows.append(
            f"| {4 * each} | {median(took):.1f} s | {median(memory) / 1024:.0f} MiB | "
            f"{median(moved) / 1000:.0f} KB |"
        )
    return rows


def _sent() -> int:
    path = "/sys/class/net/management/statistics/tx_bytes"
    command = ["ip", "netns", "exec", "figures-h1", "cat", path]
    return int(subprocess.run(command, capture_output=True, check=True).stdout)


PARTS = {"start": starts, "loops": loops, "ranks": ranks}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(PARTS))
    options = parser.parse_args()
    day = datetime.now(UTC).date().isoformat()
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    laboratory = Laboratory("figures")
    laboratory.up(len(HOSTS), 2, with_slurm=True)
    try:
        print(f"{day}, {machine}; {options.rounds} rounds; load {os.getloadavg()[0]:.1f} before.")
        for part in options.only.split(","):
            print("", *PARTS[part](options.rounds), sep="\n", flush=True)
        print(f"\nLoad at the end {os.getloadavg()[0]:.1f}.")
    finally:
        laboratory.down()


if __name__ == "__main__":
    main()
