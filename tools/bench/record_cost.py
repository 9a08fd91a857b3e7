"""What `ompy-run --record` costs: single calls without it, with it and with bytes, in turns.

    python tools/bench record_cost --rounds 9
    python tools/bench record_cost --tree build/hot    with the compiled modules of that tree

A round runs each job once in each way. Of a call the least of some batches counts, and of the
rounds the least is shown: what else the machine does only ever adds to a time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Final

BIN: Final = Path(sys.executable).parent
WAYS: Final = ("without", "order", "bytes")
CALLS: Final = """
import sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
other = 1 - comm.rank
small, room = bytearray(8), bytearray(8)
large, hall = bytearray(1 << 16), bytearray(1 << 16)

def ping_pong(source, label, data, into):
    if comm.rank:
        comm.Recv(into, source, label)
        comm.Send(data, other, 3)
    else:
        comm.Send(data, other, 3)
        comm.Recv(into, source, label)

def tested():
    request = comm.Irecv(room, other, 3)
    comm.Send(small, other, 3)
    while not request.Test():
        pass

calls = {
    "ping-pong of 8 B, source and tag named": lambda: ping_pong(other, 3, small, room),
    "the same from ANY_SOURCE": lambda: ping_pong(MPI.ANY_SOURCE, 3, small, room),
    "the same of 64 KiB": lambda: ping_pong(MPI.ANY_SOURCE, 3, large, hall),
    "Irecv, Send, Test until it is there": tested,
    "Allreduce of 8 B": lambda: comm.Allreduce(small, room),
}
for name, call in calls.items():
    best = 1e9
    for _ in range(40):
        comm.Barrier()
        begun = time.perf_counter()
        for _ in range(20):
            call()
        best = min(best, (time.perf_counter() - begun) / 20)
    if comm.rank == 0:
        print("call", best * 1e6, name, sep=";", file=sys.stderr)
"""


def run(way: str, environment: dict[str, str]) -> dict[str, float]:
    """Microseconds of each call."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"without": [], "order": ["--record", folder]}
        options["bytes"] = [*options["order"], "--record-data"]
        command = [str(BIN / "ompy-run"), "-n", "2", *options[way], sys.executable, "-c", CALLS]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command[:-1])} ended with {done.returncode}:\n{done.stderr}")
    lines = [line.split(";") for line in done.stderr.splitlines() if line.startswith("call;")]
    return {name: float(value) for _, value, name in lines}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tree", help="a folder with compiled modules")
    options = parser.parse_args()
    environment = dict(os.environ)
    if options.tree:
        environment["PYTHONPATH"] = str(Path(options.tree).resolve())
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for _ in range(options.rounds):
        for way in WAYS:
            for name, took in run(way, environment).items():
                found[name][way] = min(took, found[name].get(way, took))
    print("| call | without | order | ratio | with bytes | ratio |\n|---|---:|---:|---:|---:|---:|")
    for name, times in found.items():
        base, order, both = (times[way] for way in WAYS)
        ratios = f"{order:.2f} us | {order / base:.3f} | {both:.2f} us | {both / base:.2f}"
        print(f"| {name} | {base:.2f} us | {ratios} |")


if __name__ == "__main__":
    main()
