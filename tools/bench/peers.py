#!/usr/bin/env python3
"""Compare ompy with its peers on this machine, and say which targets it reaches.

    python tools/bench peers --compiled build/compiled [--rounds 7] [--only send,object]

The peers' wheels are installed into virtual environments of their own. The same program,
`peer_workloads.py`, runs on ompy and on every mpi4py, in turns, so that what else the machine does
hits them alike; `peer_pairs.py` is for what is no MPI. A ratio is our time by theirs in the same
round.
Markdown comes out; what we lose is in it.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Final

import click

from tools.bench.machine_limits import limits_table, machine_limits
from tools.bench.measure import WAITING
from tools.bench.peer.peer_sides import ROOT, Missing, NotOffered, Ompy, Side, others
from tools.bench.peer.peer_targets import IDLE_MOST, TARGETS, Target
from tools.bench.plots.ratio_plot import Bar, svg

TITLE: Final = (
    "time of ompy / time of the peer: below 1 ompy is faster; "
    "pale: range of the rounds, stroke: target, hollow: not reached"
)
SECONDS: Final = 0.2  # arbitrary: for each workload of a run
Key = tuple[str, int, str, str]  # side, ranks, way, workload


class Figures:
    """Seconds by side, ranks, way and workload, one for each round."""

    def __init__(self, said: list[str]) -> None:
        self._figures: dict[Key, list[float]] = {}
        self._said = said

    def of(self, side: str, target: Target, word: str) -> list[float]:
        """What was measured; empty if nothing was."""
        return self._figures.get((side, target.ranks, target.way, word), [])

    def measure(
        self, side: Side, ranks: int, way: str, words: Sequence[str], budget: float
    ) -> None:
        """One run of a side."""
        try:
            found = {}
            messages = [word for word in words if word != "start"]
            if messages:
                found = side.seconds(ranks, way, messages, budget)
            if "start" in words:
                found["start"] = side.start(ranks)
        except NotOffered:
            return
        except Missing as problem:
            if str(problem) not in self._said:
                self._said.append(str(problem))
            return
        for word, seconds in found.items():
            self._figures.setdefault((side.name, ranks, way, word), []).append(seconds)


def wanted(rows: Sequence[Target]) -> dict[tuple[int, str], list[str]]:
    """The workloads of some rows, by ranks and way: each is one run."""
    found: dict[tuple[int, str], list[str]] = {}
    for row in rows:
        words = found.setdefault((row.ranks, row.way), [])
        words += [word for word in (row.word, row.theirs) if word and word not in words]
    return found


def ratios(figures: Figures, row: Target) -> list[float]:
    """Our time by theirs, round by round."""
    ours, theirs = (
        figures.of(row.ours, row, row.word),
        figures.of(row.against, row, row.theirs or row.word),
    )
    return [mine / other for mine, other in zip(ours, theirs, strict=False)]


def shown(seconds: Sequence[float]) -> str:
    """A median for people."""
    if not seconds:
        return "-"
    value = median(seconds)
    return f"{value:.2f} s" if value >= 0.1 else f"{value * 1e6:,.2f} us"


def target_table(figures: Figures, rows: Sequence[Target]) -> str:
    """The rows in Markdown."""
    lines = [
        "| what | ours | theirs | ours / theirs | target | reached |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        ours = figures.of(row.ours, row, row.word)
        theirs = figures.of(row.against, row, row.theirs or row.word)
        found = ratios(figures, row)
        if found:
            middle = median(found)
            ratio = f"**{middle:.2f}** ({min(found):.2f} to {max(found):.2f})"
            reached = "yes" if middle <= row.most else "**no**"
        else:
            ratio, reached = "not measured", "-"
        lines.append(
            f"| {row.what} | {shown(ours)} | {shown(theirs)} ({row.against}) | {ratio} | "
            f"{row.most:.2f} | {reached} |"
        )
    return "\n".join(lines)


def everyone_table(figures: Figures, sides: Sequence[Side], rows: Sequence[Target]) -> str:
    """All sides' times beside each other."""
    lines = ["| workload, ranks, way | " + " | ".join(side.name for side in sides) + " |"]
    lines.append("|" + " --- |" * (1 + len(sides)))
    for (ranks, way), words in wanted(rows).items():
        for word in words:
            row = Target("", word, 0, ranks=ranks, way=way)
            cells = [shown(figures.of(side.name, row, word)) for side in sides]
            lines.append(f"| `{word}`, {ranks}, {way} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def idle_percent(side: Side) -> float:
    """Percent of a core that a rank uses which waits for a message."""
    return float(side.run(side.command(2, "sm"), ("-c", WAITING)))


def header(rounds: int) -> str:
    """What was compared, where."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    commit = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return (
        f"ompy {version('ompy')} ({commit}), Python {platform.python_version()}, "
        f"{models[0] if models else platform.machine()}, {len(os.sched_getaffinity(0))} cores, "
        f"{platform.system()} {platform.release()}; {rounds} rounds; load before: {load}."
    )


def run_rounds(
    figures: Figures, sides: Sequence[Side], rows: Sequence[Target], rounds: int, budget: float
) -> None:
    """All sides in turns, forth and back."""
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for (ranks, way), words in wanted(rows).items():
            for side in sides if number % 2 else reversed(sides):
                figures.measure(side, ranks, way, words, budget)


@click.command(help=str(__doc__).partition("\n\n")[0])
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1))
@click.option("--seconds", default=SECONDS, show_default=True, help="For each workload of a run.")
@click.option("--only", default="", help="Rows whose workload begins so, as send,rate.")
@click.option(
    "--peers",
    default=ROOT / "build" / "peers",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Virtual environments of the peers; made if they are not there.",
)
@click.option(
    "--compiled",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="A compiled tree, made by tools/package compile_hot.",
)
@click.option("--plot", type=click.Path(path_type=Path), help="Write an SVG here.")
@click.option("--no-idle", is_flag=True, help="Leave out the waiting rank, which takes 6 s.")
def main(
    rounds: int,
    seconds: float,
    only: str,
    peers: Path,
    compiled: Path,
    plot: Path | None,
    no_idle: bool,
) -> None:
    """Install, measure in turns, print."""
    said: list[str] = []
    prefixes = tuple(word for word in only.split(",") if word)
    rows = [row for row in TARGETS if not prefixes or row.word.startswith(prefixes)]
    if not rows:
        raise click.BadParameter(f"no row begins with any of {only}")
    figures = Figures(said)
    ours = [Ompy(compiled.resolve()), Ompy(None)]
    sides: list[Side] = [*ours, *others(peers.absolute(), said)]
    print(header(rounds), flush=True)
    run_rounds(figures, sides, rows, rounds, seconds)
    print(f"\n{target_table(figures, rows)}\n\n{everyone_table(figures, sides, rows)}\n")
    if not no_idle:
        used = idle_percent(ours[0])
        print(f"A waiting rank uses {used:.2f} % of a core; the target is {IDLE_MOST:g}.\n")
    print(limits_table(machine_limits()))
    print("\nNot measured:\n" + "\n".join(f"- {text}" for text in said))
    if plot is not None:
        bars = [
            Bar(f"{row.what} / {row.against}", median(found), min(found), max(found), row.most)
            for row in rows
            if (found := ratios(figures, row))
        ]
        plot.write_text(svg(bars, TITLE))


if __name__ == "__main__":
    main()
