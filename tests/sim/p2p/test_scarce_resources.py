"""Everything completes when BTLs have next to no room, in the virtual world."""

from __future__ import annotations

import pytest
from ompy.net.virtual.virtual_network import Rail

from tests.support.effort import effort
from tests.support.worlds import find, virtual

PROGRAMS = "tests.sim.p2p.programs"
SCARCE = {
    "sm": {"btl": "self,sm", "btl_sm_ring_slots": 2, "btl_sm_free_list_max": 1},
    "sm-two": {"btl": "self,sm", "btl_sm_ring_slots": 3, "btl_sm_free_list_max": 2},
    "tcp": {"btl": "self,tcp", "btl_tcp_free_list_max": 1},
}


@pytest.mark.parametrize("program", ["ring", "many_outstanding", "unexpected_order", "truncation"])
@pytest.mark.parametrize("scarce", sorted(SCARCE))
@pytest.mark.parametrize("seed", range(effort(3)))
def test_completes(program: str, scarce: str, seed: int) -> None:
    virtual(3, find(f"{PROGRAMS}:{program}"), seed=seed, **SCARCE[scarce])


@pytest.mark.parametrize("seed", range(effort(3)))
def test_thousands_of_small_fragments(seed: int) -> None:
    """`ring` passes on a million bytes."""
    limits = {"btl_sm_eager_limit": 128, "btl_sm_max_send_size": 256, "btl_sm_free_list_max": 1}
    virtual(2, find(f"{PROGRAMS}:ring"), seed=seed, btl="self,sm", **limits)


@pytest.mark.parametrize("seed", range(effort(1)))
@pytest.mark.parametrize("program", ["ring", "many_outstanding", "posted_order", "probes"])
def test_slow_narrow_rails(program: str, seed: int) -> None:
    rails = (
        Rail("fast", latency=1_000, jitter=100, window=1_000),
        Rail("slow", latency=900_000, jitter=800_000, bandwidth=10, window=100),
    )
    virtual(2, find(f"{PROGRAMS}:{program}"), seed=seed, rails=rails, btl="self,tcp")
