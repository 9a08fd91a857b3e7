#!/usr/bin/env python3
"""Fit a cluster file to this machine, and say how well it predicts programs it was not fitted to.

    python tools/bench cluster_fit [--rounds 7]

Measures by `ompy-run -n 2` over shared memory and TCP in turn: of each run the fastest batch, and
of these the median. The ranks have a high priority (root only): this machine is never idle.
Fits LogGP by least squares, writes configs/clusters/loopback.toml, predicts each program by
`ompy sim --cluster`, and writes docs/figures/what-if.json. Prints the tables of docs/what-if.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np

from tools.bench.cluster_programs import FITTED, Case, program_text, rounds_of
from tools.bench.plots.figure import FIGURES
from tools.repository import ROOT

BIN: Final = Path(sys.executable).parent
FILE: Final = ROOT / "configs" / "clusters" / "loopback.toml"
WAYS: Final = {"sm": "self,sm", "tcp": "self,tcp"}
# of the ranks that are measured, which take a few seconds: a rank that has to wait for its core
# behind other processes says nothing about messages
NICE: Final = "-15"
IN_TURN: Final = """\
import runpy, sys
for path, *words in {plan}:
    sys.argv = [path, *map(str, words)]
    runpy.run_path(path, run_name="__main__")
"""
BATCHES: Final = 30  # of a run, of which the fastest counts; arbitrary: some are undisturbed
# bytes from which on messages go another way: a page; btl_sm_eager_limit and btl_tcp_eager_limit
# less the PML's header, from where on a rendezvous is made
BORDERS: Final = (0, 4096, 65_500)
SIZES: Final = (1, 256, 1024, 2048, 4096, 8192, 16_384, 32_768, 60_000, 131_072, 262_144, 524_288)
HELD: Final = [  # sizes that nothing was fitted to
    Case(name, size)
    for name in ("ring", "halo", "bcast", "alltoall")
    for size in (96, 3000, 24_000, 200_000)
]
BURST: Final = 32  # messages in a burst, as in its program
EXCHANGED: Final = 262_144  # bytes; arbitrary: far above what costs do not depend on size


def measured_cases() -> list[Case]:
    fitted = [Case("ping-pong", size) for size in SIZES]
    fitted += [Case("burst", border + 1) for border in BORDERS[:-1]]
    return [*fitted, Case("exchange", EXCHANGED), *HELD]


def run_programs(command: list[str], folder: Path, batches: int) -> dict[Case, float]:
    """Seconds of a round of each case, all of them in one job."""
    cases = measured_cases()
    for name in {case.program for case in cases}:
        (folder / f"{name}.py").write_text(program_text(name))
    plan = [[f"{folder}/{one.program}.py", one.size, rounds_of(one.size), batches] for one in cases]
    (folder / "all.py").write_text(IN_TURN.format(plan=plan))
    done = subprocess.run(
        [*command, str(folder / "all.py")], capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode:
        sys.exit(f"cluster_fit: {done.stderr}")
    return dict(zip(cases, map(float, done.stdout.split()), strict=True))


def measure_all(rounds: int, folder: Path) -> dict[str, dict[Case, float]]:
    """Seconds of each case, over each BTL: medians over rounds, in which they take turns."""
    found: dict[str, list[dict[Case, float]]] = {way: [] for way in WAYS}
    for number in range(rounds):
        for way, btl in WAYS.items():
            command = ["nice", "-n", NICE, str(BIN / "ompy-run"), "-n", "2", "--mca", "btl", btl]
            command += ["--mca", "coll", "^sm", str(BIN / "python")]
            found[way].append(run_programs(command, folder, BATCHES))
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return {
        way: {case: median(one[case] for one in runs) for case in runs[0]}
        for way, runs in found.items()
    }


def fit_line(sizes: list[int], times: list[float]) -> tuple[float, float]:
    """Fit `a + b (n - 1)`, in ns and ns per byte, by least squares of the relative errors."""
    ns = np.array(times) * 1e9
    columns = np.stack([np.ones(len(sizes)), np.array(sizes) - 1.0], axis=1) / ns[:, None]
    (first, each), *_ = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)
    return float(first), float(each)


def fit_way(times: dict[Case, float]) -> dict[str, Any]:
    """LogGP of one BTL, as a table of a cluster file has it; ns and bytes per ns."""
    rows: list[dict[str, Any]] = []
    overhead = gap = 0.0
    for begin, end in zip(BORDERS, (*BORDERS[1:], 1 << 62), strict=True):
        sizes = [size for size in SIZES if begin <= size < end]
        one_way = [times[Case("ping-pong", size)] / 2 for size in sizes]
        first, each = fit_line(sizes, one_way)
        if Case("burst", begin + 1) in times:
            # a burst: so many messages, and one back
            burst = times[Case("burst", begin + 1)] * 1e9 - (first + each * begin)
            gap = max((burst - first - each * begin) / (BURST - 1), 0.0)
            overhead = min(gap, first / 2)
        rows.append({
            "from": begin,
            "latency": max(round(first - 2 * overhead), 0),
            "overhead": round(overhead),
            "gap": round(gap),
            "bandwidth": 1 / max(each, 1e-3),
            "rendezvous": begin == BORDERS[-1],
        })  # fmt: skip
    last = rows[-1]
    fixed = last["latency"] + 2 * last["overhead"]
    both = 2 * EXCHANGED / max(times[Case("exchange", EXCHANGED)] * 1e9 - fixed, 1.0)
    one = last["bandwidth"]
    return {"rank_bandwidth": min(max(both, one), 2 * one), "messages": rows}


def rate(bytes_per_ns: float) -> str:
    return f"{bytes_per_ns * 8e3:.0f}Mbit/s"


def way_lines(name: str, fitted: dict[str, Any]) -> list[str]:
    port = max(row["bandwidth"] for row in fitted["messages"])
    lines = [
        f"[{name}]",
        f'bandwidth = "{rate(2 * port)}"  # not measured: never short for two ranks',
        f'rank_bandwidth = "{rate(fitted["rank_bandwidth"])}"  # sent and received together',
    ]
    for row in fitted["messages"]:
        lines += [
            f"\n[[{name}.messages]]",
            f"from = {row['from']}",
            *(f'{key} = "{row[key]}ns"' for key in ("latency", "overhead", "gap")),
            f'bandwidth = "{rate(row["bandwidth"])}"',
        ]
        if row["rendezvous"]:
            lines.append("rendezvous = true")
    return lines


def file_text(fits: dict[str, dict[str, Any]], about: str, error: float | None) -> str:
    """The cluster file: shared memory within a host, TCP over loopback between hosts."""
    lines = [
        f"# Two hosts of two ranks, as measured: {about}.",
        "# Written by `python tools/bench cluster_fit`. Between hosts: TCP over loopback.",
        "hosts = 2",
        "ranks_per_host = 2",
    ]
    if error is not None:
        words = "two ranks of one machine over sm, and over tcp on loopback"
        lines += ["\n[validated]", "hosts = 2", "ranks = 2", f"error = {error:.2f}"]
        lines += [f'by = "{words}"']
    for name, way in (("memory", "sm"), ("network", "tcp")):
        lines += ["", *way_lines(name, fits[way])]
    return "\n".join(lines) + "\n"


def predict_all(way: str, folder: Path) -> dict[Case, float]:
    """Seconds of a round of each case, on the cluster that was fitted."""
    each = "2" if way == "sm" else "1"
    command = [str(BIN / "ompy"), "sim", "-q", "--cluster", str(FILE), "-n", "2"]
    return run_programs([*command, "--ranks-per-host", each], folder, 1)


def main() -> None:
    """Measure, fit, predict, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        times = measure_all(options.rounds, folder)
        loads.append(os.getloadavg()[0])
        fits = {way: fit_way(times[way]) for way in WAYS}
        about = f"{datetime.now(UTC).date()}, {machine_name()}"
        FILE.write_text(file_text(fits, about, None))
        predicted = {way: predict_all(way, folder) for way in WAYS}
        rows: list[dict[str, Any]] = [
            {
                "btl": way,
                "program": case.program,
                "bytes": case.size,
                "fitted": case.program in FITTED,
                "measured_us": round(times[way][case] * 1e6, 2),
                "predicted_us": round(predicted[way][case] * 1e6, 2),
            }
            for way in WAYS
            for case in measured_cases()
        ]
    for row in rows:
        row["error"] = round(row["predicted_us"] / row["measured_us"] - 1, 3)
    worst = max(abs(row["error"]) for row in rows if not row["fitted"])
    FILE.write_text(file_text(fits, about, worst))
    said = {"about": about, "load": loads, "rounds": options.rounds, "fit": fits, "rows": rows}
    path = FIGURES / "what-if.json"  # others have written parts of it
    path.write_text(json.dumps({**json.loads(path.read_text()), **said}, indent=1) + "\n")
    print_tables(said)


def machine_name() -> str:
    text = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in text if "model name" in line), "?")
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}, not compiled"


def print_tables(said: dict[str, Any]) -> None:
    """Markdown for the page."""
    print(f"{said['about']}; load {said['load'][0]:.0f} to {said['load'][1]:.0f}\n")
    for way in WAYS:
        rows = [row for row in said["rows"] if row["btl"] == way]
        print(f"\n{way}: program, bytes, measured us, predicted us, error\n")
        for row in rows:
            print(
                f"| {row['program']} | {row['bytes']:,} | {row['measured_us']:,.0f} | "
                f"{row['predicted_us']:,.0f} | {row['error']:+.0%} |"
            )
        for fitted in (True, False):
            errors = [abs(row["error"]) for row in rows if row["fitted"] == fitted]
            what = "fitted" if fitted else "predicted"
            print(f"\n{way}, {what}: median error {median(errors):.0%}, most {max(errors):.0%}")


if __name__ == "__main__":
    main()
