"""GASNet's test programs in our words, over every conduit there is, in virtual worlds."""

from __future__ import annotations

import pytest

from tests.support.effort import THOROUGH
from tests.support.gasnet_programs import PROGRAMS, Program
from tests.support.gasnet_worlds import CHOSEN, CONDUITS, Under, run

SEEDS = 8 if THOROUGH else 1


@pytest.mark.parametrize("under", CHOSEN.values(), ids=CHOSEN)
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_program(program: Program, under: Under) -> None:
    for seed in range(SEEDS + (under.name == "loopback")):  # it is quick, and the most unkind
        run(under, program.ranks, program.run, seed=seed)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_alone(program: Program) -> None:
    """A job of one rank: all is for the own rank."""
    run(CONDUITS["loopback"], 1, program.run)
