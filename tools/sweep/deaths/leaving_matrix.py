#!/usr/bin/env python3
"""Every call that may wait x BTL x PML x way of leaving: nobody waits for a rank that has left.

    python tools/sweep leaving_matrix                 virtual worlds, all: half an hour of a core
    python tools/sweep leaving_matrix --every 20      of these each twentieth
    python tools/sweep leaving_matrix --only TEXT     those whose name has it
    python tools/sweep leaving_matrix --real          real ranks: all waits over each BTL and way

What a cell is stands in `tests/support/leaving_cells.py`, the waits in `leaving_waits.py`
beside it. Ends with exit code 1, and the cells that are wrong, if there are any.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Collection
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple

from tests.sim.p2p.test_leaving import BTLS, PMLS
from tests.support.leaving_cells import (
    ENDS_JOB,
    REAL_PATIENCE,
    REAL_WAYS,
    Cell,
    Found,
    Outcome,
    cells,
    real_job,
    run_virtual,
    written,
)
from tests.support.leaving_waits import COLLECTIVES, MESSAGES, WINDOWS
from tests.support.libfabric_devices import missing
from tests.support.two_hosts import TwoHosts, why_not

TOGETHER: Final = 64  # cells of one task; arbitrary
SHOWN: Final = 60  # cells that are wrong; arbitrary
BOUND: Final = 60  # s, until a job that one rank ends has ended; arbitrary, on a busy machine
JOBS: Final = 2  # at the same time; arbitrary: windows mostly wait for their grace
SOME: Final = 4  # ranks that wait in a job; arbitrary
MANY: Final = 8  # where each wait takes seconds; arbitrary
WINDOW_WAYS: Final = ("finalizes", "stays", "silently")
# without sm between all of them, windows of the other kinds are as those of Create
HOWS: Final = {"sm": list(WINDOWS), "copies": ["Create", "Allocate"]}
# with the provider of libfabric that every host has
REAL: Final = {
    "sm": {"btl": "self,sm"},
    "tcp": {"btl": "self,tcp"},
    "sm and tcp": {"btl": "self,sm,tcp", "btl_tcp_exclusivity": "65536"},
    "usnic": {"btl": "self,usnic"},
    "openib": {"btl": "self,openib"},
    "ofi": {"btl": "self,ofi", "btl_ofi_provider_include": "tcp"},
    "ofi emulated": {"btl": "self,ofi", "btl_ofi_nic": "ofi_emulated"},
    "bfo": {"btl": "self,tcp", "pml": "bfo"},
    "bfo over usnic": {"btl": "self,usnic", "pml": "bfo"},
    "bfo over usnic and tcp": {
        "btl": "self,usnic,tcp",
        "pml": "bfo",
        "btl_tcp_exclusivity": "1024",  # usnic's
    },
    "copies": {"btl": "self,sm", "osc": "rdma,pt2pt"},
}
# over two hosts of namespaces, where the interpreter itself runs the program: rails, settings
HOSTS: Final = {
    "tcp between hosts": (1, {"btl": "self,sm,tcp"}),
    "bfo between hosts": (2, {"btl": "self,tcp", "pml": "bfo"}),
}


class Job(NamedTuple):
    """One job of real ranks.

    Attributes:
        over: a name of `REAL` or `HOSTS`.
        way: in which the rank leaves.
        what: the kind of the waits.
        names: of these.
    """

    over: str
    way: str
    what: str
    names: Collection[str]

    def __str__(self) -> str:
        return f"{self.over}, {self.way}, {self.what}"

    def found(self) -> Found:
        """Run it."""
        if self.over in HOSTS:
            return between_hosts(self.names, self.way, *HOSTS[self.over])
        waiters = MANY if self.what.startswith("windows") else SOME
        settings = REAL[self.over]
        return real_job(list(self.names), self.way, early=True, waiters=waiters, **settings)

    def wrong(self) -> list[str]:
        """Run it; what is wrong."""
        found = self.found()
        if self.way in ENDS_JOB:
            well = found.code == ENDS_JOB[self.way] and found.took < BOUND
            wrong = [] if well else [f"exit code {found.code} after {found.took} s: {found.said}"]
        else:
            wrong = [each for each in map(Outcome.wrong, found.outcomes) if each]
            lacking = set(self.names) - {outcome.name for outcome in found.outcomes}
            # a code of 1 is right: the calls that failed are not the same in all members
            if lacking or found.code not in {0, 1}:
                wrong.append(f"exit code {found.code}: {found.said}; no outcome: {sorted(lacking)}")
        said = f"{len(found.outcomes)} waits, exit code {found.code}, {found.took:.1f} s"
        print(f"{self}: {said}, {len(wrong)} wrong", flush=True)
        return [f"{self}: {each}" for each in wrong]


def between_hosts(names: Collection[str], way: str, rails: int, settings: dict[str, str]) -> Found:
    """A job over two hosts of namespaces."""
    patience = {f"pml_{settings.get('pml', 'ob1')}_leave_patience_ms": REAL_PATIENCE}
    program = "from tests.support.leaving_cells import main; main()"
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, TwoHosts(rails, how="") as hosts:
        kept = Path(folder, "found")
        kept.mkdir()
        words = (way, "early", str(kept), *names)
        secret = Path(folder, "secret")
        codes, _, said = hosts.run(secret, program, *words, ranks=SOME, **settings, **patience)
        return Found(max(codes), "".join(said), written(str(kept)), time.monotonic() - began)


def jobs() -> list[Job]:
    """All jobs of real ranks that there can be here."""
    groups = {"messages": list(MESSAGES), "collectives": list(COLLECTIVES)}
    made = []
    for over in [*REAL, *HOSTS]:
        why = missing() if over == "ofi" else ""
        if over in HOSTS:
            why = why_not()
        if why:
            print(f"{over}: left out, {why}", flush=True)
            continue
        for way in REAL_WAYS if over in REAL else ("finalizes", "stays", "exits"):
            made += [Job(over, way, what, names) for what, names in groups.items()]
        for way in WINDOW_WAYS if over in REAL else WINDOW_WAYS[:1]:
            hows = HOWS.get(over, ["Create"])
            made += [Job(over, way, f"windows by {how}", list(WINDOWS[how])) for how in hows]
        if over in REAL:
            made += [Job(over, way, "messages", list(MESSAGES)) for way in ENDS_JOB]
    return made


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
                done = min(number * TOGETHER, len(chosen))
                print(f"{done} of {len(chosen)} cells, {len(wrong)} wrong", flush=True)
    return wrong


def sweep_jobs(chosen: list[Job]) -> list[str]:
    """All waits in real jobs."""
    with ThreadPoolExecutor(JOBS) as pool:
        return [each for found in pool.map(Job.wrong, chosen) for each in found]


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--every", type=int, default=1, metavar="N")
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    if options.real:
        found = [job for job in jobs() if options.only in str(job)]
        wrong = sweep_jobs(found[:: options.every])
    else:
        chosen = [cell for cell in cells(BTLS, PMLS) if options.only in str(cell)]
        wrong = sweep_worlds(chosen[:: options.every])
    for each in wrong[:SHOWN]:
        print(each[:1500])
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
