"""Random calls on both back ends at once."""

from __future__ import annotations

import os

import pytest
from conftest import Run, needs_torch

SEEDS = int(os.environ.get("OMPY_TORCH_SEEDS", "1"))


@needs_torch
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_results_are_those_of_gloo(job: Run, ranks: int, seed: int) -> None:
    assert job(ranks, "against_gloo.py", seed, 10).stdout == "alike\n"


@needs_torch
def test_the_results_are_those_of_gloo_by_tcp(job: Run) -> None:
    options = ("--mca", "btl", "self,tcp")
    assert job(3, "against_gloo.py", 7, 10, options=options).stdout == "alike\n"


@needs_torch
def test_calls_are_compared_on_demand(job: Run) -> None:
    said = job(2, "against_gloo.py", 3, 3, TORCH_DISTRIBUTED_DEBUG="DETAIL").stdout
    assert said == "alike\n"
