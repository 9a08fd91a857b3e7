"""Rails fail in epochs: bfo goes on over the others; nothing is lost, or done twice."""

from __future__ import annotations

from functools import partial

import pytest
from ompy.net.scripted import ScriptedFaults
from ompy.net.virtual import Rail
from ompy.runtime.fault_script import read_faults
from ompy.runtime.virtual import VirtualJob

from tests.support import window_programs
from tests.support.effort import effort
from tests.support.worlds import registry

RANKS = 3
SEEDS = effort(2)
CUTS = (
    "nic_gone:rank=0,rail=rail0,nth={nth}",
    "link_down:rank=1,rail=rail1,nth={nth},lasts=300ms",
    "nic_gone:rank=2,rail=rail1,nth={nth};link_down:rank=0,rail=rail1,nth={nth},lasts=50ms",
)


@pytest.mark.parametrize("cut", range(len(CUTS)))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_rails_are_cut_in_epochs(cut: int, seed: int) -> None:
    """Accumulates would show what is done twice."""
    settings = {"btl": "self,tcp", "pml": "bfo", "osc": "pt2pt", "osc_pt2pt_inline_max": 12}
    rails = [Rail("rail0"), Rail("rail1")]
    job = VirtualJob(RANKS, registry(**settings), seed=seed, rails=rails)
    script = CUTS[cut].format(nth=15 + 11 * seed)
    rules = read_faults([script], RANKS)
    faults = []
    for rank, network in enumerate(job.networks):
        engine, trace = job._board.engines[rank], job.traces[rank]
        more = {"engine": engine, "network": network, "trace": trace, "seed": seed}
        faults.append(ScriptedFaults(rules, rank, RANKS, **more))
        network.install(faults[-1])
    job.run(partial(window_programs.run, seed=seed))
    counts = [sum(each) for each in zip(*(one.delivered for one in faults), strict=True)]
    assert all(counts), "each fault of the script has struck"
