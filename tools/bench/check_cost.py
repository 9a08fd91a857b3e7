"""What `ompy-run --check` costs: examples and single calls with and without it, in turns.

    python tools/bench check_cost --rounds 5
    python tools/bench check_cost --tree build/hot    with the compiled modules of that tree
    python tools/bench check_cost --instructions      by instructions: valgrind's callgrind

A round runs each program once without and once with the check; shown are the medians of the rounds.
An example's time is that of its ranks, from the first barrier to its end: starting, and what the
launcher makes of the records at the end, do not count.

With `--instructions` one rank sends to itself, under callgrind: what it does in twice as many calls
more. That is the same on a busy machine, and takes minutes.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
BIN: Final = Path(sys.executable).parent
EXAMPLES: Final = (
    "heat", "matrix_vector", "master_worker", "mandelbrot", "sample_sort", "overlap",
    "distributed_hash_table", "word_count", "pi_riemann",
)  # fmt: skip
RANKS: Final = 2
TIMED: Final = """
import runpy, sys, time
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
begun = time.perf_counter()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
print("took", time.perf_counter() - begun, file=sys.stderr)
"""
# what a program does again and again, in a loop of a file of its own: the checker reads the source
LOOPS: Final = {
    "Send and Recv of 8 B": (
        "if me:",
        "    comm.Recv(room, there)",
        "    comm.Send(small, there)",
        "else:",
        "    comm.Send(small, there)",
        "    comm.Recv(room, there)",
    ),
    "Irecv, Isend, Waitall of 8 B": (
        "MPI.Request.Waitall([comm.Irecv(room, there), comm.Isend(small, there)])",
    ),
    "Irecv, Isend, Waitall of 64 KiB": (
        "MPI.Request.Waitall([comm.Irecv(hall, there), comm.Isend(large, there)])",
    ),
    "Allreduce of 8 B": ("comm.Allreduce(small, room)",),
    "bcast of a number": ("comm.bcast(1)",),
}
BUFFERS: Final = """
import sys, time
from mpi4py import MPI
small, room = bytearray(8), bytearray(8)
large, hall = bytearray(1 << 16), bytearray(1 << 16)
"""
TIMES: Final = {"64 KiB": 200}  # calls of one measurement; arbitrary
OFTEN: Final = 500  # of the others; arbitrary: a millisecond


def timed_program() -> str:
    """The program of two ranks that takes the times of all loops; the best of five."""
    lines = [BUFFERS, "comm = MPI.COMM_WORLD", "me, there = comm.rank, 1 - comm.rank"]
    for name, calls in LOOPS.items():
        times = next((times for end, times in TIMES.items() if name.endswith(end)), OFTEN)
        lines += ["best = 1e9", "for _ in range(5):", "    comm.Barrier()"]
        lines += ["    begun = time.perf_counter()", f"    for _ in range({times}):"]
        lines += [f"        {call}" for call in calls]
        lines += [f"    best = min(best, (time.perf_counter() - begun) / {times})"]
        lines += [
            "if comm.rank == 0:",
            f"    print('call', best * 1e6, {name!r}, sep=';', file=sys.stderr)",
        ]
    return "\n".join(lines)


def counted_program(name: str) -> str:
    """The program of one rank that sends to itself, as often as its command line says."""
    lines = [BUFFERS, "comm, me, there = MPI.COMM_SELF, 0, 0", "for _ in range(int(sys.argv[1])):"]
    return "\n".join([*lines, *(f"    {call}" for call in LOOPS[name])])


FEW, MANY = 100, 300  # calls; arbitrary: the first ones do what is done once
COLLECTED: Final = re.compile(r"Collected : (\d+)")


def count_instructions(name: str, environment: dict[str, str], *, checked: bool) -> float:
    """Instructions of one call."""
    counts = []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(counted_program(name))
        for times in (FEW, MANY):
            out = f"--callgrind-out-file={folder}/out"
            words = ["valgrind", "--tool=callgrind", out, sys.executable, str(program)]
            command = [str(BIN / "ompy-run"), "-n", "1", *(["--check"] if checked else []), *words]
            done = subprocess.run(
                [*command, str(times)], env=environment, capture_output=True, text=True, check=False
            )
            found = COLLECTED.findall(done.stderr)
            if not found:
                sys.exit(f"callgrind says no number of {name}: {done.stderr}")
            counts.append(int(found[-1]))
    return (counts[1] - counts[0]) / (MANY - FEW)


def run(words: list[str], environment: dict[str, str], *, checked: bool) -> tuple[str, float]:
    """What a job says on standard error, and how long it takes, s."""
    command = [str(BIN / "ompy-run"), "-n", str(RANKS), *(["--check"] if checked else []), *words]
    begun = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took = time.monotonic() - begun
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stderr, took


def time_loops(environment: dict[str, str], *, checked: bool) -> Iterator[tuple[str, float]]:
    """Each loop's name, and us of one turn of it."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "program.py"
        program.write_text(timed_program())
        said, _ = run([sys.executable, str(program)], environment, checked=checked)
    for line in said.splitlines():
        if line.startswith("call;"):
            _, value, name = line.split(";")
            yield name, float(value)


def measure(rounds: int, environment: dict[str, str]) -> dict[str, tuple[list[float], list[float]]]:
    """Times by what was measured: without and with the check."""
    found: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for _ in range(rounds):
        for checked in (False, True):
            for name, value in time_loops(environment, checked=checked):
                found[name][checked].append(value)
            for name in EXAMPLES:
                example = str(ROOT / "examples" / f"{name}.py")
                said, _ = run([sys.executable, "-c", TIMED, example], environment, checked=checked)
                took = [float(w.split()[1]) for w in said.splitlines() if w.startswith("took ")]
                found[f"examples/{name}.py"][checked].append(max(took) * 1e3)
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tree", help="a folder with compiled modules")
    parser.add_argument("--instructions", action="store_true", help="count these, not times")
    options = parser.parse_args()
    environment = dict(os.environ)
    if options.tree:
        environment["PYTHONPATH"] = str(Path(options.tree).resolve())
    if options.instructions:
        environment["PYTHONHASHSEED"] = "0"
        print("| instructions of | without | with | ratio |\n|---|---:|---:|---:|")
        for name in LOOPS:
            a, b = (count_instructions(name, environment, checked=on) for on in (False, True))
            print(f"| {name} | {a:,.0f} | {b:,.0f} | {b / a:.2f} |", flush=True)
        return
    print("| what | without | with | ratio |\n|---|---:|---:|---:|")
    for name, (without, checked) in measure(options.rounds, environment).items():
        unit = "ms" if name.startswith("examples/") else "us"
        a, b = statistics.median(without), statistics.median(checked)
        print(f"| {name} | {a:.1f} {unit} | {b:.1f} {unit} | {b / a:.2f} |")


if __name__ == "__main__":
    main()
