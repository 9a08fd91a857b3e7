"""Emulated Aries NICs between two processes: as on one host, and as on two over loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from tests.support.gni_processes import ROUNDS
from tests.support.worlds import ROOT, real

pytestmark = pytest.mark.proc

WHERE = pytest.mark.parametrize("where", ["near", "far"])


def shared_memory() -> set[str]:
    """Files in shared memory, but for those of libfabric in other tests (`pid:0:0`)."""
    return {name for name in os.listdir("/dev/shm") if ":" not in name}


def run(where: str, task: str) -> Any:
    before = shared_memory()
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.gni_processes", where, task],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert not done.returncode, done.stderr
    assert shared_memory() <= before
    return json.loads(done.stdout)


@WHERE
def test_messages_posts_and_atomics(where: str) -> None:
    (right, moved, kinds_of_ends, total), code = run(where, "work")
    assert right == ROUNDS
    assert moved
    assert (kinds_of_ends, total, code) == (1, 50, 0)


@WHERE
def test_a_peer_that_is_killed(where: str) -> None:
    """Everything for it ends with an error, soon, and nothing of it is left."""
    (put, atomic, message, took), code = run(where, "kill")
    assert {put, atomic, message} == {"TRANSACTION_ERROR"}
    assert took < 20
    assert code == -signal.SIGKILL


def test_the_ranks_of_a_job_have_both() -> None:
    found = real(2, "tests.support.gni_ranks:both_nics", settings={"btl": "self,sm"})
    assert found == [["gemini 1", "aries 1"], ["gemini 0", "aries 0"]]
