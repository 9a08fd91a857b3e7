"""ob1's point-to-point behaviour, from one source in the virtual world and in the real one."""

from __future__ import annotations

import pytest

from tests.support.effort import effort
from tests.support.forms import interpreted_only
from tests.support.mutants import MUTANTS
from tests.support.worlds import WORLDS, both

PROGRAMS = "tests.sim.p2p.programs"
ALL = (
    "ring",
    "growing",
    "posted_order",
    "unexpected_order",
    "internal_tags",
    "truncation",
    "probes",
    "last_words",
    "cancelling",
    "many_outstanding",
    "late_communicator",
    "synchronous_waits",
)
ACKNOWLEDGING = "send,put,inplace,need-ack,need-csum,rdma-completion,hetero-rdma,failover"
# which program notices which planted defect
NOTICED_BY = {
    "claims-last": "posted_order",
    "specific-first": "posted_order",
    "any-tag-takes-internal": "internal_tags",
}


def world_params() -> list[object]:
    return [
        pytest.param(world, marks=pytest.mark.proc if world == "real" else ()) for world in WORLDS
    ]


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
@pytest.mark.parametrize("program", ALL)
@pytest.mark.parametrize("world", world_params())
def test_program(world: str, program: str, btl: str) -> None:
    ranks = 3 if program in ("ring", "many_outstanding", "cancelling") else 2
    both(world, ranks, f"{PROGRAMS}:{program}", btl=btl)


@pytest.mark.parametrize("program", ALL)
@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
@pytest.mark.parametrize("seed", range(effort(12)))
def test_seeds(program: str, btl: str, seed: int) -> None:
    for ranks in (2, 4):
        both("virtual", ranks, f"{PROGRAMS}:{program}", btl=btl, seed=seed)


@pytest.mark.parametrize("program", ALL)
@pytest.mark.parametrize("world", world_params())
def test_tcp_that_acknowledges(world: str, program: str) -> None:
    """As for a PML that fails over: fragments are complete when the peer has them."""
    ranks = 3 if program in ("ring", "many_outstanding", "cancelling") else 2
    both(world, ranks, f"{PROGRAMS}:{program}", btl="self,tcp", btl_tcp_flags=ACKNOWLEDGING)


@interpreted_only
@pytest.mark.parametrize("world", world_params())
@pytest.mark.parametrize("mutant", sorted(MUTANTS))
def test_planted_defect_is_noticed(world: str, mutant: str) -> None:
    program = f"{PROGRAMS}:{NOTICED_BY[mutant]}"
    both(world, 2, program, btl="self,sm")
    with pytest.raises(Exception, match="AssertionError"):
        both(world, 2, program, btl="self,sm", mutant=mutant)
