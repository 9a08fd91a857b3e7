#!/usr/bin/env python3
"""What several contexts of a scalable endpoint bring threads that put and flush, over btl/ofi.

    python tools/bench ofi_threads                        over sockets and the twin, in turns
    python tools/bench ofi_threads --rounds 5 sockets

Two ranks; the threads of rank 0 put 8 bytes each and flush, over and over, and rank 1 serves. Each
round runs once with one context and once with as many as threads, so that a busy machine slows
both; what counts is the quotient, of the medians of all rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from statistics import median
from typing import Final

from tools.repository import ROOT, commit_name

PROVIDERS: Final = ("sockets", "emulated")
TWIN: Final = "emulated"
PROGRAM: Final = """
import json, sys, threading, time
from mpi4py import MPI

threads, count = int(sys.argv[1]), int(sys.argv[2])
comm = MPI.COMM_WORLD
win = MPI.Win.Allocate(8 * threads, comm=comm)
win.Lock_all()
together = threading.Barrier(threads + 1)

def work(number):
    data = bytearray(8)
    together.wait()
    for _ in range(count):
        win.Put(data, 1, 8 * number)
        win.Flush(1)

comm.Barrier()
if comm.rank == 0:
    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for one in running:
        one.start()
    together.wait()
    begun, used = time.monotonic(), time.process_time()
    for one in running:
        one.join()
    taken, used = time.monotonic() - begun, time.process_time() - used
    print(json.dumps([threads * count / taken, used / threads / count * 1e6]), flush=True)
comm.Barrier()
win.Unlock_all()
win.Free()
"""


def measure(provider: str, contexts: int, threads: int, count: int) -> tuple[float, float]:
    """Puts a second, and microseconds of processor time for each."""
    settings = {
        "btl": "self,ofi",
        "osc": "rdma",
        "btl_ofi_provider_include": provider,
        "btl_ofi_num_contexts_per_module": str(contexts),
    }
    if provider == TWIN:
        settings["btl_ofi_nic"] = "ofi_emulated"
        settings["nic_ofi_emulated_providers"] = provider
    command = [sys.executable, "-m", "ompy.cli.run", "-n", "2"]
    for name, value in settings.items():
        command += ["--mca", name, value]
    command += [sys.executable, "-c", PROGRAM, str(threads), str(count)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    rate, used = json.loads(done.stdout.splitlines()[-1])
    return rate, used


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("providers", nargs="*", default=PROVIDERS)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--count", type=int, default=100, help="puts of each thread")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    load = " ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"ompy at {commit_name()}, {options.threads} threads, load averages {load}\n")
    print("| provider | puts a second, one context | as many as threads | quotient | us each |")
    print("|---|---|---|---|---|")
    for provider in options.providers:
        found: dict[int, list[tuple[float, float]]] = {1: [], options.threads: []}
        for _ in range(options.rounds):
            for contexts, rates in found.items():
                rates.append(measure(provider, contexts, options.threads, options.count))
        rates = {number: median(rate for rate, _ in each) for number, each in found.items()}
        used = {number: median(each_us for _, each_us in each) for number, each in found.items()}
        one, several = (", ".join(f"{rate:.0f}" for rate, _ in found[n]) for n in found)
        quotient = rates[options.threads] / rates[1]
        costs = f"{used[1]:.0f}, {used[options.threads]:.0f}"
        print(f"| `{provider}` | {one} | {several} | {quotient:.2f} | {costs} |", flush=True)


if __name__ == "__main__":
    main()
