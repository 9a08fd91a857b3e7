"""What a wheel of ours holds where it cannot be compiled; the gate `wheel` has the compiled one."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from ompy.cli.forms import INLINE

ROOT = Path(__file__).resolve().parents[2]
HOT = {
    str(path.relative_to(root).with_suffix(""))
    for root in (ROOT / "core", ROOT / "components")
    for path in root.rglob("*.pxd")
    if path.with_suffix(".py").exists() and path.stem not in INLINE
}


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
    assert {f"{stem}.py" for stem in HOT} <= set(names)
    return {name.partition(".")[0] for name in names if name.endswith(".so")}


@pytest.mark.proc
@pytest.mark.parametrize("setting", [{"OMPY_PURE": "1"}, {"OMPY_PURE": "", "CC": "false"}])
def test_a_pure_wheel(tmp_path: Path, setting: dict[str, str]) -> None:
    made = wheel(tmp_path, **setting)
    assert made.name.endswith("-py3-none-any.whl")
    assert not compiled(made)
