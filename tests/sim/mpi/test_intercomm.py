"""Communicators between two groups: making them, who is in them, messages between the groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.data.errors import MPIError
from ompy.mpi.communicators.between import create_by
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.test_between import Side, between
from tests.support.worlds import virtual

BTL = "self,tcp"


def run(ranks: int, low: int, body: Callable[[Any, Side], Any], **settings: Any) -> list[Any]:
    """What each rank's body gives, called with the communicator."""

    def program(process: RankProcess) -> Any:
        return body(*between(world_of(process), low))

    return virtual(ranks, program, **{"btl": BTL, **settings}).results


def ranks_in_world(comm: Any, group: Any) -> list[int]:
    return [proc.rank for proc in group._state().procs] if comm else []


def test_who_is_in_it() -> None:
    def body(comm: Any, side: Side) -> None:
        assert comm.is_inter
        assert not comm.is_intra
        assert (comm.rank, comm.size) == (side.place, len(side.own))
        assert comm.Get_size() == comm.size
        assert comm.remote_size == comm.Get_remote_size() == len(side.other)
        assert ranks_in_world(comm, comm.group) == side.own
        assert ranks_in_world(comm, comm.remote_group) == side.other
        assert type(MPI.Comm(comm)) is MPI.Comm
        for kind, other in ((MPI.Intracomm, comm), (MPI.Intercomm, comm.Merge())):
            with pytest.raises(TypeError):
                kind(other)

    run(5, 2, body)


@pytest.mark.parametrize("leaders", [(0, 0), (1, 2), (1, 0)])
@pytest.mark.parametrize("pml", ["ob1", "bfo"])
def test_any_leaders(leaders: tuple[int, int], pml: str) -> None:
    def program(process: RankProcess) -> list[int]:
        comm, _ = between(world_of(process), 2, leaders)
        return comm.allgather(comm.rank)

    results = virtual(5, program, btl=BTL, pml=pml).results
    assert results == [[0, 1, 2]] * 2 + [[0, 1]] * 3


def test_messages_name_ranks_of_the_other_group() -> None:
    def body(comm: Any, side: Side) -> None:
        mine, came = np.full(4, side.rank), np.zeros(4, int)
        for place, rank in enumerate(side.other):
            comm.Sendrecv(mine, place, 3, came, place, 3)
            assert (came == rank).all()
        status = MPI.Status()
        comm.send(side.rank, dest=0, tag=side.place)
        if side.place == 0:
            found = set()
            for _ in side.other:
                comm.probe(MPI.ANY_SOURCE, MPI.ANY_TAG, status)
                source = status.source
                found.add((source, comm.recv(source=source, status=status), status.tag))
            assert found == {(place, rank, place) for place, rank in enumerate(side.other)}
        with pytest.raises(MPI.Exception) as raised:
            comm.send(None, dest=len(side.other))
        assert raised.value.Get_error_class() == MPI.ERR_RANK

    run(5, 2, body)
    run(5, 2, body, btl="self,sm")


@pytest.mark.parametrize(("of_low", "of_high"), [(0, 1), (1, 0), (0, 0), (1, 1)])
def test_merge(of_low: int, of_high: int) -> None:
    """The group that is not high comes first; when both say the same, that of lower ranks."""

    def body(comm: Any, side: Side) -> list[int]:
        merged = comm.Merge(of_low if side.rank < 3 else of_high)
        assert type(merged) is MPI.Intracomm
        return merged.allgather(side.rank)

    order = [3, 4, 0, 1, 2] if (of_low, of_high) == (1, 0) else [0, 1, 2, 3, 4]
    assert run(5, 3, body) == [order] * 5


def test_merge_of_a_group_that_does_not_agree() -> None:
    def body(comm: Any, side: Side) -> int:
        with pytest.raises(MPI.Exception) as raised:
            comm.Merge(side.rank == 1)
        return raised.value.Get_error_class()

    assert set(run(4, 2, body)) == {MPI.ERR_ARG}


def test_duplicates_are_apart_and_have_the_attributes() -> None:
    def body(comm: Any, side: Side) -> None:
        key = MPI.Comm.Create_keyval(copy_fn=lambda _comm, _key, value: value + 1)
        comm.Set_attr(key, side.rank)
        again = comm.Dup()
        assert type(again) is MPI.Intercomm
        assert again.Get_attr(key) == side.rank + 1
        assert MPI.Comm.Compare(comm, again) == MPI.CONGRUENT
        assert MPI.Comm.Compare(comm, comm) == MPI.IDENT
        assert MPI.Comm.Compare(comm, comm.Merge()) == MPI.UNEQUAL
        comm.isend("first", dest=0).wait()
        again.isend("second", dest=0).wait()
        if side.place == 0:
            for source in range(len(side.other)):
                assert again.recv(source=source) == "second"
                assert comm.recv(source=source) == "first"
        again.Free()
        assert not again

    run(4, 1, body)


def test_split() -> None:
    """By colour and key on both sides; nothing where the other group lacks the colour."""

    def body(comm: Any, side: Side) -> Any:
        # colours: 0 of ranks 0, 2, 4, 6; 1 of ranks 1, 3, 5; rank 7 has one that nobody else has
        color = 5 if side.rank == 7 else side.rank % 2
        made = comm.Split(color, -side.rank)
        if made == MPI.COMM_NULL:
            return None
        assert type(made) is MPI.Intercomm
        return made.allgather(side.rank), ranks_in_world(made, made.group)

    low = {0: [2, 0], 1: [1]}
    high = {0: [6, 4], 1: [5, 3]}
    expected = [(high[rank % 2], low[rank % 2]) for rank in range(3)]
    expected += [(low[rank % 2], high[rank % 2]) for rank in range(3, 7)]
    assert run(8, 3, body) == [*expected, None]


