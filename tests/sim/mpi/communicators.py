"""Programs of one rank each: making communicators, and what belongs to them."""

from __future__ import annotations

from typing import Any

import pytest
from ompy.data.constants import PROC_NULL, UNDEFINED
from ompy.data.errors import (
    ERR_COMM,
    ERR_DIMS,
    ERR_GROUP,
    ERR_KEYVAL,
    ERR_OTHER,
    ERR_RANK,
    ERR_TOPOLOGY,
)
from ompy.mpi import constants
from ompy.mpi.communicators.cartesian import Cartcomm, Compute_dims
from ompy.mpi.communicators.comm import COMM_NULL, Comm
from ompy.mpi.communicators.group import GROUP_EMPTY, Group
from ompy.mpi.communicators.intracomm import Intracomm
from ompy.mpi.communicators.predefined_comms import self_of, world_of
from ompy.mpi.errhandler import ERRORS_RETURN
from ompy.mpi.errors import MPIException
from ompy.mpi.info import Info
from ompy.runtime.ranks.process import RankProcess


def number(comm: Comm) -> int:
    """A communicator's context id."""
    return comm._state().communicator.context_id


def duplicates(process: RankProcess) -> None:
    """All members agree on the context id; traffic stays apart; ids are used in turn."""
    comm = world_of(process)
    first, second = comm.Dup(), comm.Dup()
    assert (
        comm.allgather((number(first), number(second)))
        == [(number(first), number(second))] * comm.size
    )
    assert len({number(comm), number(first), number(second)}) == 3
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    requests = [c.isend(c.name, right) for c in (second, comm, first)]
    assert [c.recv(source=left) for c in (first, comm, second)] == [
        first.name,
        "MPI_COMM_WORLD",
        second.name,
    ]
    for request in requests:
        request.wait()
    kept = number(first)
    first.Free()
    assert first == COMM_NULL
    comm.barrier()
    again = comm.Dup()
    assert number(again) != kept, "a late message for the freed one must not meet the new one"
    for each in (again, second):
        each.Free()
    for call in (first.barrier, first.Dup, first.Free, first.Get_rank):
        with pytest.raises(MPIException) as caught:
            call()
        assert caught.value.Get_error_class() == ERR_COMM


def ids_differ_between_members(process: RankProcess) -> None:
    """Members whose free ids differ find one that is free in all of them."""
    comm = world_of(process)
    own = self_of(process)
    private = [own.Dup() for _ in range(comm.rank * 2)]
    shared = comm.Dup()
    ids = comm.allgather(number(shared))
    assert len(set(ids)) == 1
    assert ids[0] not in {number(each) for each in private}
    assert shared.allreduce(1) == comm.size
    for each in (*private, shared):
        each.Free()


