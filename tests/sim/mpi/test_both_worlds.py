"""The mpi floor, from one source in the virtual world and in the real one."""

from __future__ import annotations

import importlib

import pytest

from tests.support.effort import effort
from tests.support.worlds import both

MODULES = ("point_to_point", "objects", "buffers", "communicators")
EVERY = [
    f"tests.sim.mpi.{module}:{program}"
    for module in MODULES
    for program in importlib.import_module(f"tests.sim.mpi.{module}").PROGRAMS
]
# these need a partner
PAIRS = {
    "probes",
    "truncation",
    "one_fails_of_several",
    "buffered",
    "buffers_given",
    "matched",
    "columns",
}
SIZES = (1, 2, 3, 5)


def name(program: str) -> str:
    return program.rpartition(":")[2]


@pytest.mark.parametrize("program", EVERY)
@pytest.mark.parametrize("seed", range(effort(2)))
def test_seeds(program: str, seed: int) -> None:
    for ranks in SIZES:
        if ranks > 1 or name(program) not in PAIRS:
            both("virtual", ranks, program, seed=seed, btl="self,sm")


@pytest.mark.parametrize("program", EVERY)
def test_over_tcp(program: str) -> None:
    both("virtual", 3, program, seed=11, btl="self,tcp")


@pytest.mark.proc
@pytest.mark.parametrize("program", EVERY)
def test_real(program: str) -> None:
    both("real", 3, program)
