"""ob1's programs over openib: two ports in the virtual world, and real processes."""

from __future__ import annotations

import pytest
from ompy.net.virtual.virtual_network import Rail

from tests.support.effort import THOROUGH, effort
from tests.support.worlds import both

PROGRAMS = "tests.sim.p2p.programs"
ALL = ("ring", "growing", "unexpected_order", "truncation", "many_outstanding", "synchronous_waits")
QUICK = ("growing",)
BTL = "self,openib"
TWO = (Rail("first"), Rail("second", latency=40_000, bandwidth=1_000))


@pytest.mark.parametrize("program", ALL if THOROUGH else QUICK)
@pytest.mark.parametrize("seed", range(effort(1)))
def test_virtual(program: str, seed: int) -> None:
    both("virtual", 3, f"{PROGRAMS}:{program}", btl=BTL, seed=seed, rails=TWO)


@pytest.mark.proc
@pytest.mark.parametrize("program", ALL if THOROUGH else QUICK)
def test_real(program: str) -> None:
    both("real", 3, f"{PROGRAMS}:{program}", btl=BTL)


@pytest.mark.proc
def test_real_queues_of_peers_own() -> None:
    """With credits, coalescing and small rings."""
    both(
        "real",
        2,
        f"{PROGRAMS}:growing",
        btl=BTL,
        btl_openib_receive_queues="P,256,8,6,4:P,4096,8:S,12288,32:P,65536,4",
        btl_openib_use_message_coalescing=1,
        btl_openib_eager_rdma_num=4,
    )
