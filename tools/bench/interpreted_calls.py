"""Which interpreted functions of ours each call of the API enters, where the rest is compiled.

    python tools/bench interpreted_calls --compiled build/compiled
    python tools/bench interpreted_calls --compiled build/compiled --families handles --only Dup

A function that is interpreted costs a call some 700 to 1500 instructions, a tenth of all of a small
one. The counts are the interpreter's own (`sys.setprofile`), so that a busy machine says the same;
what a rank enters while it waits is left out (`WAITING`). The rows are those of `surface_rows`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, Final

import click

ROOT: Final = Path(__file__).resolve().parents[2]
CALLS: Final = 20  # of a row; arbitrary: what is not in each of them is seen
WARM_UP: Final = 5  # the same: connections and memory are made with the first ones
SHOWN: Final = 6  # functions of a row
WAITING: Final = ("yielded", "ring")


def entered(step: Any, folder: str) -> Counter[str]:
    """How often a step enters each interpreted function below a folder."""
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _arg: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(folder) and code.co_name not in WAITING:
            found[f"{code.co_filename.removeprefix(folder)}:{code.co_name}"] += 1

    sys.setprofile(count)
    try:
        step(CALLS)
    finally:
        sys.setprofile(None)
    return found


def line_of(name: str, found: Counter[str], per: int) -> str:
    """A row's line: how many functions a call enters, and the most frequent of them."""
    calls = CALLS * per
    most = (f"{what} {times / calls:.1f}" for what, times in found.most_common(SHOWN))
    return f"{sum(found.values()) / calls:7.1f}  {name:32} {', '.join(most)}".rstrip()


def run_rank(size: int, pattern: str, families: list[str]) -> None:
    """What each of the ranks does; rank 0 prints."""
    sys.path.append(str(ROOT))
    import ompy
    from mpi4py import MPI

    from tools.bench.surface_program import lines_to_time

    comm = MPI.COMM_WORLD
    folder = str(Path(ompy.__file__ or "").parents[1]) + os.sep
    MPI.Attach_buffer(bytearray(16 << 20))
    for row, length in lines_to_time(comm, families, re.compile(pattern), [size]):
        try:
            step = row.make(length)
            step(WARM_UP)
            comm.Barrier()
            found = entered(step, folder)
        except (NotImplementedError, AttributeError, MPI.Exception) as problem:
            found = Counter({str(problem): 0})
        comm.Barrier()
        if comm.rank == 0 and found:
            print(line_of(row.name, found, row.per), flush=True)
    MPI.Detach_buffer()


@click.command()
@click.option("--compiled", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--ranks", default=2, show_default=True)
@click.option("--size", default=8, help="Bytes of a block.", show_default=True)
@click.option("--only", default="", help="Rows whose name this regular expression finds.")
@click.option("--families", default="", help="As collectives,handles; all if none is named.")
def main(compiled: Path, ranks: int, size: int, only: str, families: str) -> None:
    """Show what is interpreted on the way of each call of the API, the most first."""
    program = [sys.executable, __file__, "rank", str(size), only, *families.split(",")]
    words = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), "--oversubscribe", *program]
    environment = {**os.environ, "PYTHONPATH": str(compiled.resolve())}
    done = subprocess.run(words, env=environment, check=False, text=True, stdout=subprocess.PIPE)
    if done.returncode:
        raise click.ClickException(f"the job ended with {done.returncode}; is {compiled} compiled?")
    for line in sorted(done.stdout.splitlines(), key=lambda one: -float(one.split()[0])):
        click.echo(line)


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        run_rank(int(sys.argv[2]), sys.argv[3], [word for word in sys.argv[4:] if word])
    else:
        main()
