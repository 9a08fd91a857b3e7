"""The emulated RDMA adapter between two processes, over loopback."""

from __future__ import annotations

import pytest

from tests.support.hca_programs import OPCODES, WRONG
from tests.support.worlds import real

pytestmark = pytest.mark.proc

PROGRAMS = "tests.support.hca_programs"
SETTINGS = {"btl": "self,sm"}  # for what the ranks tell each other


def test_what_may_not_be_done_fails_and_touches_nothing() -> None:
    near, far = real(2, f"{PROGRAMS}:wrong_access", settings=SETTINGS)
    assert near == [
        [opcode.name, why, "REM_ACCESS_ERR", "ERR"] for opcode in OPCODES for why in WRONG
    ]
    assert far == ["ERR"] * len(near)


def test_a_megabyte_each_way() -> None:
    for took in real(2, f"{PROGRAMS}:transfers", settings=SETTINGS):
        assert len(took) == 3


def test_a_peer_that_sleeps_is_no_error() -> None:
    near, far = real(2, f"{PROGRAMS}:busy_peer", settings=SETTINGS)
    statuses, seconds, tried_again = near
    assert statuses == ["SUCCESS"]
    assert seconds >= 2, "it was written to before it slept"
    assert tried_again
    assert far == [True]