def test_split_without_a_colour_and_by_what_is_shared() -> None:
    def body(comm: Any, side: Side) -> int:
        assert comm.Split(MPI.UNDEFINED) == MPI.COMM_NULL
        assert comm.Split_type(MPI.UNDEFINED) == MPI.COMM_NULL
        shared = comm.Split_type(MPI.COMM_TYPE_SHARED)
        with pytest.raises(MPI.Exception) as raised:
            comm.Split(-5)
        assert raised.value.Get_error_class() == MPI.ERR_ARG
        return shared.remote_size if shared else 0

    assert run(4, 1, body, btl="self,sm") == [3, 1, 1, 1]


def test_create_of_some() -> None:
    def body(comm: Any, side: Side) -> Any:
        wanted = comm.group.Incl([len(side.own) - 1, 0] if len(side.own) > 1 else [0])
        made = comm.Create(wanted)
        nobody = comm.Create(MPI.GROUP_EMPTY if side.rank == 0 else comm.group)
        assert nobody == MPI.COMM_NULL
        with pytest.raises(MPI.Exception) as raised:
            comm.Create(comm.remote_group)
        assert raised.value.Get_error_class() == MPI.ERR_GROUP
        return made.allgather(side.rank) if made else None

    assert run(4, 1, body) == [[3, 1], [0], None, [0]]


@pytest.mark.parametrize("wrong", ["leader", "remote", "itself", "null"])
def test_leaders_that_cannot_be(wrong: str) -> None:
    """Every member of that group gets the error, and is not left waiting."""

    def program(process: RankProcess) -> int:
        world = world_of(process)
        local = world.Split(0)
        peer = MPI.COMM_NULL if wrong == "null" else world
        here = 9 if wrong == "leader" else 1
        there = {"remote": 9, "itself": 1}.get(wrong, 0)
        with pytest.raises(MPI.Exception) as raised:
            local.Create_intercomm(here, peer, there)
        local.Free()
        return raised.value.Get_error_class()

    expected = MPI.ERR_COMM if wrong == "null" else MPI.ERR_RANK
    assert virtual(3, program, btl=BTL).results == [expected] * 3


def test_groups_that_share_a_process() -> None:
    """Only two threads of a process can come to that: here the leaders just say so."""

    class Leaders:
        tag = -9

        def ask(self, said: bytes) -> tuple[list[bytes], list[bytes]]:
            return [said], [(1).to_bytes(8, "little"), (0).to_bytes(8, "little")]

    def program(process: RankProcess) -> int:
        world = world_of(process)
        with pytest.raises(MPIError, match="rank 0 .* is in both groups"):
            create_by(world._state(), Leaders())
        return world.allreduce(1)

    assert virtual(2, program, btl=BTL).results == [2, 2]


def test_windows_are_of_one_group() -> None:
    def body(comm: Any, _side: Side) -> int:
        with pytest.raises(MPI.Exception) as raised:
            MPI.Win.Allocate(8, comm=comm)
        return raised.value.Get_error_class()

    assert set(run(2, 1, body)) == {MPI.ERR_COMM}


def test_nothing_is_in_place() -> None:
    def body(comm: Any, side: Side) -> None:
        room = np.zeros(len(side.other))
        for call, arguments in (
            (comm.Allgather, (MPI.IN_PLACE, room)),
            (comm.Alltoall, (MPI.IN_PLACE, room)),
            (comm.Allreduce, (MPI.IN_PLACE, room)),
            (comm.Reduce_scatter_block, (MPI.IN_PLACE, room)),
        ):
            with pytest.raises(MPI.Exception) as raised:
                call(*arguments)
            assert raised.value.Get_error_class() == MPI.ERR_BUFFER
        for root in (len(side.other), -3):
            with pytest.raises(MPI.Exception) as raised:
                comm.bcast(None, root)
            assert raised.value.Get_error_class() == MPI.ERR_ROOT

    run(3, 1, body)


def test_operations_of_users_are_called_in_the_order_of_ranks() -> None:
    """On buffers and objects; matrices, whose product does not commute."""

    def product(left: memoryview, right: memoryview, _datatype: Any) -> None:
        a = np.frombuffer(left, "i8").reshape(-1, 2, 2)
        b = np.frombuffer(right, "i8").reshape(-1, 2, 2)
        b[:] = a @ b

    def matrix(rank: int) -> np.ndarray:
        return np.array([[1, rank + 1], [rank, 1]], "i8")

    def body(comm: Any, side: Side) -> None:
        kind = MPI.INT64_T.Create_contiguous(4).Commit()
        op = MPI.Op.Create(product, commute=False)
        expected = np.linalg.multi_dot([matrix(r) for r in side.other] + [np.eye(2, dtype="i8")])
        mine, came = matrix(side.rank), np.zeros((2, 2), "i8")
        comm.Allreduce([mine, 1, kind], [came, 1, kind], op)
        assert (came == expected).all()
        text = comm.allreduce(str(side.rank), lambda left, right: left + right)
        assert text == "".join(map(str, side.other))

    run(6, 3, body)


def test_between_two_that_are_between() -> None:
    """The groups of one are those of another; its members meet in one of both."""

    def body(comm: Any, side: Side) -> list[int]:
        merged = comm.Merge(side.rank >= 3)
        halves = merged.Split(merged.rank % 2)
        again = halves.Create_intercomm(0, merged, 1 - merged.rank % 2)
        assert again.remote_size == 3
        return again.allgather(side.rank)

    assert run(6, 3, body) == [[1, 3, 5], [0, 2, 4]] * 3
