#!/usr/bin/env python3
"""Count the instructions that a message or a collective call costs, with valgrind's callgrind.

    python tools/bench instructions --tree build/compiled [--size 65536] [--rank 0] [--lines 40]
    python tools/bench instructions --tree build/compiled --of Sending_begin
    python tools/bench instructions --tree build/compiled --call Allreduce --size 8 [--rank 1]

Two ranks play ping-pong over sm (or `--btl`); one of them runs under callgrind, which counts while
a message is begun, a receive is posted or an arriving fragment is handled, and not while the rank
waits. Unlike times, the counts are the same on a busy machine, but for what came
before its receive.
What is done once, such as an import at the first message, is divided by the number of messages.

With `--call` two ranks make a collective call again and again. Everything is counted, in a job with
twice as many calls as another has, so that what is done once cancels out: the call from the
program's own line on, and messages that arrive, but not the waiting for them.
`--tree` is what `tools/package compile_hot` made; `valgrind` is a package of most distributions.
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
# a collective call is made so many times, then twice as many
CALLS: Final = """
import sys
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
size, rounds = map(int, sys.argv[1:])
numbers = max(size // 8, 1)
mine, room = array("d", bytes(8 * numbers)), array("d", bytes(8 * numbers))
all_mine, all_room = array("d", bytes(16 * numbers)), array("d", bytes(16 * numbers))
{}
def call():
    {}
for _ in range(rounds):
    call()
"""
ARGUMENTS: Final = {
    "Barrier": "",
    "Bcast": "mine",
    "Reduce": "mine, room",
    "Allreduce": "mine, room",
    "Gather": "mine, all_room",
    "Scatter": "all_mine, room",
    "Allgather": "mine, all_room",
    "Alltoall": "all_mine, all_room",
    "Scan": "mine, room",
    "bcast": "1",
    "gather": "1",
    "scatter": "[1, 2]",
    "allgather": "1",
    "alltoall": "[1, 2]",
    "reduce": "1",
    "allreduce": "1",
    "scan": "1",
}
# of the functions that callgrind counts in, the ends of their names in C
COUNTED: Final = (
    "_3pml_3ob1_7sending_7Sending_begin",
    "_3pml_3ob1_9receiving_9Receiving_post",
    "_3pml_3ob1_6module_8Arrivals_received",
)
# with `--call` it does not count in these, but in what is called from them when a message arrives
WAITING: Final = (
    "_6engine_4real_10RealEngine_wait",
    "_6engine_4real_10RealEngine_look_for",
    "_3pml_3ob1_6module_8Arrivals_received",
)
# Cython's names: lengths and parts of the module's path, then the function's own
Counts = list[tuple[int, str]]
MANGLED: Final = re.compile(r"__pyx_f_(\S+)")
FIGURE: Final = re.compile(r"^\s*([\d,]+) \([ \d.]+%\)\s+(\S)?\s*(\S.*)$")


def run(
    tree: Path, btl: str, rank: int, into: Path, program: str, *numbers: int, only: bool = True
) -> None:
    """Run a program in two ranks, one under callgrind.

    Args:
        tree: the compiled tree.
        btl: between them.
        rank: the one that is counted.
        into: file of the counts.
        program: its text.
        numbers: its arguments.
        only: count in the functions named in `COUNTED` only.
    """
    source = into.with_name("program.py")
    source.write_text(program)
    wrapper = into.with_name("rank.sh")
    names = COUNTED if only else WAITING  # counting begins or ends where one is entered
    toggles = " ".join(f"--toggle-collect='*{name}'" for name in names)
    wrapper.write_text(
        f'[ "$OMPY_RANK" = {rank} ] || exec {sys.executable} "$@"\n'
        f"exec valgrind -q --tool=callgrind {toggles} --collect-atstart={'no' if only else 'yes'} "
        f'--callgrind-out-file={into} {sys.executable} "$@"\n'
    )
    words = [sys.executable, "-m", "ompy.cli.run", "--mca", "btl", btl, "-n", "2"]
    words += ["sh", str(wrapper), str(source), *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "PYTHONHASHSEED": "0"}
    done = subprocess.run(words, env=environment, check=False)
    if done.returncode or not into.exists():
        raise click.ClickException(f"the job ended with {done.returncode}; is {tree} compiled?")


FORMS: Final = tuple(
    form
    for name in ARGUMENTS
    if name[0].isupper()
    for form in (f"I{name.lower()}", f"{name}_init")
    if form != "Scan_init"
)


def calls_of(call: str) -> tuple[str, str]:
    """What a program does before all calls, and in each of them."""
    if call.endswith("_init"):
        return f"request = world.{call}({ARGUMENTS[call[:-5]]})", "request.Start(); request.Wait()"
    if call in FORMS:
        return "", f"world.{call}({ARGUMENTS[call[1:].capitalize()]}).Wait()"
    return "", f"world.{call}({ARGUMENTS[call]})"


def count_call(tree: Path, btl: str, rank: int, folder: Path, call: str, *numbers: int) -> Counts:
    """The instructions of `rounds` calls: all of them, and function by function."""
    size, rounds = numbers
    program = CALLS.format(*calls_of(call))
    found: list[dict[str, int]] = []
    for calls in (rounds, 2 * rounds):
        counts = folder / f"callgrind.{calls}"
        run(tree, btl, rank, counts, program, size, calls, only=False)
        found.append({})
        for _, count, name in figures(counts):
            found[-1][name] = max(count, found[-1].get(name, 0))  # of one name, its cycle's too
    once, twice = found
    more = [(count - once.get(name, 0), name) for name, count in twice.items()]
    return sorted((pair for pair in more if pair[0] > 0), reverse=True)


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
@click.option(
    "--call", type=click.Choice([*ARGUMENTS, *FORMS]), help="Count a collective call instead."
)
def main(
    tree: Path, btl: str, size: int, rounds: int, rank: int, lines: int, caller: str, call: str
) -> None:
    """Count what a message or a collective call costs."""
    if not shutil.which("valgrind"):
        raise click.ClickException("needs valgrind, which the distribution has as a package")
    with tempfile.TemporaryDirectory() as folder:
        counts = Path(folder) / "callgrind.out"
        if call:
            shown = count_call(tree, btl, rank, Path(folder), call, size, rounds)
        else:
            run(tree, btl, rank, counts, PROGRAM, size, rounds)
        if caller and not call:
            shown = list(_calls(counts, caller))
        elif not call:
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
