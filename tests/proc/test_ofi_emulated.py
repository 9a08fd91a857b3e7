"""The emulated fabric between two processes, over loopback."""

from __future__ import annotations

import errno
import json
import subprocess
import sys

import pytest

from tests.support.fabric_processes import PROVIDERS
from tests.support.fabric_programs import PROGRAMS
from tests.support.worlds import ROOT, real

pytestmark = pytest.mark.proc

SETTINGS = {"btl": "self,sm"}  # for what the ranks tell each other


def test_every_program_and_random_work() -> None:
    wanted = [[provider, name] for provider in PROVIDERS for name in (*PROGRAMS, "random")]
    found = real(2, "tests.support.fabric_processes:all_programs", settings=SETTINGS)
    assert found == [[wanted, 0]] * 2, "what was run, and sockets left open"


def test_a_peer_that_is_killed() -> None:
    """All that was under way ends with an error, once, in order and soon."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.fabric_kill"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    errors, told, took, once = json.loads(done.stdout)
    assert errors[-1] == errno.ECONNRESET
    assert set(errors) <= {0, errno.ECONNRESET}
    assert told == errno.EHOSTUNREACH
    assert took < 20
    assert once
