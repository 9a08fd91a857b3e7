"""Which command lines a simulated rank can run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_an_error_of_mpi_is_shown_at_the_line_of_the_program(tmp_path: Path) -> None:
    """As `ompy-run` shows it. An error of the program has all of its lines."""
    program = tmp_path / "app.py"
    for line, shown in (("MPI.COMM_WORLD.send(1, dest=5)", 1), ("json.loads('{')", 4)):
        program.write_text(f"import json\nfrom mpi4py import MPI\n{line}\n")
        done = subprocess.run(
            [sys.executable, "-m", "ompy.cli.main", "sim", "-n", "1", "app.py"],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
        )
        assert done.returncode == 1, done.stderr
        assert done.stderr.count('  File "') == shown, done.stderr
