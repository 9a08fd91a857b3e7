"""One member of two groups that make a communicator is wrong, and both go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.mistakes import outcome
from tests.support.worlds import virtual

TAG = 5
RANKS = 4
# what a member gives: local leader, communicator of the leaders, remote leader, tag; None: rightly
MISTAKES: dict[str, tuple[Any, Any, Any, Any]] = {
    "local leader": (99, None, None, None),
    "negative leader": (-1, None, None, None),
    "no local leader": ("x", None, None, None),
    "no communicator": (None, 3, None, None),
    "null communicator": (None, MPI.COMM_NULL, None, None),
    "remote leader": (None, None, 77, None),
    "no remote leader": (None, None, "x", None),
    "itself": (None, None, "me", None),
    "tag": (None, None, None, -5),
    "no tag": (None, None, None, "x"),
}
LEADS_ALONE = ("null communicator", "remote leader", "itself")  # only leaders look at that


def arguments(comm: Any, mistake: tuple[Any, Any, Any, Any] | None) -> tuple[Any, ...]:
    """Those of a `Create_intercomm` of the even ranks and the odd ones."""
    right = (0, comm, 1 - comm.rank % 2, TAG)
    given = mistake or (None,) * 4
    mine = [comm.rank if value == "me" else value for value in given]
    return tuple(
        other if value is None else value for value, other in zip(mine, right, strict=True)
    )


def connect(group: Any, given: tuple[Any, ...]) -> str:
    """Make a communicator, and see that it works."""

    def call(given: Any) -> None:
        made = group.Create_intercomm(*given)
        total = made.allreduce(made.rank + 1)
        assert total == sum(range(made.remote_size + 1))
        made.Free()

    return outcome(call, given)


def job(mistake: str, wrong: int, turns: int, *, apart: bool) -> Callable[[RankProcess], list[str]]:
    """Connect the groups `turns` times; every second time a member is wrong."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        group = comm.Split(comm.rank % 2, comm.rank)
        found = []
        for turn in range(turns):
            is_wrong = comm.rank == wrong and turn % 2
            given = arguments(comm, MISTAKES[mistake] if is_wrong else None)
            found.append(connect(group, given))
            if apart:
                assert comm.allreduce(1) == RANKS
        return found

    return program


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("wrong", range(RANKS))
def test_both_groups_hear_of_it(btl: str, mistake: str, wrong: int) -> None:
    results = virtual(RANKS, job(mistake, wrong, 5, apart=True), btl=btl, seed=wrong).results
    for rank, found in enumerate(results):
        assert [found[0], found[2], found[4]] == ["ok"] * 3
        for said in (found[1], found[3]):
            if mistake in LEADS_ALONE and wrong >= 2:
                assert said == "ok"
                continue
            assert said != "ok"
            if rank == wrong:
                continue
            assert said.startswith("MPI ")
            assert f"rank {wrong}" in said or f"rank {wrong // 2}" in said
            assert "Create_intercomm" in said


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("wrong", range(2))
def test_the_other_group_hears_why(mistake: str, wrong: int) -> None:
    results = virtual(RANKS, job(mistake, wrong, 2, apart=True), btl="self,tcp").results
    why = results[wrong][1].partition(": ")[2]
    for rank in range(RANKS):
        if rank % 2 != wrong % 2:
            said = results[rank][1]
            assert f"rank {wrong} on host0 takes no part in Create_intercomm" in said
            assert why.rpartition(": ")[2] in said


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("wrong", range(RANKS))
@pytest.mark.parametrize("seed", range(2))
def test_nobody_waits_for_ever_where_nothing_keeps_the_groups_together(
    mistake: str, wrong: int, seed: int
) -> None:
    """Where a leader cannot know whom to tell, its next call may be taken for this one."""
    results = virtual(RANKS, job(mistake, wrong, 6, apart=False), btl="self,tcp", seed=seed).results
    for found in results:
        assert all(said == "ok" or said.startswith(("MPI", "TypeError")) for said in found), found
    assert "ok" not in {results[wrong][turn] for turn in (1, 3, 5)} or (
        mistake in LEADS_ALONE and wrong >= 2
    )


