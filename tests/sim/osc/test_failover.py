"""Rails fail in epochs: bfo goes on over the others; nothing is lost, or done twice."""

from __future__ import annotations

from functools import partial

import pytest
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.faults.fault_script import read_faults
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support import window_programs
from tests.support.effort import THOROUGH, effort
from tests.support.scripted_world import install
from tests.support.worlds import registry

RANKS = 3
SEEDS = effort(2)
CUTS = (
    "nic_gone:rank=0,rail=rail0,nth={nth}",
    "link_down:rank=1,rail=rail1,nth={nth},lasts=300ms",
    "nic_gone:rank=2,rail=rail1,nth={nth};link_down:rank=0,rail=rail1,nth={nth},lasts=50ms",
)


OVER: dict[str, dict[str, object]] = {
    "tcp": {"btl": "self,tcp", "osc": "pt2pt", "osc_pt2pt_inline_max": 12},
    "openib": {"btl": "self,openib", "osc": "rdma,pt2pt", "osc_rdma_inline_max": 12},
    "usnic": {"btl": "self,usnic", "osc": "rdma,pt2pt", "osc_rdma_inline_max": 12},
    # one rail of each; when that of ofi is gone puts and gets are messages
    "ofi and tcp": {
        "btl": "self,ofi,tcp",
        "btl_ofi_nic": "ofi_emulated",
        "btl_ofi_domain_include": "rail0",
        "btl_tcp_if_include": "rail1",
        "btl_ofi_exclusivity": 1024,
        "btl_tcp_exclusivity": 1024,
        "osc": "rdma,pt2pt",
    },
}


# what has few packets is cut earlier, and ofi's rail only
# CI begins with 1: a link that is down in world 0 takes thirty times as long
FIRST = 0 if THOROUGH else 1
CELLS = [("tcp", cut, FIRST + seed) for cut in range(len(CUTS)) for seed in range(SEEDS)]
CELLS += [("ofi and tcp", 0, seed) for seed in range(effort(1))]
CELLS += [("openib", 2, 0), ("usnic", 1, 1)]
if THOROUGH:
    CELLS += [(over, cut, 1 + SEEDS) for over in ("openib", "usnic") for cut in range(len(CUTS))]


@pytest.mark.parametrize(("over", "cut", "seed"), CELLS)
def test_rails_are_cut_in_epochs(cut: int, seed: int, over: str) -> None:
    """Accumulates would show what is done twice."""
    settings = {"pml": "bfo", **OVER[over]}
    rails = [Rail("rail0"), Rail("rail1")]
    job = VirtualJob(RANKS, registry(**settings), seed=seed, rails=rails, hosts=range(RANKS))
    nth = 15 + 11 * (seed % 8) if over == "tcp" else 3 + 5 * (seed % 4)  # of what there is
    script = CUTS[cut].format(nth=nth)
    rules = read_faults([script], RANKS)
    faults = install(job, rules, seed=seed)
    job.run(partial(window_programs.run, seed=seed))
    counts = [sum(each) for each in zip(*(one.delivered for one in faults), strict=True)]
    assert all(counts), "each fault of the script has struck"
