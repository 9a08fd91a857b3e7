#!/usr/bin/env python3
"""What is too long for CI: an hour and a half on two cores.

    python tools/nightly.py [--minutes 60] [--only WORDS] [--list]

Goes on where earlier runs of the same code stopped, and enters each step into the ledger: see
`steps.py`. Of the long sweeps over worlds it takes a share, the next one each night; all of them in
a row, and more of much else, is what `release.py` does.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.repository import ROOT
from tools.steps import Step, sweep, tests

LAUNCHER = "tests/proc/launch"
KILLS = f"{LAUNCHER}/test_orphans.py"
SIM = [
    "-m",
    "ompy.cli.main",
    "sim",
    "-n",
    "4",
    "--seeds",
    "1000",
    "--fault",
    "lossy",
    "--fault-strict",
]
COMPILED = {"PYTHONPATH": str(ROOT / "build" / "compiled"), "OMPY_TEST_COMPILED": "1"}
BUILD = ["tools/package", "try_wheel", "--tree", "build/compiled"]
WORLDS = ("tests/unit", "tests/property", "tests/sim", "tests/conformance")
SHARED = (
    *("launch/test_forked.py", "launch/test_deaths.py", "launch/test_exit_codes.py"),
    *("addons/test_futures.py", "test_bad_input.py", "test_demos.py", "test_mismatch.py"),
    *("test_check.py", "test_check_windows.py", "test_file_deaths.py", "test_sim_explore.py"),
    *("launch/test_place.py", "launch/test_launch_options.py", "launch/test_tracing.py"),
)
SITE = ("Sphinx>=8", "myst-parser>=4", "furo>=2024.8")  # the extra `docs`
WORKERS = "examples/master_worker.py"


def share(name: str, tool: str, worlds: int) -> Step:
    """The worlds of a sweep that come after those of the last night."""
    return Step(f"{name}, the next", ["tools/sweep", tool, "--next", str(worlds), "--jobs", "2"])


STEPS = [
    # what CI leaves out: the other form
    tests("real ranks, interpreted", "tests", "-m", "proc", "-n", "3"),
    tests(
        "what CI runs a share of",
        *("tests/unit", "tests/conformance", "tests/meta", "tests/interop"),
        "-n",
        "2",
        OMPY_EFFORT="2",
    ),
    tests(
        "what CI runs a share of, real",
        *(f"tests/proc/{name}" for name in SHARED),
        "-n",
        "2",
        OMPY_EFFORT="2",
    ),
    replace(
        tests("what CI leaves out, compiled", "tests", "-m", "nightly", "-n", "2", **COMPILED),
        before=BUILD,
    ),
    replace(
        tests("everything, compiled", *WORLDS, "-m", "not proc", "-n", "2", **COMPILED),
        before=BUILD,
    ),
    replace(
        Step(
            "instructions of calls",
            ["tools/bench", "instruction_table", "--tree", "build/compiled"],
        ),
        before=BUILD,
    ),
    tests("1000 kills", KILLS, "-n", "4", OMPY_KILL_TRIALS="1000"),
    tests("200 ends of conduits", f"{LAUNCHER}/test_conduit_ends.py", OMPY_EXIT_TRIALS="200"),
    tests("agents by a remote shell", f"{LAUNCHER}/test_remote.py", OMPY_EFFORT="2"),
    tests("agents in a tree", f"{LAUNCHER}/test_tree.py", OMPY_EFFORT="2"),
    tests("agents by srun", f"{LAUNCHER}/test_slurm_agents.py", OMPY_EFFORT="2"),
    Step("the wheel, all of it", ["tools/package", "try_wheel", "--all"]),
    tests("extras missing, each", "tests/proc/test_without_extras.py", OMPY_EFFORT="2"),
    tests("files named as modules", "tests/proc/test_shadow_modules.py", OMPY_EFFORT="2"),
    tests("no room", f"{LAUNCHER}/test_no_room.py", OMPY_EFFORT="2"),
    tests("an injector on the path", "tests/proc/test_injector.py", OMPY_EFFORT="2"),
    tests(
        "too little",
        f"{LAUNCHER}/test_scarce.py",
        f"{LAUNCHER}/test_odd_places.py",
        "-n",
        "2",
        OMPY_EFFORT="2",
    ),
    tests("a replay after the wrap", "tests/proc/test_replay.py", OMPY_EFFORT="2"),
    tests("hosts", "tests/netns", OMPY_EFFORT="2"),
    tests(
        "300,000 messages over unequal rails", "tests/netns/test_unequal_rails.py", OMPY_EFFORT="10"
    ),
    Step("GASNet beside load, 40 runs", ["tools/sweep", "gasnet_stalls", "--next", "40"]),
    Step("hosts, 5 kills of each", ["tools/sweep", "host_kills", "--each", "5"]),
    tests("long demo loops", "tests/proc/test_demos.py", "-k", "long", OMPY_NIGHTLY="1"),
    tests("examples, every way", "tests/proc/test_examples.py", "-n", "2", OMPY_EFFORT="2"),
    tests("real programs, interpreted", "tests/sim/mpi", "-k", "real", "-n", "2", OMPY_EFFORT="2"),
    tests("deadlocks of every kind", "tests/proc/test_deadlocks.py", OMPY_EFFORT="2"),
    tests("ranks that leave", "tests/proc/test_leaving.py", OMPY_EFFORT="2"),
    Step(
        "ranks that leave, a quarter", ["tools/sweep", "leaving_matrix", "--real", "--every", "4"]
    ),
    Step("waits for them, a twentieth", ["tools/sweep", "leaving_matrix", "--every", "20"]),
    Step("the site", ["tools/package", "site"], before=["-m", "pip", "install", "-q", *SITE]),
    Step("pictures and notebooks of the course", ["tools/package", "course", "--check"]),
    Step("the course's notebooks, executed", ["tools/package", "course", "--execute"]),
    replace(
        tests("a trace played in a browser", "tests/proc/test_player.py"),
        before=["-m", "pip", "install", "-q", "playwright"],
    ),
    Step("diagrams of protocols", ["tools/package", "protocol_figures", "--check"]),
    tests("GASNet in worlds", "tests/proc/test_sim_gasnet.py", "-n", "2", OMPY_EFFORT="2"),
    tests("worlds x 4", "tests/sim", "-m", "not proc", "-n", "2", OMPY_EFFORT="4"),
    Step("1000 programs in worlds", [*SIM, "--keep", "build/sim-failures", WORKERS]),
    Step("labelled programs under the checker", ["tools/sweep", "checker", "--jobs", "2"]),
    share("10,000 worlds of bad wires", "lossy", 10_000),
    Step("10,000 worlds of conduits", ["tools/sweep", "conduit", "--jobs", "2"]),
    share("10,000 worlds of the control plane", "control", 10_000),
    share("10,000 worlds of survivors", "survival", 10_000),
    share("500 programs under faults", "sim", 500),
    share("100 recorded programs", "replay", 100),
    share("3000 GASNet programs", "gasnet", 3000),
    share("60 jobs that wait in every way", "deadlocks", 60),
    share("60 jobs of programs beside a model", "differential", 60),
    share("10,000 worlds of dying rails", "bfo", 10_000),
    Step("12 cuts of rails", ["tools/sweep", "cable_cuts", "--cuts", "12"]),
    Step("mutated traces, scripts, lists, options", ["tools/sweep", "mutants", "--count", "5000"]),
    tests("properties x 4", "tests/property", "-n", "2", OMPY_EFFORT="4"),
    tests("usnic's kit", "tests/conformance/test_in_tree.py", "-k", "Usnic", OMPY_EFFORT="4"),
    tests("openib's kit", "tests/conformance/test_in_tree.py", "-k", "Openib", OMPY_EFFORT="2"),
    tests("messages beyond 4 GiB", "tests/proc/test_large_messages.py", OMPY_EFFORT="2"),
    tests("libfabric, all atomics", "tests/proc/test_libfabric.py", OMPY_EFFORT="1.5"),
    Step("plug-ins beside PyTorch, Dask and Ray", ["tools/sweep", "engines"]),
    Step("real packages", ["tools/sweep", "packages"]),
    Step("mpi4py's suite, 2 ranks", ["tools/sweep", "oracle", "--floor", "-n", "2"]),
]

if __name__ == "__main__":
    sweep("nightly", STEPS)
