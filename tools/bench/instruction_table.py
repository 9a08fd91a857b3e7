#!/usr/bin/env python3
"""Compare what a handful of calls cost, in instructions, with a table and with one another.

    python tools/bench instruction_table --tree build/compiled [--write]

It needs no peer and no clock: rank 0 of two runs under callgrind, which counts in a call and in
what arrives, but not while the rank waits. As it is some fifty times slower than the other rank,
what it waits for is there already, and the counts hardly differ from run to run.

A call may take 3 % more than `instruction_table.json` says, which `--write` writes anew; the table
is of one Python and one C compiler, and is not compared with others. On any, an Allgather may cost
hardly more than a Gather and a Bcast, and a typed send than packing and a send (arXiv 1607.00178).
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from tools.bench.instructions import WAITING

TABLE: Final = Path(__file__).with_name("instruction_table.json")
GROWTH: Final = 1.03  # a call may take so much more than the table says
ROUNDS: Final = 200  # arbitrary: calls of each kind
JOBS: Final = 3  # arbitrary: the least of so many is the same within a percent
# what rank 0 calls is counted between two dumps, which callgrind writes when a function of C is
# entered that nothing else calls
MARK: Final = "getsid"
PROGRAM: Final = """
import os, sys
from array import array
from mpi4py import MPI
world = MPI.COMM_WORLD
peer, rounds = 1 - world.rank, int(sys.argv[1])
mine, room = array("d", [0.0]), array("d", [0.0])
both, rooms = array("d", [0.0, 0.0]), array("d", [0.0, 0.0])
column = MPI.DOUBLE.Create_vector(64, 1, 2).Commit()
wide, packed = array("d", bytes(8 * 127)), bytearray(8 * 64)
ring = world.Create_cart([2], periods=[True])
started = world.Allreduce_init(mine, room)
windows = [array("d", [0.0]) for _ in range(16)]

def to_and_fro():
    if world.rank:
        world.Recv(room, 0)
        world.Send(mine, 0)
    else:
        world.Send(mine, 1)
        world.Recv(room, 1)

def answered(send, size):
    if world.rank:
        world.Recv(bytearray(size), 0)
        world.Send(mine, 0)
    else:
        send()
        world.Recv(room, 1)

def pack_and_send():
    column.Pack(wide, packed, 0, world)
    world.Send(packed, 1)

def restart():
    started.Start()
    started.Wait()

CALLS = {
    "Send and Recv": to_and_fro,
    "typed Send": lambda: answered(lambda: world.Send([wide, 1, column], 1), 512),
    "Pack and Send": lambda: answered(pack_and_send, 512),
    "Waitall of 16": lambda: MPI.Request.Waitall(
        [world.Irecv(each, peer) for each in windows] + [world.Isend(mine, peer) for _ in windows]
    ),
    "Bcast": lambda: world.Bcast(mine, 0),
    "Gather": lambda: world.Gather(mine, rooms, 0),
    "Allgather": lambda: world.Allgather(mine, rooms),
    "Alltoall": lambda: world.Alltoall(both, rooms),
    "Allreduce": lambda: world.Allreduce(mine, room),
    "Iallreduce": lambda: world.Iallreduce(mine, room).Wait(),
    "Allreduce_init": restart,
    "Neighbor_alltoall": lambda: ring.Neighbor_alltoall(both, rooms),
    "Ineighbor_alltoall": lambda: ring.Ineighbor_alltoall(both, rooms).Wait(),
    "bcast of a number": lambda: world.bcast(1, 0),
}
for name, call in CALLS.items():
    for _ in range(20):
        call()
    world.Barrier()
    os.getsid(0)
    for _ in range(rounds):
        call()
    os.getsid(0)
    world.Barrier()
    if world.rank == 0:
        print(name, flush=True)
