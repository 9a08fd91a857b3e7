"""Other MPI libraries and another mpi4py beside ours: no silent worlds of one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ompy.cli.launch.other_mpi4py import complaint, ignores_path, python_options

pytestmark = pytest.mark.proc


def job(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ompy.cli.run", "-n", "2", *words]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env=env)


@pytest.mark.parametrize(
    ("argv", "options", "ignores"),
    [
        (["python", "a.py", "-E"], [], False),
        (["/usr/bin/python3.11", "-sE", "a.py"], ["-sE"], True),
        (["python3", "-I", "-m", "x"], ["-I"], True),
        (["python3", "-W", "error", "-I", "a.py"], [], False),
        (["python3", "-c", "-E"], [], False),
        (["hostname"], None, False),
        ([], None, False),
    ],
)
def test_what_python_is_told(argv: list[str], options: list[str] | None, ignores: bool) -> None:
    assert python_options(argv) == options
    assert ignores_path(options or []) is ignores


def test_a_python_that_does_not_look_at_the_path(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho /there/mpi4py/__init__.py\n")
    python.chmod(0o755)
    assert complaint([str(python), "a.py"], ours=True) == ""
    for argv, ours in (([str(python), "-I", "a.py"], True), ([str(python), "a.py"], False)):
        said = complaint(argv, ours=ours)
        assert "/there/mpi4py/__init__.py, not ompy's" in said
    python.write_text("#!/bin/sh\necho\n")
    assert complaint([str(python), "-I", "a.py"], ours=True) == ""


def test_one_that_is_found_without_ours(tmp_path: Path) -> None:
    there = tmp_path / "mpi4py"
    there.mkdir()
    (there / "__init__.py").write_text("")
    words = ["--no-mpi4py", sys.executable, "-c", "import mpi4py; print(mpi4py.__file__)"]
    done = job(*words, PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(there / "__init__.py")] * 2
    assert f"finds {there}/__init__.py, not ompy's" in done.stderr


def test_a_library_of_another_mpi(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    library = tmp_path / "libmpi.so.40"
    words = [compiler, "-shared", "-o", str(library), "-x", "c", "/dev/null"]
    subprocess.run(words, check=True)
    program = f"from mpi4py import MPI\nimport ctypes\nctypes.CDLL({str(library)!r})"
    done = job(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(str(library)) == 1, "one rank of the host says it"
    assert "knows nothing of ompy's ranks" in done.stderr
    assert job(sys.executable, "-c", "from mpi4py import MPI").stderr == ""


def test_what_c_code_asks_for() -> None:
    program = """
from mpi4py import MPI
for ask in (lambda: MPI.__pyx_capi__, lambda: MPI._addressof(MPI.COMM_WORLD)):
    try:
        ask()
    except (AttributeError, NotImplementedError) as problem:
        print(type(problem).__name__, problem)
assert not hasattr(MPI, "__pyx_capi__")
assert "open mpi" in MPI.Get_library_version().casefold()  # pytest-mpi and its like look for it
"""
    done = job(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("AttributeError")
    assert "has no C API" in first
    assert second.startswith("NotImplementedError")
    assert "not a C library" in second
