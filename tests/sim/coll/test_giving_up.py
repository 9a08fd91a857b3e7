"""A member whose part in a collective fails for a reason of its own, and which lives on.

Its operation raises, or what it gives cannot be sent. It gets its own exception, the others end
with an error that says so or with the right result, and the communicator serves the next call.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from ompy import MPI
from ompy.frameworks.collectives.call_order import TAG_NUMBER
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess
from ompy_components.pml.ob1.departures.abandoning import STALE

from tests.support.effort import THOROUGH, effort
from tests.support.worlds import virtual


class UserError(Exception):
    """What the program itself raises."""


class Unsendable:
    """An object that cannot be pickled."""

    def __reduce__(self) -> str:
        raise UserError("this object cannot be sent")


def add_or_fail(failing: bool) -> Callable[[Any, Any], Any]:
    """An operation on objects."""

    def add(left: Any, right: Any) -> Any:
        if failing:
            raise UserError("this operation cannot be done")
        return left + right

    return add


def given(failing: bool, value: Any) -> Any:
    """What a member gives."""
    return Unsendable() if failing else value


Call = Callable[[Any, bool], Any]  # the communicator, whether this member fails
# by name; the rank that can fail in it, None for each
CALLS: dict[str, tuple[Call, int | None]] = {
    "bcast": (lambda comm, fails: comm.bcast(given(fails, 7), root=1), 1),
    "gather": (lambda comm, fails: comm.gather(given(fails, comm.rank), root=1), None),
    "scatter": (
        lambda comm, fails: comm.scatter([given(fails, 7)] * comm.size, root=1),
        1,
    ),
    "scatter, too few": (
        lambda comm, fails: comm.scatter([7] * (comm.size - fails), root=1),
        1,
    ),
    "allgather": (lambda comm, fails: comm.allgather(given(fails, comm.rank)), None),
    "alltoall": (lambda comm, fails: comm.alltoall([given(fails, 1)] * comm.size), None),
    "alltoall, too few": (lambda comm, fails: comm.alltoall([1] * (comm.size - fails)), None),
    "reduce": (lambda comm, fails: comm.reduce(1, add_or_fail(fails), root=1), 1),
    "allreduce": (lambda comm, fails: comm.allreduce(1, add_or_fail(fails)), None),
    "allreduce, given": (lambda comm, fails: comm.allreduce(given(fails, 1), lambda *_: 1), None),
    "scan": (lambda comm, fails: comm.scan(1, add_or_fail(fails)), None),
    "exscan": (lambda comm, fails: comm.exscan(1, add_or_fail(fails)), None),
    "neighbor_allgather": (
        lambda comm, fails: comm.Create_cart([comm.size], [True]).neighbor_allgather(
            given(fails, 1)
        ),
        None,
    ),
}
REDUCTIONS = frozenset({"reduce", "allreduce", "scan", "exscan"})  # not all members combine
MATRIX = [
    (name, rank) for name, (_, only) in CALLS.items() for rank in ([0, 1] if only is None else [1])
]


CELLS = [*product((2, 5), ("sm", "tcp"))]


def attempt(comm: Any, call: Call, fails: bool) -> tuple[str, Any]:
    """What comes of a call: a result, the user's own exception, or MPI's."""
    try:
        return "ok", call(comm, fails)
    except MPI.Exception as problem:
        return ("error", problem.Get_error_class())
    except (UserError, ValueError) as problem:
        return "own", str(problem)


@pytest.mark.parametrize("seed", range(effort(1)))
@pytest.mark.parametrize(("ranks", "btl"), CELLS if THOROUGH else CELLS[1:3])
@pytest.mark.parametrize(("name", "failing"), MATRIX)
def test_others_are_told(name: str, failing: int, ranks: int, btl: str, seed: int) -> None:
    call, _ = CALLS[name]

    def program(process: RankProcess) -> tuple[str, Any, Any, Any]:
        comm = world_of(process)
        right = attempt(comm, call, fails=False)
        how, what = attempt(comm, call, fails=comm.rank == failing)
        after = comm.allreduce(comm.rank)
        return how, what, right, after

    results = virtual(ranks, program, seed=seed, btl=f"self,{btl}").results
    codes = [what if how == "error" else 0 for how, what, *_ in results]
    for rank, (how, what, right, after) in enumerate(results):
        assert right[0] == "ok"
        assert after == sum(range(ranks))
        if how == "ok":
            assert rank != failing or name in REDUCTIONS
            assert (how, what) == right
        elif rank == failing:
            assert how == "own" or "too few" in name
        else:
            assert (how, what) == ("error", codes[failing] or MPI.ERR_OTHER)


def test_an_error_is_that_of_the_member_that_failed() -> None:
    """Its own exception is what it gets itself; the other is told who failed."""

    def program(process: RankProcess) -> str:
        comm = world_of(process)
        with pytest.raises((MPI.Exception, UserError)) as raised:
            comm.allgather(given(comm.rank == 1, 1))
        return str(raised.value)

    said = virtual(2, program, btl="self,tcp").results
    assert said[1] == "this object cannot be sent"
    assert "rank 1" in said[0]
    assert "its part has failed there" in said[0]


def test_what_was_heard_is_of_one_call_only() -> None:
    """A tag comes again after many calls; then the call before it is forgotten."""
    assert STALE < TAG_NUMBER

    def program(process: RankProcess) -> Any:
        comm = world_of(process)
        order = comm._state().communicator.order
        how, _ = attempt(comm, CALLS["allgather"][0], comm.rank == 1)
        tag = order.tag()
        order.number += TAG_NUMBER  # as after so many calls: the next one has the tag of this one
        found = comm.allgather(comm.rank)
        assert order.tag() == tag
        return how, found

    assert virtual(2, program, btl="self,tcp").results == [("error", [0, 1]), ("own", [0, 1])]


def test_messages_after_that_are_not_looked_at() -> None:
    """What waits for another message of that member is not in vain: nothing is polled for it."""

    def program(process: RankProcess) -> bool:
        comm = world_of(process)
        attempt(comm, CALLS["allgather"][0], comm.rank == 1)
        comm.barrier()
        found = [comm.irecv(source=source, tag=3) for source in (1 - comm.rank, MPI.ANY_SOURCE)]
        gone = comm._state().pml.gone
        polled: bool = gone.anybody and gone._polled
        comm.barrier()
        for _ in found:
            comm.send(None, 1 - comm.rank, tag=3)
        MPI.Request.waitall(found)
        return polled

    assert virtual(2, program, btl="self,tcp", coll="basic").results == [False, False]


def _room(count: int) -> array[int]:
    return array("i", bytes(4 * count))


# buffers of 4 numbers for each member; too few or too many, where a member's are wrong
BUFFERS: dict[str, tuple[Call, int | None]] = {
    "Bcast": (lambda comm, fails: comm.Bcast([_room(4), 4 + fails, MPI.INT], root=1), 1),
    "Gather": (lambda comm, fails: comm.Gather(_room(4), _room(4 * comm.size - fails), 1), 1),
    "Scatterv": (
        lambda comm, fails: (
            comm.Scatterv([_room(4), [4] * (comm.size - fails)], _room(4), 1)
            if fails
            else comm.Scatterv([_room(4 * comm.size), [4] * comm.size], _room(4), 1)
        ),
        1,
    ),
    "Allgather": (lambda comm, fails: comm.Allgather(_room(4), _room(4 * comm.size - fails)), None),
    "Alltoall": (
        lambda comm, fails: comm.Alltoall(_room(4 * comm.size - fails), _room(4 * comm.size)),
        None,
    ),
    "Reduce": (lambda comm, fails: comm.Reduce(_room(4), _room(4 + fails), root=1), 1),
    "Allreduce": (lambda comm, fails: comm.Allreduce(_room(4), _room(4 + fails)), None),
    "Reduce_scatter": (
        lambda comm, fails: comm.Reduce_scatter(
            _room(4 * comm.size), _room(4 + fails), [4] * comm.size
        ),
        None,
    ),
    "Scan": (lambda comm, fails: comm.Scan(_room(4), _room(4 + fails)), None),
    "Neighbor_allgather": (
        lambda comm, fails: comm.Create_cart([comm.size], [True]).Neighbor_allgather(
            _room(4), _room(8 + fails)
        ),
        None,
    ),
}


BUFFERS |= {
    "Iallreduce": (lambda comm, fails: comm.Iallreduce(_room(4), _room(4 + fails)).Wait(), None),
    "Ibcast": (lambda comm, fails: comm.Ibcast([_room(4), 4 + fails, MPI.INT], root=1).Wait(), 1),
    "Create_cart": (lambda comm, fails: comm.Create_cart([99 if fails else comm.size]), None),
    "Split": (lambda comm, fails: comm.Split(-7 if fails else 0), None),
    "graph": (
        lambda comm, fails: comm.Create_dist_graph_adjacent([99 if fails else 0], [0]),
        None,
    ),
    "Win.Allocate": (lambda comm, fails: MPI.Win.Allocate(-5 if fails else 8, comm=comm), None),
}


@pytest.mark.parametrize("way", [{"btl": "self,sm"}, {"btl": "self,tcp", "coll": "tuned,basic"}])
@pytest.mark.parametrize(
    ("name", "failing"),
    [
        (name, rank)
        for name, (_, only) in BUFFERS.items()
        for rank in (0, 1)
        if only in (None, rank)
    ],
)
def test_of_wrong_buffers_others_are_told(name: str, failing: int, way: dict[str, str]) -> None:
    """Whose arguments are wrong has begun the call: nobody waits for it, and the next one goes."""
    call, _ = BUFFERS[name]

    def program(process: RankProcess) -> tuple[str, Any, Any]:
        comm = world_of(process)
        how, what = attempt(comm, call, fails=comm.rank == failing)
        return how, what, comm.allreduce(comm.rank)

    results = virtual(3, program, **way).results
    assert results[failing][0] != "ok"
    others = [result for rank, result in enumerate(results) if rank != failing]
    if name not in {"Gather", "Reduce"}:  # there they have sent, and are done
        assert ("error", MPI.ERR_OTHER) in [(how, what) for how, what, _ in others]
    assert {after for *_, after in results} == {3}
