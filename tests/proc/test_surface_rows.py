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
KINDS = (
    "Comm Intracomm Topocomm Cartcomm Graphcomm Distgraphcomm Intercomm Win Request Prequest "
    "Message Group Datatype File"
)


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


def test_every_communicating_method_has_a_row_or_a_reason(lines: list[dict[str, Any]]) -> None:
    timed = {line["method"].partition(".")[2] for line in lines}
    offered = {
        name
        for kind in KINDS.split()
        for base in getattr(MPI, kind).__mro__
        if base.__module__.startswith("ompy")
        for name in vars(base)
        if not name.startswith("_") and callable(getattr(base, name))
    }
    assert not offered - timed - untimed_names()
    assert not untimed_names() - offered, "what the API no longer has"
