"""Wheels of strangers' distributions, built and installed once, and commands run with them.

The distributions are spread over directories, as a user's and a system's might be. What nothing can
exclude from a job has one of its own.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.plugins.strangers import SIGHTINGS, STRANGERS

HERE = Path(__file__).parent
GOOD = sorted((HERE / "distributions").iterdir())
SITES = ("left", "right", "odd")
PATIENCE = 60  # s; far beyond what anything here takes


def call(*command: object) -> None:
    words = [sys.executable, *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


def install(parent: Path) -> None:
    """Build every wheel and install it into one of `SITES`."""
    folders = [*GOOD, *(stranger.write(parent / "sources") for stranger in STRANGERS)]
    wheels = parent / "wheels"
    wheels.mkdir()
    call(HERE / "build_wheels.py", wheels, *folders)
    built = {path.name.partition("-")[0]: path for path in sorted(wheels.glob("*.whl"))}
    assert len(built) == len(folders)
    odd = [built.pop(stranger.module) for stranger in STRANGERS if not stranger.excludable]
    left, right = list(built.values())[::2], list(built.values())[1::2]
    pip = ("-m", "pip", "--isolated", "-q", "--disable-pip-version-check", "install")
    pip += ("--no-deps", "--no-index", "--no-compile", "--target")
    with ThreadPoolExecutor() as pool:
        commands = [
            (*pip, parent / site, *files)
            for site, files in zip(SITES, (left, right, odd), strict=True)
        ]
        list(pool.map(lambda command: call(*command), commands))


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the `SITES`, the same for all processes of a test run."""
    base = tmp_path_factory.getbasetemp()
    parent = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "strangers"
    with (base.parent / "strangers.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one builds, the others wait and find it done
        if not (parent / "done").exists():
            parent.mkdir()
            install(parent)
            (parent / "done").touch()
    return parent


class Ended(NamedTuple):
    """How a command went."""

    code: int
    out: str
    err: str


class Commands:
    """Runs the command lines with strangers installed.

    Attributes:
        sites: where they are, as `PYTHONPATH` has it.
        folder: the working directory.
        sightings: gets a file for each stranger that is imported.
    """

    def __init__(self, installed: Path, folder: Path) -> None:
        self.sites = [installed / site for site in SITES]
        self.folder = folder
        self.sightings = folder / "sightings"
        self.sightings.mkdir()

    def _run(self, module: str, *words: object, **environ: str) -> Ended:
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("OMPY_", "OMPI_", "MPIEXEC_"))
        }
        path = os.pathsep.join([*map(str, self.sites), os.environ.get("PYTHONPATH", "")])
        here = {"HOME": str(self.folder), SIGHTINGS: str(self.sightings), "PYTHONPATH": path}
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                f"import sys; from {module} import main; sys.exit(main())",
                *map(str, words),
            ],
            cwd=self.folder,
            env=inherited | here | {"COLUMNS": "1000"} | environ,  # tables as wide as they are
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def run(self, ranks: int, program: str, *options: object, **environ: str) -> Ended:
        """Run Python code as the ranks of a job."""
        words = ("-n", ranks, *options, sys.executable, "-c", program)
        return self._run("ompy.cli.run", *words, **environ)

    def info(self, *options: object, **environ: str) -> Ended:
        """Run `ompy-info`."""
        return self._run("ompy.cli.info", *options, **environ)

    @property
    def seen(self) -> set[str]:
        """The modules of strangers that have been imported."""
        return {path.name for path in self.sightings.iterdir()}


@pytest.fixture
def commands(installed: Path, tmp_path: Path) -> Iterator[Commands]:
    return Commands(installed, tmp_path)
