"""Random one-sided programs against a sequential model, in virtual worlds and in real ones."""

from __future__ import annotations

from functools import partial

import pytest

from tests.support import window_programs
from tests.support.effort import effort
from tests.support.worlds import virtual

SEEDS = effort(6)
# data travel with their command, or by themselves
INLINE = {"together": 3584, "apart": 0, "mixed": 12}


@pytest.mark.parametrize("inline", sorted(INLINE))
@pytest.mark.parametrize("seed", range(SEEDS))
def test_pt2pt(seed: int, inline: str) -> None:
    ranks = 2 + seed % 3
    memory = "attached" if seed % 3 == 1 else "created"
    job = virtual(
        ranks,
        partial(window_programs.run, seed=seed, memory=memory),
        seed=seed,
        btl="self,sm" if seed % 2 else "self,tcp",
        osc="pt2pt",
        osc_pt2pt_inline_max=INLINE[inline],
    )
    assert sum(job.results) > ranks


@pytest.mark.parametrize("memory", ["allocated", "created", "attached"])
@pytest.mark.parametrize("words", [True, False], ids=["words", "region"])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_sm(seed: int, words: bool, memory: str) -> None:
    ranks = 2 + seed % 3
    job = virtual(
        ranks,
        partial(window_programs.run, seed=seed, memory=memory),
        seed=seed,
        btl="self,sm",
        osc="sm,pt2pt",
        osc_sm_word_locks=words,
    )
    assert sum(job.results) > ranks
