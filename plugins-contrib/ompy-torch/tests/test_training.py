"""A model that is trained on several ranks, on whole networks and on a broken one."""

from __future__ import annotations

import pytest
from conftest import Run, needs_torch
from ompy.net.real import host_interfaces

pytestmark = needs_torch

# a rail beside the loopback, to be cut
OUTER = next((found.name for found in host_interfaces() if not found.loopback), "")
FAILOVER = ("--mca", "pml", "bfo", "--mca", "btl", "self,tcp", "--mca", "btl_tcp_if_include")


def test_two_ranks_end_with_the_very_weights_of_gloo(job: Run) -> None:
    ours, theirs = (job(2, "train.py", backend, 30).stdout for backend in ("ompy", "gloo"))
    assert ours == theirs
    assert ours.startswith("loss 0.")


def test_more_ranks_end_with_the_loss_of_gloo(job: Run) -> None:
    ours, theirs = (
        float(job(4, "train.py", backend, 30).stdout.split()[1]) for backend in ("ompy", "gloo")
    )
    assert ours == pytest.approx(theirs, abs=1e-4)


@pytest.mark.skipif(not OUTER, reason="this host has no interface but the loopback")
def test_a_rail_that_is_cut_changes_nothing(job: Run) -> None:
    whole = job(2, "train.py", "ompy", 40).stdout
    fault = f"link_down:rank=0,rail={OUTER},nth=30,lasts=1s"
    options = (*FAILOVER, f"lo,{OUTER}", "--fault-strict", "--fault", fault)
    cut = job(2, "train.py", "ompy", 40, options=options)
    assert cut.stdout == whole
    assert "rails broke" in cut.stderr
