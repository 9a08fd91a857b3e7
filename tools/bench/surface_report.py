"""The ratios of `surface.py` as rows, as Markdown, and as a plot of all of them, sorted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tools.bench.plots.figure import plotting


class Ratio(NamedTuple):
    """One row beside the fastest peer: medians in seconds, and the median of the rounds' ratios."""

    row: str
    size: int
    ranks: int
    way: str
    ours: float
    theirs: float
    against: str
    ratio: float


def ratio_rows(
    seconds: Mapping[tuple[str, int, str, str, int], Sequence[float]],
    ours: str,
    others: Sequence[str],
) -> list[Ratio]:
    """Rows that we and a peer have, the largest ratio first."""
    found = []
    for (side, ranks, way, row, size), mine in seconds.items():
        if side != ours:
            continue
        theirs = {name: seconds.get((name, ranks, way, row, size), ()) for name in others}
        present = {name: times for name, times in theirs.items() if times}
        if not present:
            continue
        fastest = min(present, key=lambda name: median(present[name]))
        ratio = median(one / other for one, other in zip(mine, present[fastest], strict=False))
        found.append(
            Ratio(row, size, ranks, way, median(mine), median(present[fastest]), fastest, ratio)
        )
    return sorted(found, key=lambda one: -one.ratio)


def markdown(table: Sequence[Ratio], said: str, errors: Mapping[str, str]) -> str:
    """All of them, and a summary."""
    if not table:
        return f"{said}\n\nnothing was measured on both sides"
    ratios = [row.ratio for row in table]
    slower = sum(ratio > 1 for ratio in ratios)
    lines = [
        said,
        "",
        f"{len(table)} rows, median {median(ratios):.2f}; {slower} above 1, "
        f"{sum(ratio > 1.5 for ratio in ratios)} above 1.5, {sum(ratio > 3 for ratio in ratios)} "
        f"above 3; {len(errors)} not measured on a side.",
        "",
        "| call | bytes | ranks, way | ours, us | fastest peer, us | ratio |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    lines += [
        f"| {row.row} | {row.size:,} | {row.ranks}, {row.way} | {row.ours * 1e6:,.2f} | "
        f"{row.theirs * 1e6:,.2f} ({row.against.rpartition(' ')[2]}) | {row.ratio:.2f} |"
        for row in table
    ]
    return "\n".join(lines)


def sorted_plot(table: Sequence[Ratio], path: Path) -> None:
    """Every ratio as a point, sorted, on a logarithmic scale."""
    plt = plotting("surface")
    figure, axes = plt.subplots(figsize=(9, 4.5))
    ratios = sorted(row.ratio for row in table)
    colours = ["#2a7f4f" if ratio <= 1 else "#b5482a" for ratio in ratios]
    axes.scatter(range(len(ratios)), ratios, c=colours, s=9)
    axes.axhline(1, color="black", linewidth=1)
    axes.axhline(median(ratios), color="#888", linewidth=1, linestyle="--")
    axes.text(0, median(ratios) * 0.9, f"median {median(ratios):.2f}", color="#555", va="top")
    axes.set_yscale("log")
    axes.set_xlabel("calls, sorted")
    axes.set_ylabel("time of ompy / time of the fastest peer")
    axes.grid(visible=True, which="major", alpha=0.3)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
