"""Nonblocking and persistent neighbourhood calls on memory: who waits for whom, and what fails."""

from __future__ import annotations

from array import array
from random import Random
from typing import Any

import pytest
from ompy.data.errors import ERR_PROC_FAILED, ERR_TOPOLOGY, ERR_TRUNCATE
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.errors import MPIException
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.test_nonblocking_sm import LENT, NARROW, SETTINGS, SM
from tests.support.effort import effort
from tests.support.worlds import virtual


def numbers(count: int, value: int) -> array[int]:
    return array("q", [value] * count)


def code_of(request: Any) -> int:
    """What a request that is waited for fails with; 0 for nothing."""
    try:
        request.Wait()
    except MPIException as problem:
        return problem.Get_error_class()
    return 0


def ring_calls(process: RankProcess, seed: int) -> None:
    """Several under way, started and waited for in another order by each member."""
    world = world_of(process)
    ring = world.Create_cart([world.size], periods=[True])
    before, after = ring.Shift(0, 1)
    alike, own = Random(seed), Random(f"{seed}, {world.rank}")
    for _ in range(4):
        made = []
        for place in range(alike.randrange(2, 6)):
            count, same = alike.choice((0, 1, 3, 40, 3000)), alike.random() < 0.5
            value = 1000 * place + 10 * world.rank
            room = numbers(2 * count, -1)
            sent = numbers(count, value) + (array("q") if same else numbers(count, value + 1))
            name = "Neighbor_allgather_init" if same else "Neighbor_alltoall_init"
            request = getattr(ring, name)(sent, room)
            # what is sent in one direction is received from the other one
            wanted = [1000 * place + 10 * before + (not same)] * count
            wanted += [1000 * place + 10 * after] * count
            made.append((request, room, wanted))
        for _ in range(3):
            own.shuffle(made)
            for request, room, _ in made:
                room[:] = numbers(len(room), -1)
                request.Start()
            got = numbers(2, -1)
            begun = ring.Ineighbor_allgather(numbers(1, world.rank), got)
            for request, room, wanted in reversed(made):
                request.Wait()
                assert list(room) == wanted
            begun.Wait()
            assert list(got) == [before, after]
        for request, _, _ in made:
            request.Free()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_calls_complete_in_any_order(size: int, settings: dict[str, int]) -> None:
    for seed in range(effort(3)):
        virtual(size, lambda process, s=seed: ring_calls(process, s), seed=seed, **SM, **settings)


def test_small_ones_are_no_messages() -> None:
    def program(process: RankProcess) -> None:
        ring = world_of(process).Create_cart([3], periods=[True])
        ring.Ineighbor_allgather(numbers(1, 0), numbers(2, 0)).Wait()
        ring.Barrier()
        begun = []
        vars(ring._inner.coll)["schedule_neighbor_allgather"] = lambda *_: begun.append(1)
        ring.Ineighbor_allgather(numbers(1, 0), numbers(2, 0)).Wait()
        ring.Barrier()
        assert not begun
        assert ring._inner.coll._beginners["neighbor_alltoall"]._nonblocking._board is not None

    virtual(3, program, **SM)


@pytest.mark.parametrize("settings", [{}, NARROW, LENT], ids=["shown", "as messages", "lent"])
def test_too_little_room_is_its_receivers_error_alone(settings: dict[str, int]) -> None:
    def program(process: RankProcess) -> list[int]:
        world = world_of(process)
        ring = world.Create_cart([3], periods=[True])
        room = numbers(20 if world.rank == 1 else 40, 0)
        codes = [code_of(ring.Ineighbor_allgather(numbers(20, 1), room))]
        room = numbers(40, 0)
        codes.append(code_of(ring.Ineighbor_allgather(numbers(20, 1), room)))
        assert list(room) == [1] * 40
        return codes

    found = virtual(3, program, **SM, **settings).results
    assert found == [[0, 0], [ERR_TRUNCATE, 0], [0, 0]]


def test_an_edge_that_its_source_does_not_have_is_an_error() -> None:
    def program(process: RankProcess) -> list[int]:
        world = world_of(process)
        rank = world.rank
        graph = world.Create_dist_graph_adjacent([0, 0] if rank else [], [] if rank else [1])
        codes = []
        for _ in range(2):
            out = numbers(0 if rank else 1, 7)
            codes.append(code_of(graph.Ineighbor_alltoall(out, numbers(2 * rank, 0))))
        return codes

    assert virtual(2, program, **SM).results == [[0, 0], [ERR_TOPOLOGY, ERR_TOPOLOGY]]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("count", [1, 30_000])
def test_who_has_left_is_an_error_for_its_neighbours(count: int, persistent: bool) -> None:
    """In a line of four the first has left: the second is told, the last needs none of it."""

    def program(process: RankProcess) -> str:
        world = world_of(process)
        line = world.Create_cart([4], periods=[False])
        line.Ineighbor_allgather(numbers(1, 0), numbers(2, 0)).Wait()
        line.Barrier()
        if world.rank == 0:
            return "left"
        given = numbers(count, 0), numbers(2 * count, 0)
        if persistent:
            request = line.Neighbor_allgather_init(*given)
            request.Start()
        else:
            request = line.Ineighbor_allgather(*given)
        code = code_of(request)
        assert code in (0, ERR_PROC_FAILED)
        return "told" if code else "done"

    found = virtual(4, program, **SM).results
    assert found[:2] == ["left", "told"]
    if count == 1:
        assert found[2:] == ["done", "done"]