def splits(process: RankProcess) -> None:
    """Colours, keys that turn the order around, and none at all."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    turned = comm.Split(0, -rank)
    assert turned.rank == size - 1 - rank
    assert turned.allgather(rank) == list(reversed(range(size)))
    parity = comm.Split(rank % 2)
    assert parity.allgather(rank) == list(range(rank % 2, size, 2))
    some = comm.Split(UNDEFINED if rank == 0 else 1)
    assert (some == COMM_NULL) == (rank == 0)
    if some:
        assert some.size == size - 1
    host = comm.Split_type(constants.COMM_TYPE_SHARED)
    assert host.size == size
    assert comm.Split_type(UNDEFINED) == COMM_NULL
    with pytest.raises(MPIException):
        comm.Split(-1)
    assert type(turned) is Intracomm


def made_again_and_again(process: RankProcess) -> None:
    """With memory for the agreement and before there is any, whatever ids are free."""
    comm, own = world_of(process).Dup(), self_of(process)
    rank, size = comm.rank, comm.size
    kept = []
    for turn in range(14):
        if turn % 5 == rank % 5:
            kept.append(own.Dup())  # ids that are free elsewhere are not here
        copy = comm.Dup()
        part = comm.Split(rank % 3, -rank)
        last = comm.Split(0 if rank == size - 1 else UNDEFINED)
        turned = comm.Create(comm.Get_group().Incl(range(size - 1, -1, -1)))
        assert (last == COMM_NULL) == (rank < size - 1)
        assert turned.rank == size - 1 - rank
        assert part.allgather(rank) == [r for r in range(size - 1, -1, -1) if r % 3 == rank % 3]
        ids = comm.allgather((number(copy), number(turned), number(part)))
        assert {pair[:2] for pair in ids} == {ids[0][:2]}
        assert len({ids[r][2] for r in range(rank % 3, size, 3)}) == 1
        for made in (copy, part, turned, *([last] if last else [])):
            made.Free()
    for made in (*kept, comm):
        made.Free()


def groups(process: RankProcess) -> None:
    """Set operations on groups, and communicators of them."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    group = comm.Get_group()
    backwards = group.Incl(list(reversed(range(size))))
    assert backwards.rank == size - 1 - rank
    assert group.Translate_ranks(range(size), backwards) == list(reversed(range(size)))
    assert group.Translate_ranks([PROC_NULL], backwards) == [PROC_NULL]
    expected = constants.IDENT if size == 1 else constants.SIMILAR
    assert group.Compare(backwards) == expected
    even = group.Range_incl([(0, size - 1, 2)])
    for far in ((0, 1 << 60, 1), (1 << 62, 0, -1), (-1, size - 1, 1), (0, -3, -1)):
        with pytest.raises(MPIException) as caught:
            group.Range_excl([far])
        assert caught.value.code == ERR_RANK
    assert group.Range_incl([(0, 1 << 62, 1 << 63)]).size == 1
    odd = Group.Difference(group, even)
    assert Group.Union(even, odd).size == size
    assert Group.Intersection(even, odd) == GROUP_EMPTY
    assert odd.Translate_ranks(None, even) == [UNDEFINED] * odd.size
    made = comm.Create(even)
    assert bool(made) == (rank % 2 == 0)
    if made:
        assert made.allgather(rank) == list(range(0, size, 2))
    if rank % 2 == 0:
        only = comm.Create_group(even, tag=5)
        assert only.Compare(made) == constants.CONGRUENT
        only.Free()
    mirrored = comm.Create(backwards)
    assert mirrored.rank == size - 1 - rank
    stranger = self_of(process).Create(self_of(process).Get_group())
    if size > 1:
        with pytest.raises(MPIException) as caught:
            stranger.Create(group)
        assert caught.value.Get_error_class() == ERR_GROUP
        with pytest.raises(MPIException, match="does not exist"):
            group.Incl([size])


def attributes(process: RankProcess) -> None:
    """Keys with copy and delete functions; what every communicator knows."""
    comm = world_of(process)
    deleted: list[Any] = []
    copied = Comm.Create_keyval(True, lambda _c, _k, value: deleted.append(value))
    doubled = Comm.Create_keyval(lambda _c, _k, value: value * 2)
    dropped = Comm.Create_keyval(lambda _c, _k, _v: NotImplemented)
    comm = comm.Dup()
    for key in (copied, doubled, dropped):
        comm.Set_attr(key, 21)
    twin = comm.Dup()
    assert [twin.Get_attr(key) for key in (copied, doubled, dropped)] == [21, 42, None]
    twin.Set_attr(copied, 22)
    assert deleted == [21]
    twin.Free()
    assert deleted == [21, 22]
    comm.Delete_attr(copied)
    assert deleted == [21, 22, 21]
    assert comm.Get_attr(copied) is None
    comm.Delete_attr(copied)  # there is none: nothing, as in MPICH
    assert deleted == [21, 22, 21]
    assert Comm.Free_keyval(copied) == constants.KEYVAL_INVALID
    with pytest.raises(MPIException) as caught:
        comm.Get_attr(copied)
    assert caught.value.Get_error_class() == ERR_KEYVAL
    assert comm.Get_attr(constants.TAG_UB) == 2**31 - 1
    assert comm.Get_attr(constants.UNIVERSE_SIZE) >= comm.size
    info = Info.Create({"hint": "yes"})
    hinted = comm.Dup(info)
    assert hinted.Get_info().Get("hint") == "yes"


