"""The tool for libfabric's own tests: what it makes of exit codes, its tables, our end of them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.effort import THOROUGH
from tests.support.libfabric_devices import needs_libfabric
from tests.support.worlds import ROOT
from tools.sweep.transports import fabtests

LINE = "rdm -U"


def report(theirs: str, ours: str) -> dict[str, object]:
    return {
        "version": "1.17",
        "made": "today",
        fabtests.THEIRS: {LINE: {"shm": theirs}},
        fabtests.OURS: {LINE: {"shm": ours}},
    }


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([0, 0], "yes"),
        ([0, 61], "-"),
        ([38, 0], "-"),
        ([0, 1], "fails (1)"),
        ([fabtests.TIMEOUT], "hangs"),
        ([0, -11], "signal 11"),
    ],
)
def test_exit_codes(codes: list[int], said: str) -> None:
    assert fabtests.verdict(codes) == said


def test_what_fails_with_ours_alone_is_wrong() -> None:
    assert fabtests.wrong(report("yes", "yes, yes")) == []
    assert fabtests.wrong(report("hangs", "hangs, hangs")) == []
    assert fabtests.wrong(report("yes", "yes, hangs")) == [f"{LINE} over shm: yes, hangs"]


def test_a_table_for_each_library() -> None:
    said = fabtests.text([report("yes", "yes, yes"), report("-", "hangs, yes")])
    assert said.startswith(fabtests.HEAD)
    assert said.count("## libfabric 1.17") == 2
    assert f"| `{LINE}` | hangs, yes |" in said


def test_without_them_it_says_so() -> None:
    command = [sys.executable, "tools/sweep", "fabtests", "--programs", "/nowhere"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("skipped: no fabtests here")


@needs_libfabric
@pytest.mark.parametrize(
    "program", ["rdm_pingpong", "rma_pingpong", "rdm_atomic"] if THOROUGH else ["rdm_atomic"]
)
def test_our_end_speaks_with_itself(program: str) -> None:
    runner = fabtests.Runner(ROOT, "")
    port = fabtests.free_port()
    server = runner.ours(program, "tcp;ofi_rxm", port, serve=True)
    client = runner.ours(program, "tcp;ofi_rxm", port, serve=False)
    assert runner.pair(server, client, port) == "yes"
