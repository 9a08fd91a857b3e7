"""Real ranks: one calls MPI_Finalize, and whatever another waits for of it fails, in bounded time.

One job a BTL and PML makes every call, some begun before the rank leaves and some after.
"""

from __future__ import annotations

import pytest
from ompy.data.errors import ERR_IN_STATUS, ERR_PROC_FAILED

from tests.sim.p2p.test_leaving import BTLS, PMLS
from tests.support.effort import THOROUGH
from tests.support.worlds import real

PROGRAM = "tests.support.leaving_programs:everything"
PATIENCE = 200  # ms
CALL_MAX = 20  # s, of a call; arbitrary: it hung before, and this machine may be busy
JOB_MAX = 60  # s, of a job
CELLS = [(btl, pml) for btl in BTLS for pml in PMLS]
CHOSEN = CELLS if THOROUGH else [("sm", "ob1"), ("tcp", "ob1"), ("sm", "bfo")]


@pytest.mark.parametrize(("btl", "pml"), CHOSEN)
def test_every_wait_ends(btl: str, pml: str) -> None:
    settings = {"btl": f"self,{btl}", "pml": pml, f"pml_{pml}_leave_patience_ms": PATIENCE}
    found, _ = real(2, PROGRAM, settings=settings, timeout=JOB_MAX)
    for name, (code, took, text) in found.items():
        assert code == (ERR_IN_STATUS if name == "testall" else ERR_PROC_FAILED), (name, text)
        assert "MPI_ERR_PROC_FAILED" in text
        assert took < CALL_MAX, name
