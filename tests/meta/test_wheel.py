"""What a wheel of ours holds where it cannot be compiled; the gate `wheel` has the compiled one."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from ompy.cli.hot import HOT, SHARED

from tests.support.effort import THOROUGH

ROOT = Path(__file__).resolve().parents[2]
MODULES = {name.replace(".", "/") for name in HOT if name != SHARED}


def wheel(folder: Path, **environment: str) -> Path:
    """Build one with what is installed here: no package index is needed."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, "-w", str(folder), str(ROOT)], env={**os.environ, **environment}, check=True
    )
    return next(folder.glob("ompy-*.whl"))


def compiled(path: Path) -> set[str]:
    with zipfile.ZipFile(path) as opened:
        names = opened.namelist()
    assert {f"{stem}.py" for stem in MODULES} <= set(names)
    return {name.partition(".")[0] for name in names if name.endswith(".so")}


@pytest.mark.proc
@pytest.mark.parametrize("setting", [{"OMPY_PURE": "1"}, {"OMPY_PURE": "", "CC": "false"}])
def test_a_pure_wheel(tmp_path: Path, setting: dict[str, str]) -> None:
    made = wheel(tmp_path, **setting)
    assert made.name.endswith("-py3-none-any.whl")
    assert not compiled(made)


@pytest.mark.proc
@pytest.mark.skipif(not THOROUGH, reason="tools/nightly.py does it; the gate wheel compares, too")
def test_sdist_and_pure_wheel_are_the_same_wherever_they_are_built(tmp_path: Path) -> None:
    """In another folder, at another time, with another umask and another order of sets."""
    here = built(ROOT, tmp_path / "made", 0o22)
    with tarfile.open(next(here.glob("*.tar.gz"))) as opened:
        opened.extractall(tmp_path / "another" / "place", filter="data")
    (source,) = (tmp_path / "another" / "place").iterdir()
    for path in source.rglob("*"):
        path.chmod(0o700 if path.is_dir() or path.stat().st_mode & 0o100 else 0o600)
        os.utime(path, (0, 0))
    there = built(source, tmp_path / "made again", 0o77)
    names = sorted(path.name for path in here.iterdir())
    assert names == sorted(path.name for path in there.iterdir())
    assert len(names) == 2
    for name in names:
        assert (here / name).read_bytes() == (there / name).read_bytes()


def built(source: Path, folder: Path, umask: int) -> Path:
    """The folder with the sdist and the pure wheel of a tree."""
    kinds = ["-t", "sdist", "-t", "wheel"]
    command = [sys.executable, "-m", "hatchling", "build", *kinds, "-d", str(folder)]
    environment = {**os.environ, "OMPY_PURE": "1", "PYTHONHASHSEED": str(umask)}
    environment.pop("SOURCE_DATE_EPOCH", None)
    subprocess.run(
        command, cwd=source, check=True, capture_output=True, env=environment, umask=umask
    )
    return folder
