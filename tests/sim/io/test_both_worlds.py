"""What files promise, from one source in the virtual world and in the real one."""

from __future__ import annotations

import pytest
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.sim.io import programs
from tests.support.effort import effort
from tests.support.worlds import both, find, registry

SEEDS = effort(1)
SOURCE = "tests.sim.io.programs"


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("program", programs.PROGRAMS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_virtual(program: str, ranks: int, seed: int) -> None:
    both("virtual", ranks, f"{SOURCE}:{program}", seed=seed, btl="self,sm")


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_places_that_no_file_has(ranks: int, btl: str) -> None:
    both("virtual", ranks, "tests.sim.io.far_places:beyond_64_bits", btl=btl)


@pytest.mark.parametrize("program", programs.PROGRAMS)
def test_on_two_hosts(program: str) -> None:
    job = VirtualJob(4, registry(btl="self,tcp"), seed=1, hosts=(0, 1, 1, 0))
    job.run(find(f"{SOURCE}:{program}"))


@pytest.mark.proc
@pytest.mark.parametrize("ranks", [1, 4])
def test_real(ranks: int) -> None:
    both("real", ranks, f"{SOURCE}:everything", btl="self,sm")


@pytest.mark.proc
def test_real_over_tcp() -> None:
    both("real", 3, f"{SOURCE}:everything", btl="self,tcp", osc="pt2pt")
