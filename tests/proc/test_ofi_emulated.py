"""The emulated fabric between two processes, over loopback."""

from __future__ import annotations

import errno

import pytest

from tests.support.fabric_programs import PROGRAMS
from tests.support.worlds import real

pytestmark = pytest.mark.proc

RANKS = "tests.support.fabric_processes"
SETTINGS = {"btl": "self,sm"}  # for what the ranks tell each other


def test_every_program() -> None:
    wanted = [["emulated", name] for name in PROGRAMS]
    assert real(2, f"{RANKS}:all_programs", settings=SETTINGS) == [wanted, wanted]


def test_a_peer_that_is_gone() -> None:
    near, _ = real(2, f"{RANKS}:peer_is_killed", settings=SETTINGS)
    errors, told, in_time = near
    assert errors[-1] == errno.ECONNRESET
    assert set(errors) <= {0, errno.ECONNRESET}
    assert told == errno.EHOSTUNREACH
    assert in_time
