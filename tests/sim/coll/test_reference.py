"""coll basic: all operations, all small communicators, all branches, against the reference."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from ompy.frameworks.collectives import exchange
from ompy.frameworks.communicator import Communicator
from ompy.frameworks.pml import SYNCHRONOUS
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll import programs
from tests.sim.coll.shapes import PLAIN, Board, noise
from tests.support.effort import THOROUGH, effort
from tests.support.worlds import virtual

SIZES = range(1, 10) if THOROUGH else (1, 2, 3, 4, 5, 7)
BRANCH_SIZES = SIZES if THOROUGH else (1, 3, 6)  # test_tuned has the algorithms one by one
WAYS = ("self,sm", "self,tcp")
LIMITS = (
    "coll_basic_tree_block_max",
    "coll_basic_allgather_small_max",
    "coll_basic_alltoall_small_max",
    "coll_basic_allreduce_small_max",
    "coll_basic_reduce_scatter_small_max",
)
BRANCHES = {
    "always-large": {**dict.fromkeys(LIMITS, 0), "coll_basic_alltoall_window": 2},
    "always-small": dict.fromkeys(LIMITS, 1 << 30),
}
BRANCHING = ("scatter", "gather", "allgather", "alltoall", "allreduce", "reduce_scatter")


def run(program: Callable, size: int, *, seed: int = 0, **settings: object) -> list:
    def body(process: RankProcess) -> object:
        return program(programs.world(process))

    return virtual(size, body, seed=seed, **{"coll": "basic", **settings}).results


# each size over one BTL, pairs over both; the nightly sweep runs all over both
COMBINATIONS = [
    (size, btl) for size in SIZES for btl in WAYS if THOROUGH or size == 2 or btl == WAYS[size % 2]
]


@pytest.mark.parametrize(("size", "btl"), COMBINATIONS)
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_operation_does_what_mpi_says(name: str, size: int, btl: str) -> None:
    run(programs.PROGRAMS[name], size, seed=size, btl=btl)


@pytest.mark.parametrize("branch", BRANCHES)
@pytest.mark.parametrize("size", BRANCH_SIZES)
@pytest.mark.parametrize("name", BRANCHING)
def test_every_branch_serves_every_size_of_message(name: str, size: int, branch: str) -> None:
    run(programs.PROGRAMS[name], size, seed=size, btl=WAYS[size % 2], **BRANCHES[branch])


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_no_step_relies_on_buffering(name: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No send completes before its receive is posted."""
    monkeypatch.setattr(exchange, "STANDARD", SYNCHRONOUS)
    run(programs.PROGRAMS[name], size, seed=size, btl="self,sm")


@pytest.mark.parametrize("seed", range(effort(10)))
def test_other_schedules(seed: int) -> None:
    def everything(comm: object) -> None:
        for name in ("scatter", "gather", "reduce", "allreduce", "exscan"):
            programs.PROGRAMS[name](comm)

    run(everything, 3 + seed % 3, seed=1000 + seed, btl=WAYS[seed % 2])


@pytest.mark.parametrize("size", SIZES)
def test_nobody_leaves_a_barrier_before_all_have_come(size: int) -> None:
    for seed in range(effort(5)):
        done = [-1] * size
        run(partial(programs.barrier, done), size, seed=seed, btl=WAYS[seed % 2])
        assert done == [programs.BARRIERS - 1] * size


@pytest.mark.parametrize("size", SIZES)
def test_float_results_have_the_same_bits_everywhere(size: int) -> None:
    limit = {"coll_basic_allreduce_small_max": 4096}
    results = run(programs.float_sums, size, seed=size, btl="self,sm", **limit)
    assert len(results[0]) == 16
    assert all(result == results[0] for result in results)


def test_an_alltoallv_that_looks_regular_to_one_rank() -> None:
    """Equal blocks side by side here say nothing about the others; no default relies on it."""

    def count(source: int, target: int) -> int:
        return 2 if 0 in (source, target) else (source * target) % 3

    def program(comm: Communicator) -> None:
        ranks = range(comm.size)
        if comm.rank == 0:
            send, receive = (Board.even(2, PLAIN, comm.size) for _ in range(2))
        else:
            send = Board([count(comm.rank, other) for other in ranks], [PLAIN] * comm.size)
            receive = Board([count(other, comm.rank) for other in ranks], [PLAIN] * comm.size)
        for other in ranks:
            send.put(other, noise(8 * count(comm.rank, other), comm.rank, other))
            receive.expect(other, noise(8 * count(other, comm.rank), other, comm.rank))
        assert send.blocks().regular is (comm.rank == 0)
        comm.coll.alltoall(send.blocks(), receive.blocks())
        receive.verify("alltoallv")

    run(program, 5, btl="self,sm")
