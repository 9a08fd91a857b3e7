"""`ompy-run --check` of programs with windows: what is wrong is found, and its likes are let be.

In a wrong program each line with `# WRONG` is a site of the finding.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proc.window_programs import CORRECT, FAULTY
from tests.support.effort import THOROUGH

pytestmark = pytest.mark.proc

RUN = str(Path(sys.executable).parent / "ompy-run")


def _findings(
    program: str, ranks: int, folder: Path, *, refused: bool = False
) -> list[dict[str, object]]:
    path, report = folder / "program.py", folder / "report.json"
    path.write_text(program)
    command = [RUN, "-n", str(ranks), "--oversubscribe", "--check", "--check-report", str(report)]
    done = subprocess.run(
        [*command, sys.executable, str(path)], capture_output=True, text=True, check=False
    )
    assert report.exists(), done.stderr
    assert refused or "Traceback" not in done.stderr, done.stderr
    found: list[dict[str, object]] = json.loads(report.read_text())["findings"]
    return found


def _lines(finding: dict[str, object]) -> set[int]:
    sites = finding["sites"]
    assert isinstance(sites, list)
    return {site["line"] for site in sites}


@pytest.mark.parametrize("name", FAULTY if THOROUGH else list(FAULTY)[::3])
def test_found(name: str, tmp_path: Path) -> None:
    ranks, kind, program = FAULTY[name]
    wrong = {n for n, line in enumerate(program.splitlines(), 1) if "# WRONG" in line}
    told = _findings(program, ranks, tmp_path, refused=kind == "epoch")
    found = [each for each in told if each["class"] == kind]
    assert found, f"no {kind}"
    assert any(wrong <= _lines(each) for each in found), (wrong, found)


@pytest.mark.parametrize("name", CORRECT if THOROUGH else list(CORRECT)[::3])
def test_let_be(name: str, tmp_path: Path) -> None:
    ranks, program = CORRECT[name]
    assert _findings(program, ranks, tmp_path) == []
