"""Windows of the ranks' own memory, used at once by real ranks: nothing is lost, nothing is old."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytestmark = pytest.mark.proc

RUN = str(Path(sys.executable).parent / "ompy-run")
PROGRAM = str(Path(__file__).parents[1] / "support" / "created_window_program.py")
ROUNDS = "40"  # some 1200 operations of each rank; arbitrary


@pytest.mark.parametrize("messages", ["1", "0"])
@pytest.mark.parametrize(("ranks", "seed"), [(2, 1), (2, 2), (3, 3), (4, 4)])
def test_at_once(ranks: int, seed: int, messages: str) -> None:
    launch = [RUN, "-n", str(ranks), "--oversubscribe", "--timeout", "120"]
    way = ["--mca", "osc_sm_active_messages", messages]
    program = [sys.executable, PROGRAM, str(seed), ROUNDS]
    done = subprocess.run([*launch, *way, *program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("operations of each: ")
