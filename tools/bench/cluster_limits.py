#!/usr/bin/env python3
"""How far a prediction is off where the model knows nothing: `coll/sm`, and ranks that share cores.

    python tools/bench cluster_limits [--rounds 3]

Measures collectives of two ranks through the board in shared memory, and programs of more ranks
than this machine has cores, and predicts them from configs/clusters/loopback.toml. Writes the part
`limits` of docs/figures/what-if.json, and prints the table of docs/what-if.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.bench.cluster_fit import BIN, FILE, NICE, machine_name
from tools.bench.cluster_links import run_cases, write_programs
from tools.bench.cluster_programs import Case
from tools.bench.plots.figure import FIGURES

SIZES: Final = (1000, 30_000, 300_000)  # bytes; arbitrary: as of cluster_links
TURNS: Final = 4  # rounds of a program in a batch; arbitrary


class Limit(NamedTuple):
    """Something that the model does not know.

    Attributes:
        what: in words.
        ranks: of the programs.
        options: of `ompy-run`.
        programs: which.
    """

    what: str
    ranks: int
    options: tuple[str, ...]
    programs: tuple[str, ...]


BATCHES: Final = 10  # of a run, of which the fastest counts; arbitrary

LIMITS: Final = (
    Limit("collectives through memory (coll/sm)", 2, (), ("bcast", "allreduce", "alltoall")),
    Limit("2 ranks on each core", 4, ("--mca", "coll", "^sm"), ("ring", "halo", "allreduce")),
    Limit("4 ranks on each core", 8, ("--mca", "coll", "^sm"), ("ring", "halo", "allreduce")),
)


def compare(limit: Limit, folder: Path, rounds: int) -> list[dict[str, Any]]:
    """Measured beside predicted, for each program and size."""
    cases = [Case(name, size) for name in limit.programs for size in SIZES]
    program = str(write_programs(folder, cases, TURNS, BATCHES))
    count = ("-n", str(limit.ranks))
    run = ["nice", "-n", NICE, str(BIN / "ompy-run"), *count, "--oversubscribe", *limit.options]
    run += ["--mca", "btl", "self,sm", str(BIN / "python"), program]
    found = [run_cases(run, cases, dict(os.environ)) for _ in range(rounds)]
    each = ("--ranks-per-host", str(limit.ranks))
    sim = [str(BIN / "ompy"), "sim", "-q", "--cluster", str(FILE), *count, *each, program]
    said = run_cases(sim, cases, dict(os.environ))
    rows = []
    for case in cases:
        real = min(one[case] for one in found)
        rows.append({
            "what": limit.what,
            "program": case.program,
            "bytes": case.size,
            "measured_us": round(real * 1e6, 2),
            "predicted_us": round(said[case] * 1e6, 2),
            "ratio": round(said[case] / real, 2),
        })  # fmt: skip
    return rows


def main() -> None:
    """Measure, predict, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    loads = [os.getloadavg()[0]]
    with tempfile.TemporaryDirectory() as made:
        rows = [row for limit in LIMITS for row in compare(limit, Path(made), options.rounds)]
    loads.append(os.getloadavg()[0])
    about = f"{datetime.now(UTC).date()}, {machine_name()}"
    path = FIGURES / "what-if.json"
    said = {"about": about, "load": loads, "rounds": options.rounds, "rows": rows}
    path.write_text(json.dumps({**json.loads(path.read_text()), "limits": said}, indent=1) + "\n")
    print("| what | program | bytes | measured, us | predicted, us | predicted / measured |")
    print("|---|---|---:|---:|---:|---:|")
    for row in rows:
        cells = (f"{row['measured_us']:,.0f}", f"{row['predicted_us']:,.0f}", row["ratio"])
        print("|", " | ".join(map(str, (row["what"], row["program"], row["bytes"], *cells))), "|")


if __name__ == "__main__":
    main()
