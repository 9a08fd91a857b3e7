#!/usr/bin/env python3
"""Time every communicating call of the API beside Open MPI and MPICH, in turns: table, data, plot.

    python tools/bench surface --compiled build/compiled [--ranks 2,4] [--ways sm,tcp] [--only Put]

Rows are made from rules (`surface_rows`), one program runs on all sides (`surface_program.py`), and
a ratio is our time by the fastest peer's in the same round. `--write` leaves a JSON file with all
medians, and a plot of all ratios, sorted.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

import click

from tools.bench.peer.peer_sides import (
    ROOT,
    Missing,
    Mpich,
    NotOffered,
    Ompy,
    OpenMpi,
    Side,
    install,
)
from tools.bench.peers import header
from tools.bench.surface_report import markdown, ratio_rows, sorted_plot

PROGRAM: Final = ROOT / "tools" / "bench" / "surface_program.py"
SIZES: Final = "8,8192,1048576"  # bytes; arbitrary: eager, a few fragments, rendezvous
# each a run of its own: where a peer crashes, as Open MPI 5.0.11 in an Allgatherv_init of 8 KiB, it
# goes on after that row
FAMILIES: Final = (
    "messages,persistent,requests,collectives,started,alone,between,windows,created,dynamic,"
    "handles,files,sessions,questions"
)
LONGEST: Final = 240  # s; arbitrary: a run that takes longer hangs
ROWS_MOST: Final = 2000  # arbitrary: more than a family has, so that a defect here comes to an end
Key = tuple[str, int, str, str, int]  # side, ranks, way, row, size


def lines_of(side: Side, ranks: int, way: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """What a side prints; where it ends early, it goes on in new runs, each a row further.

    Args:
        side: what runs the program.
        ranks: of the job.
        way: `sm` or `tcp`.
        words: for the program; the last one is a family.

    Raises:
        NotOffered: the side has no such way.
    """
    found: list[dict[str, Any]] = []
    command = [*side.command(ranks, way), str(PROGRAM), *words[:-1]]
    passed = 0
    while passed <= ROWS_MOST:
        said, complaint = _run_once([*command, f"{words[-1]}:{passed}"], side.environment())
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        found += lines
        if complaint is None:
            break
        passed += len(lines) + 1  # the one it ended in is left out
        last = f"after {lines[-1]['row']} of {lines[-1]['size']}" if lines else "at once"
        print(f"{side.name}, {ranks} ranks, {way}, {last}: {complaint}", file=sys.stderr)
        if not lines:  # nothing runs there, or two rows in turn do not: no use in going on
            break
    return found


def _run_once(command: Sequence[str], more: Mapping[str, str]) -> tuple[str, str | None]:
    """What a program prints, and why it ended early; None if it did not."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        said, complaint = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        process.terminate()
        said, complaint = process.communicate()
        return said, f"no end after {LONGEST} s"
    return said, last_words(complaint) if process.returncode else None


def last_words(complaint: str) -> str:
    """The last lines of a complaint that say something: launchers end with a ruler."""
    lines = [line.strip() for line in complaint.splitlines()]
    telling = [line for line in lines if any(map(str.isalpha, line))]
    return " ".join(telling[-2:]) or "no word"


class Figures:
    """Seconds of each row by side, one for each round; and what could not be measured."""

    def __init__(self) -> None:
        self.seconds: dict[Key, list[float]] = {}
        self.errors: dict[Key, str] = {}

    def measure(self, side: Side, ranks: int, way: str, words: Sequence[str]) -> None:
        """One run of a side."""
        try:
            lines = lines_of(side, ranks, way, words)
        except NotOffered:
            return
        for line in lines:
            key = (side.name, ranks, way, line["row"], line["size"])
            if "error" in line:
                self.errors[key] = line["error"]
            else:
                self.seconds.setdefault(key, []).append(line["seconds"])


def sides_of(peers: Path, compiled: Path, names: Sequence[str]) -> list[Side]:
    """Who is compared: ourselves first."""
    kinds = {"openmpi": OpenMpi, "mpich": Mpich}
    return [Ompy(compiled), *(kinds[name](install(peers, name)) for name in names)]


@click.command(help=str(__doc__).partition("\n\n")[0])
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--seconds", default=0.05, show_default=True, help="For each row of a run.")
@click.option("--sizes", default=SIZES, show_default=True, help="Bytes of a block.")
@click.option("--ranks", default="2", show_default=True, help="As 2,4,8.")
@click.option("--ways", default="sm", show_default=True, help="As sm,tcp.")
@click.option("--families", default=FAMILIES, show_default=True, help="Each is a run of its own.")
@click.option("--only", default="", help="Rows whose name this regular expression finds.")
@click.option("--against", default="openmpi", show_default=True, help="As openmpi,mpich.")
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
@click.option("--write", type=click.Path(path_type=Path), help="Write PATH.json and PATH.svg.")
def main(
    rounds: int,
    seconds: float,
    sizes: str,
    ranks: str,
    ways: str,
    families: str,
    only: str,
    against: str,
    peers: Path,
    compiled: Path,
    write: Path | None,
) -> None:
    """Measure in turns, print, write."""
    try:
        sides = sides_of(peers, compiled, [name for name in against.split(",") if name])
    except Missing as problem:
        raise click.ClickException(str(problem)) from None
    figures = Figures()
    said = header(rounds)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
        for size_of_job in ranks.split(","):
            for way in ways.split(","):
                for family in families.split(","):
                    for side in sides if number % 2 else reversed(sides):
                        words = [str(seconds), sizes, only, family]
                        figures.measure(side, int(size_of_job), way, words)
    table = ratio_rows(figures.seconds, sides[0].name, [side.name for side in sides[1:]])
    errors = {" ".join(map(str, key)): text for key, text in figures.errors.items()}
    click.echo(markdown(table, said, errors))
    if write is not None:
        data = {"about": said, "rows": [row._asdict() for row in table], "errors": errors}
        write.with_suffix(".json").write_text(json.dumps(data, indent=0) + "\n")
        sorted_plot(table, write.with_suffix(".svg"))
        middle = median(row.ratio for row in table)
        click.echo(f"{len(table)} rows, median {middle:.2f}", err=True)


if __name__ == "__main__":
    main()
