#!/usr/bin/env python3
"""What GASNet's puts and gets take over the emulated Gemini and Aries, by size: a table and a plot.

    pip install -e '.[dev,plots]' && python tools/bench gasnet_timing

Virtual time throughout, so every machine finds the same numbers. Writes
`docs/figures/gasnet-crossover.csv` and `.svg`, and prints where one way begins to pay.
"""

from __future__ import annotations

import csv
from typing import Final

from tests.support.gasnet_timing import WAYS, WHERE, Row, crossing, latency, measured
from tools.bench.plots.figure import FIGURES, finish, plotting

NAME: Final = "gasnet-crossover"
DRAWN: Final = ("FMA", "BTE", "BTE, bounce buffer", "BTE, registered")


def main() -> None:
    rows = [row for generation in ("gemini", "aries") for row in measured(generation)]
    with (FIGURES / f"{NAME}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["NIC", "where", "way", "bytes", "ns"])
        writer.writerows(rows)
    for generation in ("gemini", "aries"):
        for where, hosts in WHERE.items():
            show(generation, where, latency(generation, hosts), rows)
    plot(rows)


def of(rows: list[Row], generation: str, where: str, way: str) -> dict[int, float]:
    """Nanoseconds by size."""
    return {
        size: ns
        for nic, place, name, size, ns in rows
        if (nic, place, name) == (generation, where, way)
    }


def show(generation: str, where: str, seen: int, rows: list[Row]) -> None:
    """Print what can be compared with published figures."""
    ways = {way: of(rows, generation, where, way) for way in WAYS}
    largest = max(ways["BTE"])
    put, got = ways["FMA"][8], ways["get, in the segment"][8]
    print(
        f"{generation}, {where}: 8 bytes: seen after {seen} ns, put in {put:.0f}, got in {got:.0f}"
    )
    print(f"  {largest} bytes pass at {largest * 1_000 / ways['BTE'][largest]:.0f} MB/s")
    print(f"  from {crossing(ways['FMA'], ways['BTE'])} bytes on BTE is faster than FMA")
    both = crossing(ways["BTE, bounce buffer"], ways["BTE, registered"])
    print(f"  from {both} bytes on a registration is faster than a bounce buffer")


def plot(rows: list[Row]) -> None:
    """Draw latency by size, between hosts."""
    plt = plotting(NAME)
    figure, both = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained", sharey=True)
    for axes, generation in zip(both, ("gemini", "aries"), strict=True):
        for way in DRAWN:
            mine = of(rows, generation, "two hosts", way)
            axes.plot(list(mine), [ns / 1_000 for ns in mine.values()], marker=".", label=way)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("bytes")
        axes.set_title(f"{generation.capitalize()}: a blocking put (virtual time)")
    both[0].set_ylabel("us")
    finish(NAME, figure, *both)


if __name__ == "__main__":
    main()
