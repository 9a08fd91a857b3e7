"""Which command lines a simulated rank can run."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKS = """
import sys
from ompy.frameworks.job import App
from ompy.runtime.simulation.program import problem_of
print(problem_of(App((sys.executable, *sys.argv[1:]), 1)))
"""


@pytest.mark.parametrize(
    ("own", "words", "runs"),
    [
        ([], ["-m", "json"], True),
        ([], ["-B", "-m", "json"], False),
        (["-B", "-W", "error"], ["-B", "-Werror", "-m", "json"], True),
        (["-B"], ["-m", "json"], True),
        (["-B"], ["-B", "-O", "-c", "pass"], False),
    ],
)
def test_options_of_the_interpreter_are_its_own(
    own: list[str], words: list[str], runs: bool
) -> None:
    """Pools of workers start theirs with the options of the interpreter they are in."""
    done = subprocess.run(
        [sys.executable, *own, "-c", ASKS, *words],
        capture_output=True,
        text=True,
        check=True,
        env={},
    )
    assert (not done.stdout.strip()) is runs, done.stdout
