"""Run random programs: `python -m tests.support.differential FIRST COUNT KIND...`, under ompy-run.

With `--plant` the first result of rank 0 is changed before it is judged: a run that
does not fail then judges nothing.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from importlib import import_module
from typing import Final

from ompy import MPI

from tests.support.differential.kinds import KINDS
from tests.support.differential.program import Judge, Program

BUFFER: Final = 64 << 20  # bytes for buffered sends: more than programs have at a time
WRONG: Final = 3  # exit code of a job with wrong data, or an error


def main() -> None:
    """Run programs of each kind; the first one that goes wrong aborts the job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int, help="seed")
    parser.add_argument("count", type=int, help="programs of each kind")
    parser.add_argument("kinds", nargs="+", choices=KINDS)
    parser.add_argument("--plant", action="store_true", help="a wrong result, to be found")
    options = parser.parse_args()
    MPI.Attach_buffer(bytearray(BUFFER))
    for kind in options.kinds:
        run_kind(kind, range(options.first, options.first + options.count), options.plant)
    MPI.Detach_buffer()


def run_kind(kind: str, seeds: range, plant: bool) -> None:
    """Run programs of one kind."""
    run = import_module(f"tests.support.differential.{kind}").run
    comm = MPI.COMM_WORLD
    judge = Judge(plant=plant and comm.rank == 0)
    for seed in seeds:
        try:
            run(Program(comm, seed, judge))
        except Exception:
            print(f"{kind}, seed {seed}, rank {comm.rank}: FAILED", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            comm.Abort(WRONG)
    compared = comm.reduce(judge.compared)
    if comm.rank == 0:
        print(f"{kind}: {len(seeds)} programs, {compared} results compared", flush=True)


if __name__ == "__main__":
    main()
