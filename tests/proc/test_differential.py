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


def run_programs(ranks: int, count: int, *kinds: str) -> subprocess.CompletedProcess[str]:
    paths = [os.environ.get("PYTHONPATH", ""), str(ROOT)]
    words = [Path(sys.executable).with_name("ompy-run"), "-n", str(ranks), "--oversubscribe"]
    words += [sys.executable, "-m", "tests.support.differential", "0", str(count), *kinds]
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )


def test_results_are_those_of_the_model() -> None:
    count = effort(PROGRAMS)
    done = run_programs(3, count, *KINDS)
    assert not done.returncode, done.stderr
    for kind in KINDS:
        line = re.search(rf"^{kind}: {count} programs, (\d+) results", done.stdout, re.MULTILINE)
        assert line, done
        assert int(line[1]) > count


@pytest.mark.parametrize("kind", KINDS)
def test_one_wrong_result_is_found(kind: str) -> None:
    """A judge that says nothing of it would say nothing of ompy's, either."""
    done = run_programs(1, PROGRAMS, kind, "--plant")
    assert done.returncode, done.stdout
    assert f"{kind}, seed " in done.stderr
    assert re.search(r"WrongData: .*(1 of \d+ differ|planted)", done.stderr, re.DOTALL), done.stderr
