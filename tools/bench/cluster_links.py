#!/usr/bin/env python3
"""Predicted beside measured: four hosts of the laboratory, over links of known rate and delay.

    python tools/bench cluster_links [--rounds 3] [--delays 2,10] [--rates 20,100,400]

Each host is a network namespace with one rank. `tc tbf` limits both directions of each cable, and
ompy's own fault `delay` holds all bytes of connections (the kernel may have no netem). What a
message costs a processor comes from configs/clusters/loopback.toml, rate and delay from the command
line: nothing is fitted here. Writes docs/figures/what-if.json, the part `links`, and prints the
table of docs/what-if.md. Needs root.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

from tools.bench.cluster_fit import BIN, FILE, machine_name
from tools.bench.cluster_programs import Case, program_text
from tools.bench.plots.figure import FIGURES
from tools.lab.laboratory import Laboratory

HOSTS: Final = 4
RAIL: Final = "rail1"
PROGRAMS: Final = ("ring", "halo", "bcast", "alltoall", "allreduce")
SIZES: Final = (1000, 30_000, 300_000)  # bytes; arbitrary: below and above a rendezvous
TURNS: Final = 3  # rounds of a program in a batch; arbitrary
BATCHES: Final = 4  # of a run, of which the fastest counts; arbitrary
# of what a link carries, what is payload: 1448 of 1514 bytes of a full frame are TCP's
PAYLOAD: Final = 1448 / 1514
# the ranks run before other processes of the machine
IN_TURN: Final = """\
import os, runpy, sys
os.setpriority(os.PRIO_PROCESS, 0, -15)
for path, *words in {plan}:
    sys.argv = [path, *map(str, words)]
    runpy.run_path(path, run_name="__main__")
"""


class Link(NamedTuple):
    """What all cables are.

    Attributes:
        delay_ms: from rank to rank.
        rate_mbit: in each direction.
    """

    delay_ms: float
    rate_mbit: int


def all_cases() -> list[Case]:
    return [Case(*one) for one in itertools.product(PROGRAMS, SIZES)]


def write_programs(folder: Path, cases: Sequence[Case], turns: int, batches: int) -> Path:
    """A program that runs all cases, one after the other."""
    for name in {case.program for case in cases}:
        (folder / f"{name}.py").write_text(program_text(name))
    plan = [[f"{folder}/{case.program}.py", case.size, turns, batches] for case in cases]
    (folder / "all.py").write_text(IN_TURN.format(plan=plan))
    return folder / "all.py"


def run_cases(
    command: Sequence[str], cases: Sequence[Case], environment: dict[str, str]
) -> dict[Case, float]:
    """Seconds of a round of each."""
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        sys.exit(f"{command[0]}: {done.stderr}")
    return dict(zip(cases, map(float, done.stdout.split()), strict=True))


def cluster_text(link: Link) -> str:
    """The file of a cluster with these links, whose messages cost what they cost on loopback."""
    costs = tomllib.loads(FILE.read_text())
    rate = f"{link.rate_mbit * PAYLOAD:.1f}Mbit/s"
    lines = [
        f"hosts = {HOSTS}",
        "ranks_per_host = 1",
        "[network]",
        'topology = "switch"',
        f'bandwidth = "{rate}"',
        f'hop_latency = "{link.delay_ms * 1e6 / 2:.0f}ns"',  # to the switch, and from there
        f'rank_bandwidth = "{costs["network"]["rank_bandwidth"]}"',
        "[memory]",
        f'bandwidth = "{costs["memory"]["bandwidth"]}"',
    ]
    for name in ("network", "memory"):
        for row in costs[name]["messages"]:  # TOML has JSON's strings, numbers and truth
            lines += [f"[[{name}.messages]]", *(f"{k} = {json.dumps(v)}" for k, v in row.items())]
    return "\n".join(lines) + "\n"


def predicted(link: Link, folder: Path) -> dict[Case, float]:
    (folder / "cluster.toml").write_text(cluster_text(link))
    words = ("sim", "-q", "--cluster", str(folder / "cluster.toml"), "-n", str(HOSTS))
    command = [str(BIN / "ompy"), *words, str(folder / "all.py")]
    return run_cases(command, all_cases(), dict(os.environ))


def measured(lab: Laboratory, link: Link, folder: Path, rounds: int) -> dict[Case, float]:
    """The fastest of all rounds: what others of this machine have disturbed says nothing."""
    for host in lab.hosts():
        lab.shape(host, RAIL, link.rate_mbit)
    hosts = ",".join(f"{host}:1" for host in lab.hosts())
    words = [str(BIN / "ompy-run"), "--host", hosts, "--mca", "btl", "self,tcp"]
    words += ["--mca", "btl_tcp_if_include", RAIL]
    if link.delay_ms:
        words += ["--fault", f"delay:delay={link.delay_ms:g}ms"]
    words += [str(BIN / "python"), str(folder / "all.py")]
    environment = {**os.environ, **lab.environment()}
    command = lab.command("h1", words)
    found = [run_cases(command, all_cases(), environment) for _ in range(rounds)]
    return {case: min(one[case] for one in found) for case in found[0]}


def rows_of(link: Link, real: dict[Case, float], said: dict[Case, float]) -> list[dict[str, Any]]:
    return [
        {
            **link._asdict(),
            "program": case.program,
            "bytes": case.size,
            "measured_ms": round(real[case] * 1e3, 3),
            "predicted_ms": round(said[case] * 1e3, 3),
            "error": round(said[case] / real[case] - 1, 3),
        }
        for case in real
    ]


def print_tables(rows: list[dict[str, Any]]) -> None:
    """Markdown for the page: errors by link and by program."""
    for key in ("delay_ms", "rate_mbit"), ("program", "bytes"):
        print(f"\n| {' | '.join(key)} | median error | most | too low |\n|---|---|---:|---:|---:|")
        groups: dict[tuple[Any, ...], list[float]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in key), []).append(row["error"])
        for group, errors in groups.items():
            sizes = sorted(map(abs, errors))
            low = sum(error < 0 for error in errors)
            shown = f"{median(sizes):.0%} | {sizes[-1]:.0%} | {low} of {len(errors)}"
            print(f"| {' | '.join(map(str, group))} | {shown} |")


def main() -> None:
    """Measure, predict, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--delays", default="2,10", help="ms")
    parser.add_argument("--rates", default="20,100,400", help="Mbit/s")
    options = parser.parse_args()
    delays, rates = options.delays.split(","), options.rates.split(",")
    links = [Link(float(d), int(r)) for d, r in itertools.product(delays, rates)]
    lab, rows, loads = Laboratory(f"links{os.getpid()}"), list[dict[str, Any]](), []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_programs(folder, all_cases(), TURNS, BATCHES)
        lab.up(HOSTS, 1)
        try:
            for link in links:
                loads.append(os.getloadavg()[0])
                real = measured(lab, link, folder, options.rounds)
                rows += rows_of(link, real, predicted(link, folder))
                print(link, rows[-len(real) :], file=sys.stderr, flush=True)
        finally:
            lab.down()
    path = FIGURES / "what-if.json"
    about = f"{datetime.now(UTC).date()}, {machine_name()}"
    said = {"about": about, "load": loads, "rounds": options.rounds, "rows": rows}
    path.write_text(json.dumps({**json.loads(path.read_text()), "links": said}, indent=1) + "\n")
    print_tables(rows)


if __name__ == "__main__":
    main()
