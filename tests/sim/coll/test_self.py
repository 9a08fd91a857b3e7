"""Collective calls of one member: coll/self gives what coll/basic gives, in every form of call."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.support.worlds import virtual

GAPS: Final = MPI.INT64_T.Create_vector(2, 1, 2).Commit()


def _numbers(count: int) -> Any:
    return np.arange(1, count + 1)


def _forms() -> dict[str, Callable[[Any, Any, Any], tuple[Any, ...]]]:
    """The arguments of each call, of two arrays and an operation; of the first in place, too."""
    place = MPI.IN_PLACE
    return {
        "Bcast": lambda a, b, op: (a, 0),
        "Scatter": lambda a, b, op: (a, b, 0),
        "Scatter in place": lambda a, b, op: (a, place, 0),
        "Scatterv": lambda a, b, op: ([a, [3], [1], MPI.INT64_T], [b, 3, MPI.INT64_T], 0),
        "Gather": lambda a, b, op: (a, b, 0),
        "Gather in place": lambda a, b, op: (place, b, 0),
        "Gatherv": lambda a, b, op: ([a, 3, MPI.INT64_T], [b, [3], [2], MPI.INT64_T], 0),
        "Allgather": lambda a, b, op: ([a, 1, GAPS], [b, 2, MPI.INT64_T]),
        "Allgather in place": lambda a, b, op: (place, b),
        "Alltoall": lambda a, b, op: ([a, 2, MPI.INT64_T], [b, 1, GAPS]),
        "Alltoall in place": lambda a, b, op: (place, b),
        "Alltoallw": lambda a, b, op: ([a, [1], [8], [GAPS]], [b, [1], [0], [GAPS]]),
        "Reduce": lambda a, b, op: (a, b, op, 0),
        "Reduce in place": lambda a, b, op: (place, b, op, 0),
        "Allreduce": lambda a, b, op: (a, b, op),
        "Allreduce in place": lambda a, b, op: (place, b, op),
        "Scan": lambda a, b, op: (a, b, op),
        "Exscan": lambda a, b, op: (a, b, op),
        "Reduce_scatter_block": lambda a, b, op: (a, b, op),
        "Reduce_scatter": lambda a, b, op: (a, b, [6], op),
        "Reduce_scatter in place": lambda a, b, op: (place, b, [6], op),
    }


FORMS: Final = _forms()


def _made(comm: Any, form: str, operation: Any) -> list[list[int]]:
    """What is in both arrays after a call, as each kind of it."""
    found = []
    name = form.split(maxsplit=1)[0]
    for method in (name, f"I{name.lower()}", f"{name}_init"):
        a, b = _numbers(6), -_numbers(6)
        request = getattr(comm, method)(*FORMS[form](a, b, operation))
        for _ in range(2 if method.endswith("_init") else 1):
            if method.endswith("_init"):
                request.Start()
            if request is not None:
                request.Wait()
        found.append([*a.tolist(), *b.tolist()])
    return found


def all_forms(process: RankProcess) -> dict[str, list[list[int]]]:
    comm = world_of(process)
    comm.Barrier()
    comm.Ibarrier().Wait()
    operations = {"sum": MPI.SUM, "user": MPI.Op.Create(_never, commute=False)}
    return {
        f"{form}, {name}": _made(comm, form, operation)
        for form in FORMS
        for name, operation in operations.items()
    }


def _never(*_: object) -> None:
    raise AssertionError("there is nothing to combine")


@pytest.mark.parametrize("before", ["basic", "tuned,basic"])
def test_it_gives_what_others_give(before: str) -> None:
    (found,) = virtual(1, all_forms, coll=f"self,{before}").results
    assert found == virtual(1, all_forms, coll=before).results[0]
    assert all(each == results[0] for results in found.values() for each in results)


def too_small(process: RankProcess, name: str) -> int:
    comm = world_of(process)
    a, b = _numbers(6), -_numbers(3)
    given = {"Gather": ([a, 6], [b, 3], 0), "Allgather": ([a, 6], [b, 3])}[name]
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    with pytest.raises(MPI.Exception) as said:
        getattr(comm, name)(*given)
    assert (b == -_numbers(3)).all()
    return said.value.Get_error_class()


@pytest.mark.parametrize("name", ["Gather", "Allgather"])
def test_what_does_not_fit(name: str) -> None:
    program = partial(too_small, name=name)
    assert virtual(1, program, coll="self,basic").results == [MPI.ERR_TRUNCATE]


def edges(process: RankProcess) -> list[list[int]]:
    """Of rings, which lead back to their member; an end that leads nowhere gets nothing."""
    comm = world_of(process)
    found = []
    for periods in ([True], [False], [True, False], [True, True]):
        ring = comm.Create_cart([1] * len(periods), periods=periods)
        ends = 2 * len(periods)
        for name, given in (("alltoall", _numbers(2 * ends)), ("allgather", _numbers(2))):
            got = -_numbers(2 * ends)
            getattr(ring, f"Neighbor_{name}")(given, got)
            again = -_numbers(2 * ends)
            getattr(ring, f"Ineighbor_{name}")(given, again).Wait()
            started = -_numbers(2 * ends)
            request = getattr(ring, f"Neighbor_{name}_init")(given, started)
            for _ in range(2):
                request.Start()
                request.Wait()
            assert got.tolist() == again.tolist() == started.tolist()
            found.append(got.tolist())
    graph = comm.Create_dist_graph_adjacent([0, 0, 0], [0, 0, 0])
    got = -_numbers(3)
    graph.Neighbor_alltoall(_numbers(3), got)
    return [*found, got.tolist()]


def test_edges() -> None:
    (found,) = virtual(1, edges, coll="self,basic").results
    assert found == virtual(1, edges, coll="basic").results[0]
    assert found[0] == [3, 4, 1, 2]
    assert found[2] == [-1, -2, -3, -4]


def one_end(process: RankProcess) -> int:
    graph = world_of(process).Create_dist_graph_adjacent([0], [0, 0])
    graph.Set_errhandler(MPI.ERRORS_RETURN)
    with pytest.raises(MPI.Exception) as said:
        graph.Neighbor_allgather(_numbers(1), -_numbers(1))
    return said.value.Get_error_class()


def test_an_edge_with_one_end() -> None:
    assert virtual(1, one_end, coll="self,basic").results == [MPI.ERR_TOPOLOGY]
