"""What windows promise, from one source in the virtual world and in the real one."""

from __future__ import annotations

import pytest

from tests.sim.osc import programs
from tests.support.effort import effort
from tests.support.worlds import both

SEEDS = effort(1)
SOURCE = "tests.sim.osc.programs"


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("program", programs.PROGRAMS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_virtual(program: str, ranks: int, seed: int) -> None:
    in_memory = program in programs.IN_MEMORY
    rest = {"osc": "sm,pt2pt"} if in_memory else {}
    btl = "self,tcp" if ranks == 3 and not in_memory else "self,sm"
    both("virtual", ranks, f"{SOURCE}:{program}", seed=seed, btl=btl, **rest)


@pytest.mark.proc
@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_real(btl: str) -> None:
    both("real", 3, f"{SOURCE}:everything", btl=btl)


@pytest.mark.proc
def test_random_programs_of_real_ranks() -> None:
    programs = "tests.support.window_programs"
    assert min(both("real", 3, f"{programs}:seeded", btl="self,sm")) > 10
    assert min(both("real", 2, f"{programs}:seeded_allocated", btl="self,sm")) > 10
    assert min(both("real", 3, f"{programs}:seeded_attached", btl="self,sm")) > 10
    assert min(both("real", 3, f"{programs}:seeded_attached", btl="self,sm", osc="pt2pt")) > 10
