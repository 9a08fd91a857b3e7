"""Programs of torch as jobs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parent / "programs"
BINARIES = Path(sys.executable).parent
TORCH_IS_HERE = importlib.util.find_spec("torch") is not None
NO_TORCH = "there is no torch: pip install torch; tools/nightly.py runs these tests with it"

needs_torch = pytest.mark.skipif(not TORCH_IS_HERE, reason=NO_TORCH)

Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


def _environment(**more: str) -> dict[str, str]:
    # a thread a rank, as torchrun has it; torch warns where there is no NumPy
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore", **more}


@pytest.fixture(name="job")
def fixture_job() -> Run:
    """Run a program by ompy-run, and see that it ends as expected."""

    def job(
        ranks: int,
        name: str,
        *words: object,
        options: tuple[str, ...] = (),
        code: int = 0,
        **environment: str,
    ) -> Done:
        command = [str(BINARIES / "ompy-run"), "-n", str(ranks), "--oversubscribe", *options]
        program = [sys.executable, str(PROGRAMS / name), *map(str, words)]
        done = _done([*command, *program], environment)
        assert done.returncode == code, done.stdout + done.stderr
        return done

    return job


@pytest.fixture(name="torchrun")
def fixture_torchrun() -> Run:
    """Run a program by torchrun."""

    def torchrun(ranks: int, name: str, *words: object, **environment: str) -> Done:
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
        return _done([*command, str(PROGRAMS / name), *map(str, words)], environment)

    return torchrun


def _done(command: list[str], environment: dict[str, str]) -> Done:
    return subprocess.run(
        command,
        env=_environment(**environment),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
