#!/usr/bin/env python3
"""What a release has to pass: some hours on two cores.

    python tools/release.py [--minutes 60] [--only WORDS] [--list]

In shards: goes on where earlier runs of the same code stopped, the nightly ones too, and enters
each step into the ledger: see `sweep.py`.
"""

from __future__ import annotations

from nightly import KILLS
from nightly import STEPS as NIGHTLY
from sweep import Step, sweep, tests

SHARD = 1000  # kill trials; arbitrary: some minutes each
STEPS = [
    *NIGHTLY,
    *(
        tests(
            f"kills {first} to {first + SHARD - 1}",
            f"{KILLS}::test_kill_trial",
            "-n",
            "4",
            OMPY_KILL_TRIALS=str(SHARD),
            OMPY_KILL_SEED=str(first),
        )
        for first in range(SHARD, 5 * SHARD, SHARD)
    ),
    *(
        tests(f"{name} x 50", path, "-m", "not proc", "-n", "2", OMPY_EFFORT="50")
        for name, path in (
            ("point-to-point worlds", "tests/sim/p2p"),
            ("put and get worlds", "tests/sim/rdma"),
            ("API worlds", "tests/sim/mpi"),
            ("properties", "tests/property"),
        )
    ),
    Step("100,000 worlds of bad wires", ["tools/lossy_sweep.py"]),
    Step("1,000,000 worlds of dying rails", ["tools/bfo_sweep.py"]),
    Step("200 cuts of rails", ["tools/cable_cuts.py"]),
    Step("the wheel, every Python here", ["tools/every_python.py"]),
    Step("all gates", ["tools/check.py"]),
]

if __name__ == "__main__":
    sweep("release", STEPS)
