#!/usr/bin/env python3
"""What a release has to pass: four hours on two cores, what the nights have passed included.

    python tools/release.py [--minutes 60] [--only WORDS] [--list]

In shards: goes on where earlier runs of the same code stopped, the nightly ones too, and enters
each step into the ledger: see `steps.py`. A larger step takes the place of the nightly one.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.nightly import BUILD, COMPILED, KILLS
from tools.nightly import STEPS as NIGHTLY
from tools.repository import ROOT
from tools.steps import Step, sweep, tests

SHARD = 1000  # kill trials; arbitrary: some minutes each
QUARTERS = 4  # of what takes hours


def quarters(name: str, tool: str, *words: str) -> list[Step]:
    """A sweep that is too long for one sitting, in parts."""
    return [
        Step(
            f"{name}: {part} of {QUARTERS}",
            ["tools/sweep", tool, "--part", f"{part}/{QUARTERS}", *words],
        )
        for part in range(1, QUARTERS + 1)
    ]


def worlds() -> list[Step]:
    """The virtual worlds' tests, folder by folder: they take an hour and a half.

    Compiled, as they are installed; each night has them interpreted.
    """
    home = ROOT / "tests" / "sim"
    folders = sorted(path.name for path in home.iterdir() if any(path.glob("test_*.py")))
    files = sorted(str(path.relative_to(ROOT)) for path in home.glob("test_*.py"))
    parts = {"the rest": files, **{name: [f"tests/sim/{name}"] for name in folders}}
    options = ("-m", "not proc", "-n", "2")
    return [
        replace(
            tests(f"worlds x 8: {name}", *paths, *options, OMPY_EFFORT="8", **COMPILED),
            before=BUILD,
        )
        for name, paths in parts.items()
    ]


LARGER = {  # than the nightly step of that name
    "hosts, 5 kills of each": [Step("hosts, 50 kills of each", ["tools/sweep", "host_kills"])],
    "GASNet beside load, 40 runs": quarters(
        "GASNet beside load, 500 runs", "gasnet_stalls", "--record"
    ),
    "worlds x 4": worlds(),
    "properties x 4": [tests("properties x 8", "tests/property", "-n", "2", OMPY_EFFORT="8")],
    "10,000 worlds of bad wires, the next": [
        Step("100,000 worlds of bad wires", ["tools/sweep", "lossy", "--jobs", "2"])
    ],
    "10,000 worlds of the control plane, the next": [
        Step("100,000 worlds of the control plane", ["tools/sweep", "control", "--jobs", "2"])
    ],
    "10,000 worlds of survivors, the next": [
        Step("1,000,000 worlds of survivors", ["tools/sweep", "survival", "--jobs", "2"])
    ],
    "500 programs under faults, the next": [
        Step("10,000 programs under faults", ["tools/sweep", "sim", "--jobs", "2"], COMPILED, BUILD)
    ],
    "100 recorded programs, the next": [
        Step("1000 recorded programs", ["tools/sweep", "replay", "--jobs", "2"])
    ],
    "60 jobs that wait in every way, the next": [
        Step("4000 jobs that wait in every way", ["tools/sweep", "deadlocks", "--jobs", "2"])
    ],
    "60 jobs of programs beside a model, the next": [
        Step("10,000 jobs beside a model", ["tools/sweep", "differential", "--jobs", "2"])
    ],
    "3000 GASNet programs, the next": quarters("100,000 GASNet programs", "gasnet", "--jobs", "2"),
    "10,000 worlds of dying rails, the next": [
        Step(
            "100,000 worlds of dying rails",
            ["tools/sweep", "bfo", "--worlds", "100000", "--jobs", "2"],
        )
    ],
    "ranks that leave, a quarter": [
        Step(
            "ranks that leave, over each BTL in each way",
            ["tools/sweep", "leaving_matrix", "--real"],
        )
    ],
    "waits for them, a twentieth": [Step("waits for them, all", ["tools/sweep", "leaving_matrix"])],
    "12 cuts of rails": [Step("200 cuts of rails", ["tools/sweep", "cable_cuts"])],
    "mpi4py's suite, 2 ranks": [Step("mpi4py's suite", ["tools/sweep", "oracle", "--floor"])],
}
STEPS = [
    *(one for step in NIGHTLY for one in LARGER.get(step.name, [step])),
    *(
        tests(
            f"kills {first} to {first + SHARD - 1}",
            f"{KILLS}::test_kill_trial",
            "-n",
            "4",
            OMPY_KILL_TRIALS=str(SHARD),
            OMPY_KILL_SEED=str(first),
        )
        for first in range(SHARD, 3 * SHARD, SHARD)  # the first thousand are the night's
    ),
    Step("the wheel, every Python here", ["tools/package", "every_python"]),
    Step("all gates", ["tools/check.py"]),
]
assert LARGER.keys() <= {step.name for step in NIGHTLY}, "what is larger than no nightly step"

if __name__ == "__main__":
    sweep("release", STEPS)
