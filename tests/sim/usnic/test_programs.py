"""ob1's programs over usnic, in both worlds."""

from __future__ import annotations

import pytest
from ompy.engine.lock import COMPILED

from tests.support.effort import THOROUGH, effort
from tests.support.worlds import both

PROGRAMS = "tests.sim.p2p.programs"
ALL = ("ring", "growing", "unexpected_order", "truncation", "many_outstanding", "synchronous_waits")
QUICK = ("growing",)
BTL = "self,usnic"


@pytest.mark.parametrize("program", ALL if THOROUGH else QUICK)
@pytest.mark.parametrize("seed", range(effort(1)))
def test_virtual(program: str, seed: int) -> None:
    both("virtual", 3, f"{PROGRAMS}:{program}", btl=BTL, seed=seed)


@pytest.mark.proc
@pytest.mark.parametrize("program", ALL if THOROUGH else QUICK)
def test_real(program: str) -> None:
    both("real", 3, f"{PROGRAMS}:{program}", btl=BTL)


@pytest.mark.proc
@pytest.mark.skipif(COMPILED, reason="the compiled lock does not say whose it is")
def test_threads_are_in_usnic_under_the_ranks_lock() -> None:
    both("real", 2, "tests.support.locked_usnic:under_the_lock", btl=BTL)
