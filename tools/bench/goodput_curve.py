#!/usr/bin/env python3
"""What usnic gets over a simulated link of 10 Gbit/s and 10 us, by loss rate: a table and a plot.

    pip install -e '.[dev,plots]' && python tools/bench goodput_curve

Virtual time throughout, so every machine finds the same numbers. Writes
`docs/figures/usnic-goodput.csv` and `.svg`.
"""

from __future__ import annotations

import csv
from statistics import median
from typing import Final

from ompy.net.faults.fault_rules import FaultRule

from tests.support.usnic_streams import stream
from tools.bench.plots.figure import FIGURES, finish, plotting

RATES: Final = (0.0, 0.0001, 0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
WAYS: Final = {  # arbitrary names; parameters of usnic
    "selective ACKs (default)": {},
    "duplicate ACKs alone": {"selective_ack": 0},
    "window and 100 ms alone (seed)": {"congestion_control": 0},
}
SEEDS: Final = 5  # arbitrary: the middle one of five
FRAGMENTS: Final = 200  # arbitrary: 4 MB, 3000 packets
NAME: Final = "usnic-goodput"

Row = tuple[str, float, float, float, float, float]  # way, loss, median, least, most, resends


def main() -> None:
    rows = [measure(way, rate) for way in WAYS for rate in RATES]
    judge(rows)
    with (FIGURES / f"{NAME}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["way", "loss", "median Mbit/s", "least", "most", "resends per packet"])
        writer.writerows(rows)
    plot(rows)


def measure(way: str, rate: float) -> Row:
    """One point: some seeds."""
    rules = [FaultRule("drop", probability=rate)] if rate else []
    runs = [stream(*rules, fragments=FRAGMENTS, seed=seed, **WAYS[way]) for seed in range(SEEDS)]
    goodput = sorted(run.goodput for run in runs)
    again = median(run.resends / run.packets for run in runs)
    figures = [round(value, 3) for value in (median(goodput), goodput[0], goodput[-1], again)]
    print(f"{way}, loss {rate:.2%}: {figures[0]:.1f} Mbit/s, {again:.2f} resends a packet")
    return (way, rate, *figures)  # type: ignore[return-value]


def judge(rows: list[Row]) -> None:
    """Say how the default does beside the better of the other ways at each loss rate."""
    default, *others = WAYS
    found = {(row[0], row[1]): row[2] for row in rows}
    for rate in RATES:
        best = max(found[way, rate] for way in others)
        print(f"loss {rate:.2%}: {found[default, rate] / best:.2f} of the better one")


def plot(rows: list[Row]) -> None:
    """Draw the rows."""
    plt = plotting(NAME)
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for way in WAYS:
        mine = [row for row in rows if row[0] == way]
        losses = [100 * row[1] for row in mine]
        (line,) = axes.plot(losses, [row[2] for row in mine], marker="o", label=way)
        axes.fill_between(
            losses,
            [row[3] for row in mine],
            [row[4] for row in mine],
            color=line.get_color(),
            alpha=0.2,
            linewidth=0,
        )
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_yscale("log")
    axes.set_xticks([0, 0.01, 0.1, 1, 10, 50], ["0", "0.01", "0.1", "1", "10", "50"])
    axes.set_xlabel("packets lost, % each way")
    axes.set_ylabel("goodput, Mbit/s")
    axes.set_title("usnic, 4 MB in fragments of 20 kB over 10 Gbit/s, 10 us (virtual time)")
    finish(NAME, figure, axes)


if __name__ == "__main__":
    main()
