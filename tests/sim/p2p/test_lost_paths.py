"""No path leads to a rank any more: whatever waits for it fails, however often it is asked.

The rank lives and says nothing, and the path is lost once. Everything that is begun afterwards has
to fail as well, as nothing can come: `ompy sim` worlds 34 and 97 of `tools/sweep sim` waited
for ever in a probe, and in a receive from anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from ompy.data.errors import ERR_IN_STATUS, ERR_PROC_FAILED
from ompy.frameworks.btl import ERROR_FATAL
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.net.virtual.virtual_network import Rail
from ompy.runtime.ranks.process import RankProcess

from tests.sim.p2p.test_leaving import PMLS
from tests.support.leaving_cells import strangers
from tests.support.leaving_waits import GONE, TAG, WAITS, room
from tests.support.worlds import virtual

NAMES = [name for name in WAITS if strangers(name)]
BYSTANDER = 2
BOUND = 3_000_000_000  # ns; a collective's other ranks and its withdrawal may take a second


def loses(process: RankProcess) -> dict[str, Any]:
    """Rank 0 loses its only path to rank 1, makes calls that need it, and then others."""
    world = world_of(process)
    pair = world.Split(0 if world.rank != BYSTANDER else 1)
    if world.rank == BYSTANDER:
        world.Recv(room(), 0, TAG)
        world.Send(b"you may end", GONE, TAG)
        return {}
    pair.Sendrecv(room(), 1 - pair.rank, TAG, room(), 1 - pair.rank, TAG)
    if world.rank == GONE:
        world.Recv(room(11), BYSTANDER, TAG)
        return {}
    context = process.context
    (module,) = [one for one in context.btls if one.name != "self"]
    module.error_callback.failed(module, ERROR_FATAL, context.procs[GONE], "it was pulled")
    found = {name: outcome(process, partial(WAITS[name].call, pair, None)) for name in NAMES}
    world.Send(room(), BYSTANDER, TAG)
    return found


def outcome(process: RankProcess, call: Callable[[], object]) -> tuple[int, int, str]:
    """Error class, ns it took, message."""
    now = process.context.engine.now
    began = now()
    try:
        call()
    except MPIException as problem:
        return problem.code, now() - began, str(problem)
    return 0, now() - began, ""


@pytest.mark.parametrize("pml", PMLS)
@pytest.mark.parametrize("btl", ["tcp", "usnic"])
def test_nothing_waits_for_a_rank_that_no_path_leads_to(pml: str, btl: str) -> None:
    job = virtual(3, loses, btl=f"self,{btl}", pml=pml)
    assert list(job.results[0]) == NAMES
    for name, (code, took, text) in job.results[0].items():
        assert took < BOUND, name
        if code or not WAITS[name].may_succeed:
            assert code in {ERR_PROC_FAILED, ERR_IN_STATUS}, (name, text)
            assert "MPI_ERR_PROC_FAILED" in text, name
    assert "rank 1 on host0 can no longer be reached: " in job.results[0]["Probe"][2]
    assert "it was pulled" in job.results[0]["Probe"][2]


@pytest.mark.parametrize("pml", PMLS)
def test_the_paths_to_others_are_as_they_were(pml: str) -> None:
    def program(process: RankProcess) -> tuple[int, int, str]:
        world = world_of(process)
        found = (0, 0, "")
        if world.rank == 0:
            (module,) = [one for one in process.context.btls if one.name != "self"]
            gone = process.context.procs[GONE]
            module.error_callback.failed(module, ERROR_FATAL, gone, "it was pulled")
            found = outcome(process, partial(world.Recv, room()))
        if world.rank != GONE:
            other = BYSTANDER - world.rank
            for _ in range(3):
                world.Sendrecv(room(300_000), other, TAG, room(300_000), other, TAG)
        if world.rank == BYSTANDER:
            world.Send(b"you may end", GONE, TAG)
        if world.rank == GONE:
            world.Recv(room(11), BYSTANDER, TAG)
        return found

    code, _, text = virtual(3, program, btl="self,tcp", pml=pml).results[0]
    assert code == ERR_PROC_FAILED, "who asks for anybody's message may be waiting for that rank"
    assert "rank 1 on host0 can no longer be reached" in text


@pytest.mark.parametrize(
    ("btl", "size"),
    [("tcp", 300_000), ("usnic", 300_000), ("openib", 300_000), ("openib,usnic", 60)],
)
def test_the_other_end_hears_of_a_path_that_was_given_up(btl: str, size: int) -> None:
    """By another rail: it waits for what will not come. Worlds 8617 and 1183 of `tools/sweep sim`.

    There the receiver of a large message lost the rail of half of it. Its sender had nothing to
    send over that, so it saw nothing, and waited for ever for the word that all had arrived. Or the
    other end had never used that path (small messages go over usnic).
    """

    def program(process: RankProcess) -> tuple[int, int, str]:
        world = world_of(process)
        other = 1 - world.rank
        for _ in range(4):
            world.Sendrecv(room(size), other, TAG, room(size), other, TAG)
        if world.rank == 1:
            first = btl.partition(",")[0]
            module = next(one for one in process.context.btls if one.name == first)
            endpoint = module.reach(process.context.procs[0])
            assert endpoint is not None
            endpoint.path.broke("it was pulled")  # type: ignore[attr-defined]
        found = outcome(process, partial(world.Recv, room(), other, TAG))
        process.context.engine.wait_until(lambda: False, 2 * BOUND)  # nor by that it has left
        return found

    rails = (Rail("rail0"), Rail("rail1"))
    job = virtual(2, program, btl=f"self,{btl}", pml="ob1", rails=rails)
    for code, took, text in job.results:
        assert code == ERR_PROC_FAILED, text
        assert took < BOUND
