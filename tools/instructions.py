#!/usr/bin/env python3
"""Count the instructions that a message costs, function by function, with valgrind's callgrind.

    python tools/instructions.py --tree build/compiled [--size 65536] [--rank 0] [--lines 40]
    python tools/instructions.py --tree build/compiled --of Sending_begin

Two ranks play ping-pong over sm (or `--btl`); one of them runs under callgrind, which counts while
a message is begun, a receive is posted or an arriving fragment is handled, and not while the rank
waits. Unlike times, the counts are the same on a busy machine, but for what came
before its receive.
What is done once, such as an import at the first message, is divided by the number of messages.
`--tree` is what `tools/compile_hot.py` made; `valgrind` is a package of most distributions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

PROGRAM: Final = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
size, rounds = map(int, sys.argv[1:])
out, back = bytearray(size), bytearray(size)
for _ in range(rounds):
    if world.rank == 0:
        world.Send(out, 1)
        world.Recv(back, 1)
    else:
        world.Recv(back, 0)
        world.Send(out, 0)
"""
# of the functions that callgrind counts in, the ends of their names in C
COUNTED: Final = (
    "_3pml_3ob1_7sending_7Sending_begin",
    "_3pml_3ob1_9receiving_9Receiving_post",
    "_3pml_3ob1_6module_8Arrivals_received",
)
# Cython's names: lengths and parts of the module's path, then the function's own
MANGLED: Final = re.compile(r"__pyx_f_(\S+)")
FIGURE: Final = re.compile(r"^\s*([\d,]+) \([ \d.]+%\)\s+(\S)?\s*(\S.*)$")


def run(tree: Path, btl: str, size: int, rounds: int, rank: int, into: Path) -> None:
    """Play ping-pong, one rank under callgrind."""
    program = into.with_name("program.py")
    program.write_text(PROGRAM)
    wrapper = into.with_name("rank.sh")
    toggles = " ".join(f"--toggle-collect='*{name}'" for name in COUNTED)
    wrapper.write_text(
        f'[ "$OMPY_RANK" = {rank} ] || exec {sys.executable} "$@"\n'
        f"exec valgrind -q --tool=callgrind --collect-atstart=no {toggles} "
        f'--callgrind-out-file={into} {sys.executable} "$@"\n'
    )
    words = [sys.executable, "-m", "ompy.cli.run", "--mca", "btl", btl, "-n", "2"]
    words += ["sh", str(wrapper), str(program), str(size), str(rounds)]
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve())}
    done = subprocess.run(words, env=environment, check=False)
    if done.returncode or not into.exists():
        raise click.ClickException(f"the job ended with {done.returncode}; is {tree} compiled?")


def figures(counts: Path, *options: str) -> Iterator[tuple[str, int, str]]:
    """Lines of `callgrind_annotate`: its mark, instructions, name of the function."""
    words = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", *options, str(counts)]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        found = FIGURE.match(line)
        if found is None:
            if not line.strip():
                yield "", 0, ""  # ends the block of one function
            continue
        count, mark, rest = found.groups()
        mark = mark if mark in ("*", ">", "<") else ""
        name = rest.split(" [")[0].rpartition(":")[2]
        yield mark, int(count.replace(",", "")), name


def readable(name: str) -> str:
    """The Python name in one of Cython's, in which each part follows its length."""
    found = MANGLED.search(name)
    if found is None:
        return name
    rest, parts = found[1], []
    while (length := re.match(r"\d+", rest)) and rest[length.end() :]:
        end = length.end() + int(length[0])
        parts.append(rest[length.end() : end])
        rest = rest[end:].removeprefix("_")
    return ".".join([*parts, rest])


@click.command()
@click.option("--tree", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--btl", default="self,sm", help="Between the two ranks.", show_default=True)
@click.option("--size", default=65536, help="Bytes of a message.", show_default=True)
@click.option("--rounds", default=2000, help="Messages each way.", show_default=True)
@click.option("--rank", default=0, help="The rank that is counted.", show_default=True)
@click.option("--lines", default=40, help="Functions to show.", show_default=True)
@click.option("--of", "caller", default="", help="Show what this function calls instead.")
def main(tree: Path, btl: str, size: int, rounds: int, rank: int, lines: int, caller: str) -> None:
    """Count what a message costs."""
    if not shutil.which("valgrind"):
        raise click.ClickException("needs valgrind, which the distribution has as a package")
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind.out"
        run(tree, btl, size, rounds, rank, counts)
        if caller:
            shown = list(_calls(counts, caller))
        else:
            shown = [(n, name) for _, n, name in figures(counts) if "__pyx_f_" in name]
    for count, name in shown[:lines]:
        click.echo(f"{count / rounds:8.0f}  {readable(name)}")


def _calls(counts: Path, caller: str) -> Iterator[tuple[int, str]]:
    """A function and what it calls."""
    inside = False
    for mark, count, name in figures(counts, "--tree=calling"):
        if mark == "*":
            inside = name.endswith(caller)
        elif not name:
            inside = False
        if inside and mark in ("*", ">"):
            yield count, name


if __name__ == "__main__":
    main()
