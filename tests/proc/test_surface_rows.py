"""`tools/bench surface` times every communicating call: each row runs, and no method lacks one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ompy import MPI

from tools.bench.surface_rows.untimed import untimed_names

pytestmark = pytest.mark.proc
pytest.importorskip("numpy")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tools" / "bench" / "surface_program.py"
# of the language, or of mpi4py alone: not calls of MPI
NO_CALLS = {"Exception", "Pickle", "buffer", "memory"}
KINDS = [
    name
    for name in dir(MPI)
    if not name.startswith("_") and isinstance(getattr(MPI, name), type) and name not in NO_CALLS
]


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """Every row on two ranks, of 8 bytes, for next to no time."""
    launcher = [Path(sys.executable).with_name("ompy-run"), "-n", "2", "--oversubscribe"]
    words = [*launcher, sys.executable, PROGRAM, "0.0001", "8"]
    done = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.nightly
def test_every_row_runs(lines: list[dict[str, Any]]) -> None:
    errors = {line["row"]: line["error"] for line in lines if "error" in line}
    built = {row: said for row, said in errors.items() if "NotImplementedError" not in said}
    assert not built
    assert len(lines) - len(errors) > 200


def test_every_method_of_every_class_has_a_row_or_a_reason(lines: list[dict[str, Any]]) -> None:
    timed = {line["method"] for line in lines}
    offered = {
        (kind, name)
        for kind in KINDS
        for base in getattr(MPI, kind).__mro__
        if base.__module__.startswith(("ompy", "mpi4py"))
        for name in vars(base)
        if not name.startswith("_") and callable(getattr(base, name))
    }
    lacking = [
        f"{kind}.{name}"
        for kind, name in sorted(offered)
        if not {name, f"{kind}.{name}"} & untimed_names()
        and not timed & {f"{one}.{name}" for one in _related(kind)}
    ]
    assert not lacking, lacking
    names = {name for _, name in offered} | {f"{kind}.{name}" for kind, name in offered}
    assert not untimed_names() - names, "what the API no longer has"


def _related(kind: str) -> list[str]:
    """Itself, what it is derived from, and what is derived from it."""
    here = getattr(MPI, kind)
    others = [(name, getattr(MPI, name)) for name in KINDS]
    return [name for name, one in others if issubclass(here, one) or issubclass(one, here)]
