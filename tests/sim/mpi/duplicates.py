"""Programs of one rank each: communicators that are made in the background."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.data.errors import ERR_COMM, ERR_OTHER
from ompy.mpi.communicators.comm import COMM_NULL, Comm
from ompy.mpi.communicators.intercomm import Intercomm
from ompy.mpi.communicators.predefined_comms import self_of, world_of
from ompy.mpi.errors import MPIException
from ompy.mpi.info import Info
from ompy.mpi.point_to_point.request import Request
from ompy.runtime.ranks.process import RankProcess

ROUNDS = 8  # arbitrary: agreements that cross meet in more than one way


def number(comm: Any) -> int:
    """A communicator's context id."""
    return comm._state().communicator.context_id


def in_background(process: RankProcess) -> None:
    """Several at a time, messages and collective calls meanwhile; each is apart from all others."""
    comm = world_of(process)
    begun = [comm.Idup() for _ in range(3)]
    assert comm.allreduce(1) == comm.size
    begun += [comm.Idup(), comm.Clone().Idup()]
    made = [handle for handle, _ in begun]
    Request.Waitall([request for _, request in reversed(begun)])
    ids = [number(each) for each in made]
    assert comm.allgather(ids) == [ids] * comm.size
    assert len({number(comm), *ids}) == len(made) + 1
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    sent = [each.isend(place, right) for place, each in enumerate(made)]
    for place, each in reversed(list(enumerate(made))):
        assert each.recv(source=left) == place
        assert Comm.Compare(comm, each) != 0
        assert each.allreduce(each.rank) == sum(range(comm.size))
    Request.waitall(sent)
    for each in made:
        each.Free()


def null_until_complete(process: RankProcess) -> None:
    """The handle refers to nothing before its request is complete."""
    comm = world_of(process)
    if comm.size > 1 and comm.rank == 0:
        comm.recv(source=1)
    handle, request = comm.Idup()
    if comm.size > 1 and comm.rank == 1:
        assert not request.Test()
        assert handle == COMM_NULL
        with pytest.raises(MPIException) as caught:
            handle.barrier()
        assert caught.value.Get_error_class() == ERR_COMM
        comm.send(None, dest=0)
    with pytest.raises(MPIException):
        request.Cancel()
    request.Wait()
    handle.barrier()
    handle.Free()


def crossed(process: RankProcess) -> None:
    """Members begin duplicates of different communicators in different orders."""
    comm = world_of(process)
    parents = [comm.Dup() for _ in range(3)]
    for _ in range(ROUNDS):
        order = parents[comm.rank % 3 :] + parents[: comm.rank % 3]
        begun = {number(each): each.Idup() for each in order}
        made = [begun[number(each)] for each in parents]
        Request.Waitall([request for _, request in made])
        ids = [number(handle) for handle, _ in made]
        assert comm.allgather(ids) == [ids] * comm.size
        for handle, _ in made:
            handle.Free()


def original_freed(process: RankProcess) -> None:
    """The original may be freed at once; what was begun goes on to its end."""
    comm = world_of(process)
    original = comm.Dup()
    handle, request = original.Idup()
    original.Free()
    request.Wait()
    assert handle.allgather(handle.rank) == list(range(comm.size))
    handle.Free()


def inherited(process: RankProcess) -> None:
    """Attributes and hints are those of the moment of the call."""
    comm = world_of(process).Dup()
    key = Comm.Create_keyval(copy_fn=lambda _comm, _key, value: value + 1)
    comm.Set_attr(key, 1)
    hints = Info.Create({"color": "blue"})
    comm.Set_info(hints)
    plain, first = comm.Idup()
    other, second = comm.Idup_with_info(Info.Create({"color": "red"}))
    comm.Set_attr(key, 7)
    Request.Waitall([first, second])
    assert (plain.Get_attr(key), other.Get_attr(key)) == (2, 2)
    assert (plain.Get_info()["color"], other.Get_info()["color"]) == ("blue", "red")

    def refuses(*_: Any) -> Any:
        raise RuntimeError("on purpose")

    wrong = Comm.Create_keyval(copy_fn=refuses)
    single = self_of(process).Dup()
    single.Set_attr(wrong, 1)
    with pytest.raises(MPIException) as caught:
        single.Idup()
    assert caught.value.Get_error_class() == ERR_OTHER


def of_topologies_and_groups(process: RankProcess) -> None:
    """A duplicate has the class and the topology; between two groups it is between the same."""
    comm = world_of(process)
    grid = comm.Create_cart([comm.size], periods=[True])
    handle, request = grid.Idup()
    request.Wait()
    assert type(handle) is type(grid)
    assert handle.Get_topo() == grid.Get_topo()
    if comm.size < 2:
        return
    first = comm.rank == 0
    leader = 1 if first else 0
    inter = comm.Split(int(first), comm.rank).Create_intercomm(0, comm, leader)
    begun = [inter.Idup() for _ in range(2)]
    assert comm.allreduce(1) == comm.size
    Request.Waitall([request for _, request in begun])
    for handle, _ in begun:
        assert type(handle) is Intercomm
        assert handle.remote_size == inter.remote_size
        told = handle.allgather(comm.rank)
        assert told == (list(range(1, comm.size)) if first else [0])


PROGRAMS = (
    "in_background",
    "null_until_complete",
    "crossed",
    "original_freed",
    "inherited",
    "of_topologies_and_groups",
)
