"""A model that is trained on several ranks, on whole networks and on a broken one."""

from __future__ import annotations

import pytest
from conftest import Run, needs_torch

pytestmark = needs_torch

FAILOVER = ("--mca", "pml", "bfo", "--mca", "btl", "self,tcp")


def test_two_ranks_end_with_the_very_weights_of_gloo(job: Run) -> None:
    ours, theirs = (job(2, "train.py", backend, 30).stdout for backend in ("ompy", "gloo"))
    assert ours == theirs
    assert ours.startswith("loss 0.")


def test_more_ranks_end_with_the_loss_of_gloo(job: Run) -> None:
    ours, theirs = (
        float(job(4, "train.py", backend, 30).stdout.split()[1]) for backend in ("ompy", "gloo")
    )
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_a_rail_that_is_cut_changes_nothing(job: Run) -> None:
    whole = job(2, "train.py", "ompy", 40).stdout
    cut = job(
        2,
        "train.py",
        "ompy",
        40,
        options=(
            *FAILOVER,
            "--fault-strict",
            "--fault",
            "link_down:rank=0,rail=lo,nth=60,lasts=1s",
        ),
    )
    assert cut.stdout == whole
    assert "rails broke" in cut.stderr
