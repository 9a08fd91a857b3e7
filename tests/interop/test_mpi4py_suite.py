"""A part of mpi4py's own test suite, on two and three ranks; `tools/sweep oracle` has all of it.

The suite is fetched by pip at test time; nothing of it is kept in this project. Without a package
index the test is skipped, and says so.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import THOROUGH
from tests.support.worlds import ROOT
from tools.bench.peer.peer_sources import Unavailable, fetch

pytestmark = [pytest.mark.proc, pytest.mark.network]

KEPT = json.loads((Path(__file__).parent / "mpi4py_floor.json").read_text())
FLOORS = {2: KEPT["files"], 3: KEPT["three ranks"]}
# on three ranks windows and mpi4py.util; of the loops over all types, which take minutes, only the
# shortest: of one element
WINDOWS = "test_rma.TestRMAWorld.test"
NAMES = {
    2: list(KEPT["files"]),
    3: [
        "test_util_pkl5",
        "test_util_sync",
        "test_win",
        *(f"{WINDOWS}{name}" for name in ("Fence", "FenceAll", "FetchAndOp", "CompareAndSwap")),
        *(f"{WINDOWS}{name}" for name in ("Flush", "Sync", "StartComplete", "PutProcNull")),
        *(f"{WINDOWS}StartCompletePost{name}" for name in ("Test", "Wait")),
        *(f"{WINDOWS}{name}ProcNull" for name in ("Get", "GetAccumulate")),
        *(f"{WINDOWS}AccumulateProcNull{name}" for name in ("Replace", "Sum")),
    ],
}


@pytest.fixture(scope="module")
def suite() -> Path:
    try:
        return fetch()
    except Unavailable as problem:
        pytest.skip(f"mpi4py's sources cannot be fetched: {problem}")


@pytest.mark.parametrize("ranks", FLOORS)
def test_no_file_passes_fewer_tests_than_it_did(ranks: int, suite: Path, tmp_path: Path) -> None:
    floor = FLOORS[ranks]
    command = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), sys.executable, "-m"]
    command += ["tests.interop.suite_rank", str(suite), str(tmp_path), *NAMES[ranks]]
    path = [str(ROOT), str(ROOT / "core/ompy/dropin"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    answers = [json.loads((tmp_path / str(rank)).read_text()) for rank in range(ranks)]
    assert [answer["size"] for answer in answers] == [ranks] * ranks
    wrong = {name: text for answer in answers for name, text in answer["wrong"].items()}
    assert not wrong
    well = set.intersection(*(set(answer["well"]) for answer in answers))
    passed = collections.Counter(name.partition(".")[0] for name in well)
    assert {name: passed[name] for name in floor if passed[name] < floor[name]} == {}


@pytest.mark.parametrize(
    ("ranks", "words", "tests"),
    [(4, ["-m", "mpi4py.futures"], 117), (2, [], 54)],
)
def test_futures_pass_all_of_their_own(
    ranks: int, words: list[str], tests: int, suite: Path
) -> None:
    """Under `mpi4py.futures`, where pools are all ranks; and without, where none is started."""
    command = [sys.executable, "-m", "ompy.cli.run", "-n", str(ranks), sys.executable, *words]
    done = subprocess.run(
        [*command, str(suite / "demo" / "futures" / "test_futures.py"), "-q"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert f"Ran {tests} tests" in done.stderr
    assert "skipped" not in done.stderr


@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it")
def test_running_programs_passes_all_of_its_own(suite: Path, tmp_path: Path) -> None:
    """`python -m mpi4py.run`, with `ompy-run` in the place of `mpiexec`."""
    environment = {
        **os.environ,
        "MPIEXEC": f"{sys.executable} -m ompy.cli.run",
        "PYTHONPATH": os.pathsep.join([str(ROOT / "core/ompy/dropin"), str(ROOT / "core")]),
    }
    names = ["TestRunScript", "TestRunModule", "TestRunCommand"]
    command = [sys.executable, str(suite / "demo" / "test-run" / "test_run.py"), "-q", *names]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, done.stderr
    assert "Ran 9 tests" in done.stderr
