"""`ompy.addons.sync` where chance decides who comes first, and in a real job."""

from __future__ import annotations

import pytest

from tests.sim.osc.sync_programs import TURNS
from tests.support.effort import effort
from tests.support.worlds import both

SOURCE = "tests.sim.osc.sync_programs"
SEEDS = effort(8)


def check(program: str, ranks: int, found: list) -> None:
    if program == "exclusive":
        assert found[0] == ranks * TURNS
    elif program == "told":
        assert found == [0] * ranks
    elif program == "at_once":
        assert max(found) >= 1
    else:
        values = sorted(value for taken in found for value in taken)
        assert values == [10 + 3 * place for place in range(ranks * (TURNS + 1))]
        assert [taken[-1] for taken in found] == values[-ranks:]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("program", ["exclusive", "told", "at_once", "counted"])
@pytest.mark.parametrize("osc", ["sm,pt2pt", "pt2pt"])
def test_virtual(program: str, ranks: int, osc: str) -> None:
    btl = "self,sm" if osc != "pt2pt" else "self,tcp"
    for seed in range(SEEDS):
        found = both("virtual", ranks, f"{SOURCE}:{program}", seed=seed, btl=btl, osc=osc)
        check(program, ranks, found)


@pytest.mark.proc
@pytest.mark.parametrize("program", ["exclusive", "told", "at_once", "counted"])
def test_real(program: str) -> None:
    check(program, 3, both("real", 3, f"{SOURCE}:{program}"))
