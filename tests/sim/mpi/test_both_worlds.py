"""The mpi floor, from one source in the virtual world and in the real one."""

from __future__ import annotations

import importlib

import pytest
from ompy.data import convertor

from tests.support.effort import THOROUGH, effort
from tests.support.worlds import both

MODULES = (
    "point_to_point",
    "modes",
    "objects",
    "buffers",
    "collective_requests",
    "communicators",
    "duplicates",
    "partitions",
    "sessions",
    "topologies",
)
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
    "buffer_space",
    "synchronous",
}
SIZES = (1, 2, 3, 5)
# the API's own side of things: real processes would do the same again
VIRTUAL = {
    "buffers_of_communicators",
    "failures",
    "freed_meanwhile",
    "in_place_and_functions",
    "persistent",
    "gaps_in_fragments",
    "matched_with_nobody",
    "persistent_receive_cancelled",
    "wrong_graphs",
    "synchronous",
}
# what CI does twice, compiled and not, it does in part each time: compiled, the real programs;
# interpreted, the virtual ones
COMPILED = not convertor.__file__.endswith(".py")
REAL_EVERY = 1 if THOROUGH or COMPILED else 2
SEEDS = effort(1)


def name(program: str) -> str:
    return program.rpartition(":")[2]


@pytest.mark.parametrize("program", EVERY)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_seeds(program: str, seed: int) -> None:
    # in CI half of the sizes, of each second program the other half
    for ranks in SIZES if THOROUGH else SIZES[EVERY.index(program) % 2 :: 2]:
        if ranks > 1 or name(program) not in PAIRS:
            both("virtual", ranks, program, seed=seed, btl="self,sm")


@pytest.mark.parametrize("program", EVERY)
def test_over_tcp(program: str) -> None:
    both("virtual", 3, program, seed=11, btl="self,tcp")


@pytest.mark.parametrize("limit", [256, 1021, 4099])
def test_gaps_in_fragments_of_any_size(limit: int) -> None:
    """Fragments end anywhere within the pieces of a datatype."""
    limits = {"btl_sm_eager_limit": 256, "btl_sm_max_send_size": limit}
    both("virtual", 2, "tests.sim.mpi.modes:gaps_in_fragments", btl="self,sm", **limits)


@pytest.mark.proc
@pytest.mark.parametrize(
    "program", [each for each in EVERY if name(each) not in VIRTUAL][::REAL_EVERY]
)
def test_real(program: str) -> None:
    both("real", 3, program)


@pytest.mark.proc
@pytest.mark.parametrize(
    ("program", "btl"),
    [
        ("pairs_of_threads", "self,sm"),
        ("shared_tag", "self,tcp"),
        *([("pairs_of_threads", "self,tcp"), ("shared_tag", "self,sm")] if THOROUGH else ()),
    ],
)
def test_threads(program: str, btl: str) -> None:
    both("real", 2, f"tests.sim.mpi.threads:{program}", btl=btl)
