"""Several domains of ofi: a module each, over all of which messages go, in the virtual world."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.simulation.virtual_job import VirtualJob
from ompy_components.btl.ofi.module import OfiModule

from tests.sim.p2p import programs
from tests.support.worlds import registry

RAILS = (Rail("management", bandwidth=1_000), Rail("fast0"), Rail("fast1"))


def traffic(process: Any) -> dict[str, tuple[int, int]]:
    """The programs' messages; then of each interface bandwidth and bytes."""
    programs.growing(process)
    modules = [one for one in process.context.btls if isinstance(one, OfiModule)]
    assert [one.index for one in modules] == list(range(len(modules)))
    return {one.interface.name: (one.bandwidth, sum(one.counters().values())) for one in modules}


@pytest.mark.parametrize("hosts", [[0, 1, 2], [0, 0, 1]])
def test_every_rail_carries_and_the_slow_one_less(hosts: list[int]) -> None:
    job = VirtualJob(3, registry(btl="self,ofi"), seed=1, rails=RAILS, hosts=hosts)
    results = job.run(traffic)
    for found in results:
        assert list(found) == [rail.name for rail in RAILS]
        assert found["management"][0] < found["fast0"][0] == found["fast1"][0]
    for name in ("fast0", "fast1"):
        assert sum(found[name][1] for found in results), f"{name} carried nothing"


def test_the_seeds_way_is_the_first_alone() -> None:
    job = VirtualJob(2, registry(btl="self,ofi", btl_ofi_max_btls=1), rails=RAILS, hosts=[0, 1])
    for found in job.run(traffic):
        assert list(found) == ["management"]
