"""Run random programs: `python -m tests.support.differential KIND FIRST COUNT` under ompy-run.

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

WRONG: Final = 3  # exit code of a job with wrong data, or an error


def main() -> None:
    """Run programs of a kind; the first one that goes wrong aborts the job."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("first", type=int, help="seed")
    parser.add_argument("count", type=int, help="programs")
    parser.add_argument(
        "--plant", action="store_true", help="a wrong result, which has to be found"
    )
    options = parser.parse_args()
    run = import_module(f"tests.support.differential.{options.kind}").run
    comm = MPI.COMM_WORLD
    judge = Judge(plant=options.plant and comm.rank == 0)
    for seed in range(options.first, options.first + options.count):
        try:
            run(Program(comm, seed, judge))
        except Exception:
            print(f"{options.kind}, seed {seed}, rank {comm.rank}: FAILED", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            comm.Abort(WRONG)
    compared = comm.reduce(judge.compared)
    if comm.rank == 0:
        print(f"{options.count} programs, {compared} results compared")


if __name__ == "__main__":
    main()