"""
# of these each may cost no more than the sum of the others, on any machine; and some percent, as a
# typed send takes 5 % more than packing and a send
MORE: Final = 1.1
NO_MORE: Final = {
    "Allgather": ("Gather", "Bcast"),
    "typed Send": ("Pack and Send",),
}


def count_calls(tree: Path, folder: Path) -> dict[str, float]:
    """Instructions of each call in rank 0.

    Raises:
        ClickException: the job failed, or the counts are not as many as the calls.
    """
    program, wrapper = folder / "program.py", folder / "rank.sh"
    program.write_text(PROGRAM)
    toggles = " ".join(f"--toggle-collect='*{name}'" for name in WAITING)
    wrapper.write_text(
        f'[ "$OMPY_RANK" = 0 ] || exec {sys.executable} "$@"\n'
        f"exec valgrind -q --tool=callgrind {toggles} --collect-atstart=yes --dump-before={MARK} "
        f'--callgrind-out-file={folder}/counts {sys.executable} "$@"\n'
    )
    words = [sys.executable, "-m", "ompy.cli.run", "--mca", "btl", "self,sm", "-n", "2"]
    # a rank that sleeps has to be woken, which costs its peer something, now and then
    words += ["--mca", "engine_base_park_ms", "600000"]
    words += ["sh", str(wrapper), str(program), str(ROUNDS)]
    environment = {**os.environ, "PYTHONPATH": str(tree.resolve()), "PYTHONHASHSEED": "0"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-20:])
        raise click.ClickException(f"the job ended with {done.returncode}:\n{said}")
    names = done.stdout.split("\n")[:-1]
    totals = [_total(folder / f"counts.{number}") for number in range(1, 2 * len(names) + 1)]
    # a dump has what came since the one before: between the two of a call are its rounds
    return {name: totals[2 * place + 1] / ROUNDS for place, name in enumerate(names)}


def _total(counts: Path) -> int:
    found = re.search(r"^totals: (\d+)", counts.read_text(), re.MULTILINE)
    if found is None:
        raise click.ClickException(f"{counts.name} has no total")
    return int(found[1])


def made_with() -> str:
    """What the counts depend on beside our source: Python, the C compiler, the processor."""
    compiler = os.environ.get("CC", "cc")
    said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    first = (said.stdout.splitlines() or ["no C compiler"])[0]
    return f"Python {platform.python_version()}, {first}, {platform.machine()}"


def complaints(counts: Mapping[str, float], known: Mapping[str, float]) -> list[str]:
    """What is more than it may be.

    Args:
        counts: instructions of each call.
        known: those of the table; empty if it is of another machine.
    """
    found = [
        f"{name} takes {counts[name]:,.0f} instructions, {counts[name] / before - 1:.1%} more "
        f"than the {before:,.0f} of the table"
        for name, before in known.items()
        if name in counts and counts[name] > before * GROWTH
    ]
    for name, others in NO_MORE.items():
        together = sum(counts[other] for other in others)
        if counts[name] > together * MORE:
            found.append(
                f"{name} takes {counts[name]:,.0f} instructions, {' and '.join(others)} "
                f"{together:,.0f}"
            )
    missing = [f"{name} is in the table and was not counted" for name in known.keys() - counts]
    return found + sorted(missing)


@click.command(help=str(__doc__).partition("\n\n")[0])
@click.option("--tree", type=click.Path(exists=True, path_type=Path), required=True)
@click.option("--write", is_flag=True, help="Write the table anew.")
def main(tree: Path, write: bool) -> None:
    """Count, print, compare."""
    if not shutil.which("valgrind"):
        click.echo("SKIPPED: there is no valgrind here, which counts the instructions", err=True)
        return
    counts: dict[str, float] = {}
    for _ in range(JOBS):
        with tempfile.TemporaryDirectory() as folder:
            for name, count in count_calls(tree, Path(folder)).items():
                counts[name] = min(count, counts.get(name, count))
    table = json.loads(TABLE.read_text()) if TABLE.exists() else {"made with": "", "calls": {}}
    machine = made_with()
    known = table["calls"] if table["made with"] == machine else {}
    for name, count in counts.items():
        before = known.get(name)
        click.echo(f"{count:10,.0f}  {name}" + (f"  ({count / before - 1:+.1%})" if before else ""))
    if write:
        calls = {name: round(count) for name, count in counts.items()}
        TABLE.write_text(json.dumps({"made with": machine, "calls": calls}, indent=1) + "\n")
        known = {}
    elif not known:
        click.echo(
            f"not compared: the table is of {table['made with']}, this is {machine}", err=True
        )
    wrong = complaints(counts, known)
    if wrong:
        raise click.ClickException("; ".join(wrong))


if __name__ == "__main__":
    main()
