"""Every command where something is missing: one clear error or none, and nothing left behind.

The commands are those that click knows, the surroundings those of `tests/support/scarcity.py`.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from random import Random

import pytest

from tests.support import scarcity
from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc
LINES_MAX = 12  # of a block about a job that failed, with what its processes said before
OURS = re.compile(r'File ".*/(?:ompy|ompy_components|click)/')
PAIRS = [
    (command, condition)
    for condition in scarcity.CONDITIONS
    for command in scarcity.commands()
    if THOROUGH or command not in scarcity.LONG
]
SEED = 5  # arbitrary: of the few that CI tries; the night tries all
# what has gone wrong before
KNOWN = {
    ("ompy trace trace", "200 MiB of memory"),  # room for 256 MiB of a small job.json
    ("ompy completion bash", "6 descriptors"),
    ("ompy build", "stderr full"),  # exit code 1, and an empty line on standard output
    ("ompy sim ring.py", "stdout closed"),
    ("ompy sim ring.py", "SIGCHLD ignored"),
}
KNOWN_LONG = {
    ("ompy sim --seeds 2 --jobs 1 --keep kept ring.py", name)
    for name in ("stdin closed", "SIGCHLD ignored", "6 descriptors", "files of 100 bytes")
}


def chosen() -> list[tuple[str, scarcity.Condition]]:
    if THOROUGH:
        return PAIRS
    known = [pair for pair in PAIRS if (pair[0], pair[1].name) in KNOWN]
    assert len(known) == len(KNOWN)
    return known + Random(SEED).sample([pair for pair in PAIRS if pair not in known], 2)


@pytest.fixture(scope="module")
def small_job(tmp_path_factory):
    """The program of a small job, its trace and its recording, made once."""
    folder = tmp_path_factory.mktemp("traced")
    (folder / "ring.py").write_text(scarcity.RING)
    for option in ("--trace trace", "--record-data --record recorded"):
        command = scarcity.argv(f"ompy-run -n 2 {option} PYTHON ring.py")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=90, cwd=folder)
    return folder


def run(command: str, condition: scarcity.Condition, launch) -> subprocess.CompletedProcess[str]:
    environment = dict(launch.environment)
    for name, value in condition.variables.items():
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    return subprocess.run(
        scarcity.argv(command),
        cwd=launch.directory,
        env=environment,
        preexec_fn=condition.prepare,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=170,
    )


@pytest.mark.parametrize(
    ("command", "condition"), chosen(), ids=lambda one: getattr(one, "name", one)
)
def test_one_clear_error_or_none(command, condition, launch, small_job) -> None:
    shutil.copytree(small_job, launch.directory, dirs_exist_ok=True)
    if condition.fatal and not python_starts(condition, launch):
        pytest.skip("not even the interpreter starts")
    done = run(command, condition, launch)
    assert not OURS.search(done.stderr), done.stderr
    assert "Exception ignored" not in done.stderr
    if not condition.fatal:
        assert done.returncode == (2 if command == "ompy build" else 0), done.stderr
    elif done.returncode == 0:
        assert not done.stderr.startswith("Error")
    else:
        assert 0 < done.returncode < 128 or done.returncode == 141, done.stderr
        quiet = condition.name == "nobody reads stdout"
        assert quiet or 1 <= len(done.stderr.splitlines()) <= LINES_MAX, done.stderr


def python_starts(condition: scarcity.Condition, launch) -> bool:
    """Whether an interpreter does, with what every command of ours needs first."""
    done = subprocess.run(
        [sys.executable, "-c", "import click"],
        cwd=launch.directory,
        env=launch.environment,
        preexec_fn=condition.prepare,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    return done.returncode == 0


def test_what_is_known_is_among_them() -> None:
    names = {condition.name for condition in scarcity.CONDITIONS}
    for command, name in KNOWN | KNOWN_LONG:
        assert command in scarcity.commands()
        assert name in names
