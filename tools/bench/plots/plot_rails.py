#!/usr/bin/env python3
"""What each rail of a job carried over time, with the breaks: a picture of a record.

    pip install -e '.[plots]' && python tools/bench plot_rails rails.jsonl rails.svg

The record is what `ompy-run --record-rails rails.jsonl` has written. The kind of picture is what
its name says: SVG, PNG, PDF.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ompy.runtime.rails.rail_record import RecordError, replay
from ompy.runtime.rails.rail_watch import Change, State

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALL: Final = 1e5  # bytes per second; arbitrary: what starting and ending take, which is cut off
BROKEN: Final = "#d64545"
COLOURS: Final = ("#1d6fb8", "#e08a1e", "#2a7f4f", "#8a5fbf", "#64748b")
MEGA: Final = 1e6


@dataclass
class Course:
    """What became of a job's rails.

    Attributes:
        times: s since the job began, the ends of the intervals.
        rates: bytes per second by name of the rail, one for each time.
        changes: of the rails.
        resent: messages that went again.
    """

    times: list[float] = field(default_factory=list)
    rates: dict[str, list[float]] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    resent: int = 0

    @property
    def totals(self) -> list[float]:
        """Bytes per second of all rails together."""
        return [sum(rates) for rates in zip(*self.rates.values(), strict=True)]

    def broken(self) -> list[tuple[str, float, float]]:
        """Each rail that broke, from when to when; to the end where it was not healed."""
        found, open_ones = [], dict[str, float]()
        for change in self.changes:
            if change.state is State.UP:
                found.append((change.rail, open_ones.pop(change.rail), change.time))
            else:
                open_ones.setdefault(change.rail, change.time)
        end = self.times[-1] if self.times else 0.0
        return found + [(rail, since, end) for rail, since in open_ones.items()]


def course(path: Path) -> Course:
    """Read a record.

    Raises:
        RecordError: the file is none.
    """
    found = Course()
    with path.open() as file:
        for time, watch in replay(file):
            for rail in watch.rails.values():
                # what was told of later carried nothing before
                earlier = found.rates.setdefault(rail.name, [0.0] * len(found.times))
                earlier.append(rail.rate)
            found.times.append(time)
            found.changes = watch.changes
            found.resent = sum(rail.resent for rail in watch.rails.values())
    return found


def plot(found: Course, target: Path, title: str) -> None:
    """Draw it."""
    import matplotlib as mpl

    mpl.use("agg")
    mpl.rcParams["svg.hashsalt"] = "rails"  # the same file from the same record
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 3.6), layout="constrained")
    totals = found.totals
    sums = [rate / MEGA for rate in totals]  # an area, behind: one rail alone would hide a line
    axes.fill_between(found.times, sums, color="#e4e7eb", lw=0, zorder=0, label="all together")
    for number, (name, rates) in enumerate(found.rates.items()):
        colour = COLOURS[number % len(COLOURS)]
        axes.plot(found.times, [rate / MEGA for rate in rates], color=colour, label=name, lw=1.8)
    _mark(axes, found)
    busy = [time for time, rate in zip(found.times, totals, strict=True) if rate > SMALL]
    if busy:
        axes.set_xlim(max(0.0, busy[0] - 0.2), busy[-1])
    axes.set_ylim(0, 1.25 * max(totals, default=1.0) / MEGA)  # with room for words above
    axes.set_xlabel("s since the job began")
    axes.set_ylabel("MB/s")
    axes.set_title(title)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=min(3, len(found.rates) + 1))
    figure.savefig(target, metadata={"Date": None} if target.suffix == ".svg" else None)
    plt.close(figure)


def _mark(axes: Axes, found: Course) -> None:
    top = 1.08 * max(found.totals, default=0.0) / MEGA
    for rail, since, until in found.broken():
        axes.axvspan(since, until, color=BROKEN, alpha=0.12, lw=0)
        for time, word in ((since, "broken"), (until, "healed")):
            axes.axvline(time, color=BROKEN, lw=1, ls="--")
            text = f"{rail.split()[0]} {word}\n{time:.2f} s"
            axes.annotate(text, (time, top), xytext=(4, 0), textcoords="offset points", size=9)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("record", type=Path)
    parser.add_argument("picture", type=Path, nargs="?", help="default: the record's name, .svg")
    parser.add_argument("--title", default="what each rail carried")
    options = parser.parse_args()
    target = options.picture or options.record.with_suffix(".svg")
    try:
        found = course(options.record)
    except (RecordError, OSError) as problem:
        print(f"plot_rails: {options.record}: {problem}", file=sys.stderr)
        return 1
    if not found.rates:
        print(f"plot_rails: {options.record}: no rail carried anything", file=sys.stderr)
        return 1
    try:
        plot(found, target, options.title)
    except ModuleNotFoundError as missing:
        if missing.name != "matplotlib":
            raise
        print("plot_rails: this needs matplotlib: pip install -e '.[plots]'", file=sys.stderr)
        return 1
    for rail, since, until in found.broken():
        print(f"{rail}: broken from {since:.2f} to {until:.2f} s")
    went = f"{found.resent} message(s) went again"
    print(f"{target}: {len(found.rates)} rail(s), {found.times[-1]:.1f} s, {went}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
