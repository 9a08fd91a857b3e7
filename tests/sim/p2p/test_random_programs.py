"""Random programs beside their model, with random parameters, each in a virtual world of its own.

What they are made of is in `tests/support/differential/`; in real processes
`tools/sweep differential` runs many.
"""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import Final

import pytest
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.differential.program import Judge, Program
from tests.support.differential.settings import draw_settings
from tests.support.effort import effort
from tests.support.worlds import virtual

KINDS: Final = ("streams", "partitions", "handles", "reductions", "windows")
WORLDS: Final = 4  # of each kind; with the numbers that follow some hundred were run


@pytest.mark.parametrize("number", range(effort(WORLDS)))
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_the_model(kind: str, number: int) -> None:
    chance = Random(f"v {number}")
    settings, ranks = draw_settings(chance), chance.randint(2, 4)
    run = import_module(f"tests.support.differential.{kind}").run
    judges = [Judge() for _ in range(ranks)]

    def program(process: RankProcess) -> None:
        world = world_of(process)
        run(Program(world, number, judges[world.rank]))

    virtual(ranks, program, seed=number, **settings)
    assert sum(judge.compared for judge in judges), "nothing was compared"
