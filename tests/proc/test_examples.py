"""Every example, on 1, 2, 4 and 8 ranks, over shared memory, over TCP, and with both.

The nightly run tries each number of ranks over each BTL; here an example meets 4 ranks, and every
third one 1 and 8, which take these two cores seconds each. The gate `wheel` runs the lessons of the
course on 4 ranks, as docs/course.md shows, and all others on 2, over shared memory.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH
from tools.package.course import lessons

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# what rank 0 says last, on any number of ranks
LAST_LINE = {
    "columns": "went out and came back doubled",
    "go_on": "6 rounds, in the end by",
    "order": "the urgent one before them",
    "shares": "of a fair one",
    "file_columns": "columns are right",
    "asynchronous": "received while their clocks ticked",
    "bandwidth": "1048576",
    "big_objects": "passed to the right",
    "distributed_array": "elements on",
    "distributed_hash_table": "counted, 'one'",
    "groups": "parted and met again",
    "heat": "settled after",
    "hello": "on 1 host(s)",
    "latency": "1048576",
    "mandelbrot": "rows each",
    "master_worker": "40 tasks done",
    "matrix_vector": "largest eigenvalue",
    "overlap": "and worked meanwhile",
    "pi_monte_carlo": "pi is about 3.1",
    "pi_riemann": "pi is about 3.14159265",
    "probe_first": "found by probing",
    "pull_the_cable": "blocks arrived as they were sent",
    "ring": "the token went around",
    "survive": "as without a failure",
    "sample_sort": "numbers sorted",
    "spawn_workers": "workers: pi is 3.14159",
    "shared_histogram": "numbers counted into",
    "work_counter": "primes found by",
    "word_count": "the 5, rank 3, round 3",
}

LESSONS = {lesson.program: lesson.settings for lesson in lessons()}
pytestmark = pytest.mark.proc


def test_each_has_an_expectation() -> None:
    assert {path.stem for path in EXAMPLES} == set(LAST_LINE)


WAYS = ("self,sm", "self,tcp", "self,sm,tcp")
RANKS = (1, 2, 4, 8)
PAIRS = [(ranks, way) for ranks in RANKS for way in WAYS]
IN_THE_GATE_WHEEL = (2, WAYS[0])  # what 2 ranks of one host take by themselves
FEWER = [(1, WAYS[2]), (4, WAYS[1]), (8, WAYS[2])]
assert {ranks for ranks, _ in [*FEWER, IN_THE_GATE_WHEEL]} == set(RANKS)
assert {way for _, way in [*FEWER, IN_THE_GATE_WHEEL]} == set(WAYS)
RUNS = [
    pytest.param(path, ranks, way, id=f"{path.stem}-{ranks}-{way}")
    for path in EXAMPLES
    for ranks, way in (PAIRS if THOROUGH else FEWER)
    if THOROUGH
    or (path in EXAMPLES[ranks % max(RANKS) :: 3] if ranks != 4 else path.stem not in LESSONS)
]


@pytest.mark.parametrize(("path", "ranks", "btl"), RUNS)
def test_example(path: Path, ranks: int, btl: str) -> None:
    command = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), "--mca", "btl", btl]
    command += LESSONS.get(path.stem, ())
    done = subprocess.run(
        [*command, sys.executable, str(path)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert LAST_LINE[path.stem] in lines[-1] or path.stem == "hello"
    if path.stem == "hello":
        said = [line for line in lines if line.startswith("Hello")]
        assert sorted(said) == sorted(f"Hello from rank {r} of {ranks}" for r in range(ranks))


@pytest.mark.skipif(not THOROUGH, reason="half a minute on two cores: part of tools/nightly")
@pytest.mark.parametrize("past_the_nic", [0, 1])
@pytest.mark.parametrize("conduit", ["gemini", "aries"])
@pytest.mark.parametrize("name", ["distributed_array", "distributed_hash_table"])
def test_gasnet_on_32_ranks(name: str, conduit: str, past_the_nic: int) -> None:
    settings = {"conduit": conduit, f"conduit_{conduit}_pshm": str(past_the_nic)}
    options = [word for pair in settings.items() for word in ("--mca", *pair)]
    command = [sys.executable, "-m", "ompy.cli.run", "-n", "32", *options, sys.executable]
    path = ROOT / "examples" / f"{name}.py"
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert LAST_LINE[name] in done.stdout.splitlines()[-1]
    assert " 32 rank(s)" in done.stdout
