#!/usr/bin/env python3
"""What bfo gets over one, two and three openib rails by message size: a table and a plot.

    pip install -e '.[dev,plots]' && python tools/bench bfo_goodput

Virtual time on the clock of nic/hca, so every machine finds the same numbers. Writes
`docs/figures/bfo-goodput.csv` and `.svg`.
"""

from __future__ import annotations

import csv
from typing import Final

from tests.support.rail_streams import goodput
from tools.bench.plots.figure import FIGURES, finish, plotting

RAILS: Final = (1, 2, 3)
SIZES: Final = tuple(8 << shift for shift in range(0, 21, 2))  # bytes: 8 B to 8 MiB
BYTES: Final = 32 << 20  # arbitrary: sent at most for each point
COUNTS: Final = (8, 256)  # arbitrary: messages of a point at least, at most
NAME: Final = "bfo-goodput"

Row = tuple[str, int, float]  # rails, bytes of a message, Mbit/s


def main() -> None:
    rows = curves()
    with (FIGURES / f"{NAME}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["rails", "bytes", "Mbit/s"])
        writer.writerows(rows)
    plot(rows)


def curves() -> list[Row]:
    """All points."""
    rows = [point(rails, size) for rails in RAILS for size in SIZES]
    for row in rows:
        print(f"{row[0]} rails, {row[1]} B: {row[2]:.1f} Mbit/s")
    return rows


def point(rails: int, size: int) -> Row:
    """One of them."""
    least, most = COUNTS
    return (str(rails), size, round(goodput(rails, size, max(least, min(most, BYTES // size))), 1))


def plot(rows: list[Row]) -> None:
    """Draw the rows."""
    plt = plotting(NAME)
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for rails in RAILS:
        mine = [row for row in rows if row[0] == str(rails)]
        label = f"{rails} rail{'s' if rails > 1 else ''}"
        axes.plot([row[1] for row in mine], [row[2] for row in mine], marker="o", label=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("bytes of a message, 8 under way")
    axes.set_ylabel("goodput, Mbit/s")
    axes.set_title("bfo over openib rails: nic/hca as a ConnectX-3 on FDR (virtual time)")
    finish(NAME, figure, axes)


if __name__ == "__main__":
    main()
