"""Random programs beside a model in NumPy: a few of each kind; `tools/sweep differential` has many.

What they are made of, and what they compare, is in `tests/support/differential/`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.support.differential.kinds import KINDS
from tests.support.effort import effort

pytestmark = pytest.mark.proc
ROOT: Final = Path(__file__).resolve().parents[2]
PROGRAMS: Final = 2  # of each kind: what is shown here is that they run, and judge


def run_programs(kind: str, *more: str) -> subprocess.CompletedProcess[str]:
    paths = [os.environ.get("PYTHONPATH", ""), str(ROOT)]
    words = [Path(sys.executable).with_name("ompy-run"), "-n", "3", "--oversubscribe"]
    words += [sys.executable, "-m", "tests.support.differential", kind]
    return subprocess.run(
        [*words, "0", str(effort(PROGRAMS)), *more],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_the_model(kind: str) -> None:
    done = run_programs(kind)
    assert not done.returncode, done.stderr
    counts = re.search(r"^(\d+) programs, (\d+) results compared$", done.stdout, re.MULTILINE)
    assert counts, done
    assert int(counts[1]) == effort(PROGRAMS)
    assert int(counts[2]) > PROGRAMS


@pytest.mark.parametrize("kind", KINDS)
def test_one_wrong_result_is_found(kind: str) -> None:
    """A judge that says nothing of it would say nothing of ompy's, either."""
    done = run_programs(kind, "--plant")
    assert done.returncode, done.stdout
    assert f"{kind}, seed " in done.stderr
    assert re.search(r"WrongData: .*(1 of \d+ differ|planted)", done.stderr, re.DOTALL), done.stderr
