"""Objects that go through the memory of coll sm: every call, whatever has room there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.test_giving_up import CALLS, MATRIX, REDUCTIONS, attempt
from tests.support.effort import THOROUGH, effort
from tests.support.worlds import virtual

OBJECTS = importlib.import_module("tests.sim.mpi.objects")
PROGRAMS = ("arrays", "collectives", "reductions", "wrong_arguments")
# bytes of a fragment: all has room; some has; nothing but the table has, and not for five members
FRAGMENTS = (65536, 256, 64)
SIZES = (2, 3, 5, 9)
CELLS = [
    (program, ranks, fragment)
    for number, program in enumerate(PROGRAMS)
    for place, ranks in enumerate(SIZES)
    for which, fragment in enumerate(FRAGMENTS)
    if THOROUGH or (number + place + which) % 3 == 0
]
# of the objects in turn: nothing, short ones, what is longer than any fragment here
LENGTHS = (0, 1, 40, 200, 3000, 70_000)
ROUNDS = 12


def carried(process: RankProcess) -> Any:
    """The world's communicator, when objects go through its memory, or never will."""
    comm = world_of(process)
    comm.Barrier()  # makes the memory
    return comm


def settings(fragment: int) -> dict[str, Any]:
    return {"btl": "self,sm", "coll_sm_fragment_size": fragment, "coll_sm_comm_num_segments": 2}


@pytest.mark.parametrize(("name", "ranks", "fragment"), CELLS)
@pytest.mark.parametrize("seed", range(effort(1)))
def test_objects_arrive(name: str, ranks: int, fragment: int, seed: int) -> None:
    program = getattr(OBJECTS, name)

    def run(process: RankProcess) -> bool:
        comm = carried(process)
        program(process)
        return comm._state().communicator.coll.unsized_messages() is not None

    found = virtual(ranks, run, seed=seed, **settings(fragment)).results
    assert found == [ranks * 16 <= fragment] * ranks, "the table of all members has room"


def some(rank: int, turn: int) -> str:
    """What a member gives: of another length each time, and than the others."""
    return chr(97 + rank) * LENGTHS[(rank + turn) % len(LENGTHS)]


@pytest.mark.parametrize("ranks", SIZES if THOROUGH else SIZES[:3])
@pytest.mark.parametrize("fragment", FRAGMENTS[:2])
@pytest.mark.parametrize("seed", range(effort(2)))
def test_each_sender_decides_for_itself(ranks: int, fragment: int, seed: int) -> None:
    """Short and long objects in one call; members run apart, and calls of each kind follow."""

    def run(process: RankProcess) -> None:
        comm = carried(process)
        rank = comm.rank
        for turn in range(ROUNDS):
            root = turn % ranks
            at_root = rank == root
            everybody = [some(each, turn) for each in range(ranks)]
            assert comm.bcast(some(root, turn) if at_root else None, root) == some(root, turn)
            assert comm.gather(some(rank, turn), root) == (everybody if at_root else None)
            assert comm.allgather(some(rank, turn)) == everybody
            assert comm.scatter(everybody if at_root else None, root) == some(rank, turn)
            given = [some(rank, turn + each) for each in range(ranks)]
            assert comm.alltoall(given) == [some(each, turn + rank) for each in range(ranks)]
            whole = "".join(everybody)
            assert comm.reduce(some(rank, turn), root=root) == (whole if at_root else None)
            assert comm.allreduce(some(rank, turn)) == whole

    virtual(ranks, run, seed=seed, **settings(fragment))


@pytest.mark.parametrize("ranks", SIZES if THOROUGH else SIZES[:3])
@pytest.mark.parametrize("fragment", FRAGMENTS)
@pytest.mark.parametrize("seed", range(effort(2)))
def test_neighbours_decide_for_themselves(ranks: int, fragment: int, seed: int) -> None:
    """Two edges to the right and one to the left; the last member of a line has nobody there."""

    def run(process: RankProcess) -> None:
        comm = carried(process)
        rank = comm.rank
        right, left = (rank + 1) % ranks, (rank - 1) % ranks
        ring = comm.Create_dist_graph_adjacent([left, left, right], [right, left, right])
        ring.Barrier()
        line = comm.Create_cart([ranks])
        line.Barrier()
        for turn in range(ROUNDS):
            ring_of = [some(each, turn) for each in range(ranks)]
            assert ring.neighbor_allgather(some(rank, turn)) == [
                ring_of[left],
                ring_of[left],
                ring_of[right],
            ]
            given = [some(rank, turn + each) for each in range(3)]
            second, third = (1, 2) if ranks == 2 else (2, 1)  # in the order of sending to a member
            assert ring.neighbor_alltoall(given) == [
                some(left, turn),
                some(left, turn + second),
                some(right, turn + third),
            ]
            before = some(rank - 1, turn) if rank else None
            after = some(rank + 1, turn) if rank + 1 < ranks else None
            assert line.neighbor_allgather(some(rank, turn)) == [before, after]

    virtual(ranks, run, seed=seed, **settings(fragment))


@pytest.mark.parametrize("fragment", FRAGMENTS[:2])
@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize(("name", "failing"), MATRIX)
def test_others_are_told_of_a_part_that_fails(
    name: str, failing: int, ranks: int, fragment: int
) -> None:
    call, _ = CALLS[name]

    def run(process: RankProcess) -> tuple[str, Any, Any, list[Any]]:
        comm = carried(process)
        right = attempt(comm, call, fails=False)
        how, what = attempt(comm, call, fails=comm.rank == failing)
        after = [each(comm) for each in AFTERWARDS]
        return how, what, right, after

    results = virtual(ranks, run, **settings(fragment)).results
    code = results[failing][1] if results[failing][0] == "error" else MPI.ERR_OTHER
    for rank, (how, what, right, after) in enumerate(results):
        assert right[0] == "ok"
        assert after == results[0][3] == [sum(range(ranks)), [*range(ranks)], 1, []]
        if how == "ok":
            assert rank != failing or name in REDUCTIONS
            assert what == right[1]
        elif rank == failing:
            assert how == "own" or "too few" in name
        else:
            assert (how, what) == ("error", code or MPI.ERR_OTHER)


AFTERWARDS: tuple[Callable[[Any], Any], ...] = (
    lambda comm: comm.allreduce(comm.rank),
    lambda comm: comm.allgather(comm.rank),
    lambda comm: comm.bcast(1 if comm.rank == comm.size - 1 else None, comm.size - 1),
    lambda comm: comm.Barrier() or [],
)


def test_different_calls_are_told_apart() -> None:
    def run(process: RankProcess) -> str:
        comm = carried(process)
        with pytest.raises(MPI.Exception) as raised:
            comm.allgather(1) if comm.rank else comm.allreduce(1)
        return str(raised.value)

    for said in virtual(2, run, **settings(65536)).results:
        assert "allgather" in said
        assert "allreduce" in said


@pytest.mark.parametrize(("calls", "made"), [(2, False), (12, True)])
def test_the_memory_is_made_after_some_calls(calls: int, made: bool) -> None:
    """A communicator that makes a few calls on objects has no memory of its own."""

    def run(process: RankProcess) -> bool:
        comm = world_of(process)
        for _ in range(calls):
            comm.allreduce(1)
        return comm._state().communicator.coll.unsized_messages() is not None

    assert virtual(3, run, **settings(65536)).results == [made] * 3