def error_handlers(process: RankProcess) -> None:
    """A handler is told before the exception is raised; it belongs to one communicator."""
    comm = world_of(process).Dup()
    heard: list[tuple[bool, int]] = []
    handler = Comm.Create_errhandler(lambda c, code: heard.append((c == comm, code)))
    spare = [Comm.Create_errhandler(lambda *_: None) for _ in range(20)]  # on every rank
    comm.Set_errhandler(handler)
    with pytest.raises(MPIException):
        comm.send(1, comm.size)
    comm.Call_errhandler(ERR_OTHER)
    assert heard == [(True, 6), (True, ERR_OTHER)]
    assert world_of(process).Get_errhandler() == ERRORS_RETURN
    assert len(spare) == 20
    handler.Free()


def grids(process: RankProcess) -> None:
    """Coordinates, shifts with and without wrapping, and parts of a grid."""
    comm = world_of(process)
    rank, size = comm.rank, comm.size
    dims = Compute_dims(size, 2)
    grid = comm.Create_cart(dims, [True, False])
    assert type(grid) is Cartcomm
    assert grid.Get_topo() == (dims, [1, 0], grid.Get_coords(grid.rank))
    row, column = grid.coords
    assert row * dims[1] + column == grid.rank
    assert grid.Get_cart_rank([row + dims[0], column]) == grid.rank
    source, target = grid.Shift(0, 1)
    assert target == ((row + 1) % dims[0]) * dims[1] + column
    assert grid.sendrecv(rank, target, 0, None, source, 0) == source
    source, target = grid.Shift(1, 1)
    assert source == (PROC_NULL if column == 0 else grid.rank - 1)
    assert target == (PROC_NULL if column == dims[1] - 1 else grid.rank + 1)
    with pytest.raises(MPIException, match="outside"):
        grid.Get_cart_rank([0, dims[1]])
    line = grid.Sub([False, True])
    assert (line.dims, line.periods, line.size) == ([dims[1]], [0], dims[1])
    assert line.allgather(rank) == [row * dims[1] + c for c in range(dims[1])]
    small = comm.Create_cart([1], periods=True)
    assert bool(small) == (rank == 0)
    twin = grid.Dup()
    assert (type(twin), twin.dims) == (Cartcomm, dims)
    with pytest.raises(MPIException) as caught:
        comm.Create_cart([size + 1])
    assert caught.value.Get_error_class() == ERR_DIMS
    with pytest.raises(TypeError):
        Cartcomm(comm)
    plain = Intracomm(grid)
    with pytest.raises(MPIException) as caught:
        Cartcomm._grid(comm)  # type: ignore[arg-type]
    assert caught.value.Get_error_class() == ERR_TOPOLOGY
    assert plain == grid


def subclasses(process: RankProcess) -> None:
    """A subclass stays what it is when it is duplicated."""

    class Mine(Intracomm):
        def __new__(cls, comm: Any = None) -> Any:
            return super().__new__(cls, comm.Clone() if comm else None)

        def irecv(self, *_: Any, **__: Any) -> Any:
            raise AssertionError("our own calls do not go through what a user overrides")

        Wait = Isendrecv = irecv

    mine = Mine(world_of(process))
    assert type(mine.Dup()) is Mine
    assert mine.sendrecv(1, mine.rank, 0, None, mine.rank) == 1
    room = bytearray(1)
    mine.Sendrecv(b"x", mine.rank, 0, room, mine.rank)
    assert room == b"x"


PROGRAMS = (
    "duplicates",
    "ids_differ_between_members",
    "splits",
    "made_again_and_again",
    "groups",
    "attributes",
    "error_handlers",
    "grids",
    "subclasses",
)
