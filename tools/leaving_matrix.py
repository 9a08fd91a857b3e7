#!/usr/bin/env python3
"""Every call that may wait x BTL x PML x way of leaving: nobody waits for a rank that has left.

    python tools/leaving_matrix.py                 virtual worlds, all: half an hour of a core
    python tools/leaving_matrix.py --every 20      of these each twentieth
    python tools/leaving_matrix.py --only TEXT     those whose name has it
    python tools/leaving_matrix.py --real          real ranks: all waits over each BTL, in each way

What a cell is stands in `tests/support/leaving_cells.py`, the waits in `leaving_waits.py`
beside it. Ends with exit code 1, and the cells that are wrong, if there are any.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Final

from sweep import ROOT

sys.path.insert(0, str(ROOT))  # for the cells, which are the tests' own

from tests.sim.p2p.test_leaving import BTLS, PMLS
from tests.support.leaving_cells import (
    ENDS_JOB,
    REAL_WAYS,
    Cell,
    Outcome,
    cells,
    real_job,
    run_virtual,
)
from tests.support.leaving_waits import COLLECTIVES, MESSAGES, WINDOWS

TOGETHER: Final = 64  # cells of one task; arbitrary
SHOWN: Final = 60  # cells that are wrong; arbitrary
IMPROPER: Final = 1  # exit code of a job a rank of which has not finalized
BOUND: Final = 60  # s, until such a job has ended; arbitrary, on a busy machine
# with the provider of libfabric that every host has; what each selects among windows
REAL: Final = {
    "sm": {"btl": "self,sm"},
    "tcp": {"btl": "self,tcp"},
    "usnic": {"btl": "self,usnic"},
    "openib": {"btl": "self,openib"},
    "ofi": {"btl": "self,ofi", "btl_ofi_provider_include": "tcp"},
    "ofi emulated": {"btl": "self,ofi", "nic": "ofi_emulated"},
    "bfo": {"btl": "self,tcp", "pml": "bfo"},
    "bfo over usnic": {"btl": "self,usnic", "pml": "bfo"},
    "copies": {"btl": "self,sm", "osc": "rdma,pt2pt"},
}


def _virtual(chosen: list[Cell]) -> list[str]:
    """What is wrong, after the name of its cell."""
    found = [(cell, run_virtual(cell)) for cell in chosen]
    return [f"{cell}: {wrong}" for cell, wrong in found if wrong]


def sweep_worlds(chosen: list[Cell]) -> list[str]:
    """All cells, on all cores."""
    parts = [chosen[first : first + TOGETHER] for first in range(0, len(chosen), TOGETHER)]
    wrong: list[str] = []
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("fork")) as pool:
        for number, found in enumerate(pool.map(_virtual, parts), 1):
            wrong += found
            if number % 20 == 0 or number == len(parts):
                print(f"{number * TOGETHER} of {len(chosen)} cells, {len(wrong)} wrong", flush=True)
    return wrong


def sweep_jobs(only: str) -> list[str]:
    """All waits in real jobs."""
    groups = {"messages": MESSAGES, "collectives": COLLECTIVES}
    groups.update((f"windows by {how}", each) for how, each in WINDOWS.items())
    wrong: list[str] = []
    for over, settings in REAL.items():
        for way in REAL_WAYS:
            for what, group in groups.items():
                title = f"{over}, {way}, {what}"
                if only in title:
                    wrong += [
                        f"{title}: {each}" for each in _job(title, list(group), way, settings)
                    ]
        title = f"{over}, {ENDS_JOB}"
        if only in title:
            found = real_job(list(MESSAGES), ENDS_JOB, early=True, **settings)
            print(f"{title}: exit code {found.code} after {found.took:.1f} s", flush=True)
            if found.code != IMPROPER or found.took > BOUND:
                wrong.append(f"{title}: exit code {found.code} after {found.took} s: {found.said}")
    return wrong


def _job(title: str, names: list[str], way: str, settings: dict[str, str]) -> list[str]:
    found = real_job(names, way, early=True, **settings)
    wrong = [each for each in map(Outcome.wrong, found.outcomes) if each]
    missing = set(names) - {outcome.name for outcome in found.outcomes}
    if missing:
        wrong.append(f"exit code {found.code}, no outcome of {sorted(missing)}: {found.said}")
    print(
        f"{title}: {len(found.outcomes)} waits in {found.took:.1f} s, {len(wrong)} wrong",
        flush=True,
    )
    return wrong


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    if options.real:
        wrong = sweep_jobs(options.only)
    else:
        chosen = [cell for cell in cells(BTLS, PMLS) if options.only in str(cell)]
        wrong = sweep_worlds(chosen[:: options.every])
    for each in wrong[:SHOWN]:
        print(each[:1000])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