def test_two_leaders_are_wrong_at_once() -> None:
    """One of them cannot know whom it was to tell, and hears of the other at its next call."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        group = comm.Split(comm.rank, 0)
        found = []
        for turn in range(4):
            kinds = ("tag", "local leader") if turn == 1 else (None, None)
            kind = kinds[comm.rank]
            found.append(connect(group, arguments(comm, MISTAKES[kind] if kind else None)))
            comm.Barrier()
        return found

    for found in virtual(2, program, btl="self,sm").results:
        assert [found[0], found[3]] == ["ok"] * 2
        assert all(said.startswith("MPI ") for said in found[1:3])


def test_a_leader_of_several_groups_tells_the_right_one() -> None:
    """It is wrong about whom it talks to, goes on with the next, and is asked by the first."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        group = comm.Split(comm.rank, 0)
        found = []
        for others in ((99, 2, 3), (1, 2, 3)):
            targets = others if comm.rank == 0 else (0,)
            found += [connect(group, (0, comm, other, TAG)) for other in targets]
            comm.Barrier()
        return found

    results = virtual(4, program, btl="self,sm").results
    assert results[0][0].startswith(f"MPI {MPI.ERR_RANK}")
    assert results[0][1:] == ["ok"] * 5
    assert "takes no part" in results[1][0]
    assert [results[1][1], *results[2], *results[3]] == ["ok"] * 5


GROUPS: dict[str, tuple[Any, ...]] = {
    "no group": (3, None, None, None, None),
    "null group": (MPI.GROUP_NULL, None, None, None, None),
    "local leader": (None, 55, None, None, None),
    "no local leader": (None, "x", None, None, None),
    "no other group": (None, None, 4, None, None),
    "remote leader": (None, None, None, 55, None),
    "no tag": (None, None, None, None, 7),
    "tag": (None, None, None, None, "a\0b"),
}


@pytest.mark.parametrize("mistake", GROUPS)
@pytest.mark.parametrize("wrong", range(3))
def test_groups_of_the_world_hear_of_it(mistake: str, wrong: int) -> None:
    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        whole = comm.Get_group()
        sides = [whole.Incl([0, 2]), whole.Incl([1])]
        mine = comm.rank % 2
        found = []
        for turn in range(4):
            right = (sides[mine], 0, sides[1 - mine], 0, "tests")
            is_wrong = comm.rank == wrong and turn % 2
            mistaken = GROUPS[mistake] if is_wrong else (None,) * 5
            given = [a if b is None else b for a, b in zip(right, mistaken, strict=True)]
            made = lambda given: MPI.Intercomm.Create_from_groups(*given).Free()  # noqa: E731
            found.append(outcome(made, given))
            assert comm.allreduce(1) == 3
        return found

    for rank, found in enumerate(virtual(3, program, btl="self,tcp").results):
        assert [found[0], found[2]] == ["ok"] * 2
        for said in (found[1], found[3]):
            assert said != "ok"
            assert rank == wrong or said.startswith(f"MPI {MPI.ERR_OTHER}: "), said


@pytest.mark.parametrize("wrong", range(4))
@pytest.mark.parametrize("given", [3, None, "a\0b"])
def test_a_group_hears_of_a_tag_that_is_none(wrong: int, given: Any) -> None:
    """Nobody knows which call that was: it is the one that the others ask about."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        found = []
        for turn in range(4):
            tag = given if comm.rank == wrong and turn % 2 else f"call {turn}"
            made = lambda tag: MPI.Intracomm.Create_from_group(  # noqa: E731
                comm.Get_group(), tag
            ).Free()
            found.append(outcome(made, tag))
            assert comm.allreduce(1) == 4
        return found

    for rank, found in enumerate(virtual(4, program, btl="self,sm").results):
        assert [found[0], found[2]] == ["ok"] * 2
        for said in (found[1], found[3]):
            assert said.startswith(
                ("TypeError", "ValueError") if rank == wrong else f"MPI {MPI.ERR_OTHER}: "
            )


@pytest.mark.parametrize("btl", ["self,sm", "self,tcp"])
def test_messages_of_a_group_that_failed_are_not_taken_for_the_next(btl: str) -> None:
    """Members propose other numbers each time: one that is out of date would never be agreed on."""

    def program(process: RankProcess) -> list[str]:
        comm = world_of(process)
        group, kept, found = comm.Get_group(), [], []
        for turn in range(6):
            if comm.rank == turn % 4:
                kept.append(MPI.COMM_SELF.Dup())  # so that the proposals differ
            given = None if comm.rank == 2 and turn % 2 else group
            found.append(outcome(lambda given: kept.append(comm.Create_group(given, 5)), given))
            comm.Barrier()
        for made in kept:
            made.Free()
        return found

    for found in virtual(4, program, btl=btl).results:
        assert [found[0], found[2], found[4]] == ["ok"] * 3
        assert "ok" not in {found[1], found[3], found[5]}
