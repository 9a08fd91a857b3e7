"""Going on after ranks have died: agreements, revocation, new communicators, errors of messages."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.effort import THOROUGH, effort
from tests.support.worlds import registry

Die = Callable[[], None]
Body = Callable[[Any, Die], Any]
BTL = "self,tcp"
EVERY_STEP = bool(os.environ.get("OMPY_EVERY_STEP"))
# every how many-th step of so many ranks a victim dies at; each victim begins with another one
EVERY = {2: 1, 3: 1, 4: 1, 5: 5}
EVERY_IN_CI = {2: 1, 3: 3, 4: 11, 5: 29}
DEAD = "dead"  # what a rank gives that died
SOON = 2_000_000_000  # ns; arbitrary: somebody looks on


def run(
    ranks: int,
    body: Body,
    *,
    deaths: Mapping[int, int] | None = None,
    seed: int = 0,
    **settings: Any,
) -> list[Any]:
    """What each rank's body gives, called with COMM_WORLD and what ends this rank.

    Ranks die in their turn of `deaths`, too.
    """
    return world(ranks, body, deaths=deaths, seed=seed, **settings)[1]


def world(
    ranks: int,
    body: Body,
    *,
    deaths: Mapping[int, int] | None = None,
    seed: int = 0,
    news_after: int = 0,
    **settings: Any,
) -> tuple[VirtualJob, list[Any]]:
    job = VirtualJob(ranks, registry(**{"btl": BTL, "mpi_ft_enable": 1, **settings}), seed=seed)
    if news_after:
        job.news_after = lambda: news_after

    def program(process: RankProcess) -> Any:
        comm = world_of(process)
        return body(comm, lambda: job.kill(process.context.rank))

    if deaths:
        job.kill_at(deaths)
    results = job.run(program)
    return job, [DEAD if rank in job.killed else result for rank, result in enumerate(results)]


def test_without_a_death() -> None:
    def body(comm: Any, die: Die) -> Any:
        flag = array("i", [7 - comm.rank])
        request = comm.Iagree(flag)
        request.Wait()
        shrunk = comm.Shrink()
        made, request = comm.Ishrink()
        assert not made
        request.Wait()
        assert made.allreduce(1) == comm.size
        assert (shrunk.rank, shrunk.size) == (comm.rank, comm.size)
        assert comm.Get_failed().size == comm.Ack_failed() == 0
        assert not comm.Is_revoked()
        shrunk.Free()
        return comm.Agree(6 | comm.rank), flag[0]

    assert run(3, body) == [(6, 7 & 6 & 5)] * 3


def error_class(call: Callable[[], object]) -> int:
    """The class of the error that a call raises, or SUCCESS."""
    try:
        call()
    except MPI.Exception as problem:
        return problem.Get_error_class()
    return MPI.SUCCESS


PML = pytest.mark.parametrize("pml", ["ob1", "bfo"])
FAILED, PENDING, REVOKED = MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_REVOKED


@PML
@pytest.mark.parametrize("news_after", [1, 1_000_000, 300_000_000])
def test_the_others_hear_of_a_death(pml: str, news_after: int) -> None:
    """Of the agents, or before that from a connection that breaks."""

    def body(comm: Any, die: Die) -> Any:
        comm.Barrier()
        if comm.rank == 1:
            die()
        room = bytearray(8)
        found = [error_class(lambda: comm.Recv(room, source=1))]
        found.append(error_class(lambda: comm.Recv(room, source=MPI.ANY_SOURCE)))
        found.append(error_class(lambda: comm.Probe(MPI.ANY_SOURCE)))
        waits = comm.Irecv(room, source=MPI.ANY_SOURCE)
        found += [error_class(waits.Wait), error_class(waits.Wait)]
        assert waits
        assert [proc.rank for proc in comm.Get_failed()._state().procs] == [1]
        found.append(error_class(lambda: comm.Agree(1)))
        assert comm.Ack_failed() == 1
        assert comm.Agree(comm.rank | 4) == 4
        ring = [0, 2, 3]
        comm.Send(b"%8d" % comm.rank, dest=ring[ring.index(comm.rank) - 1])
        waits.Wait()
        assert not waits
        return [*found, int(room)]

    told = [FAILED, FAILED, FAILED, PENDING, PENDING, FAILED]
    expected = [[*told, 2], DEAD, [*told, 3], [*told, 0]]
    assert run(4, body, pml=pml, news_after=news_after) == expected


@PML
@pytest.mark.parametrize("news_after", [1, 100_000])
@pytest.mark.parametrize("look", ["Iprobe", "Improbe"])
def test_who_looks_for_messages_hears_of_a_death(pml: str, news_after: int, look: str) -> None:
    """What the dead has sent is found before; without a death nothing is raised."""

    def body(comm: Any, die: Die) -> Any:
        comm.Barrier()
        if comm.rank == 1:
            comm.Send(b"last", dest=0)
            die()
        looked, room, seen = getattr(comm, look), bytearray(4), b""

        def look_at(source: int) -> None:
            while not looked(source=source):
                pass

        if comm.rank == 0:
            while not (found := looked(source=1)):
                pass
            comm.Recv(room, source=1) if look == "Iprobe" else found.Recv(room)
            seen = bytes(room)
        codes = [error_class(partial(look_at, source)) for source in (1, MPI.ANY_SOURCE)]
        comm.Ack_failed()
        return seen, codes, bool(looked(source=MPI.ANY_SOURCE)), bool(looked(source=2))

    expected = [FAILED, FAILED], False, False
    patience = {f"pml_{pml}_leave_patience_ms": 1}  # each look takes a moment of virtual time
    results = run(3, body, pml=pml, news_after=news_after, **patience)
    assert results == [(b"last", *expected), DEAD, (b"", *expected)]


@PML
@pytest.mark.parametrize("end", ["dies", "finalizes"])
def test_who_waits_for_one_that_is_gone_hears_of_it_soon(pml: str, end: str) -> None:
    """Also while a third rank has not finalized."""

    def body(comm: Any, die: Die) -> Any:
        comm.Barrier()
        if comm.rank == 1:
            return die() if end == "dies" else None
        return error_class(lambda: comm.Recv(bytearray(4), source=1))

    job, results = world(3, body, pml=pml)
    assert results == [FAILED, DEAD if end == "dies" else None, FAILED]
    assert job.scheduler.time < SOON


@PML
@pytest.mark.parametrize("size", [8, 200_000])
def test_revocation_ends_what_is_under_way(pml: str, size: int) -> None:
    def body(comm: Any, die: Die) -> Any:
        made = comm.Dup()
        if comm.rank == 0:
            made.Revoke()
        room = bytearray(size)
        calls = [
            lambda: made.Recv(room, source=0),
            lambda: made.Ssend(room, dest=0),
            made.Barrier,
            lambda: made.allreduce(1),
            made.Dup,
            lambda: made.Send(b"", dest=MPI.PROC_NULL),
            lambda: made.recv(source=MPI.PROC_NULL),
            lambda: made.Iallreduce(room, bytearray(size)).Wait(),
        ]
        found = [error_class(call) for call in calls[comm.rank :]]
        assert made.Is_revoked()
        assert made.Agree(3) == 3
        shrunk = made.Shrink()
        made.Free()
        return {*found}, shrunk.allreduce(1), comm.allreduce(1)

    assert run(3, body, pml=pml) == [({REVOKED}, 3, 3)] * 3


def test_who_hears_of_a_revocation_tells_the_others() -> None:
    """The first has a connection to one of them only, and dies at once."""

    def body(comm: Any, die: Die) -> Any:
        if comm.rank < 2:
            comm.sendrecv(None, 1 - comm.rank, source=1 - comm.rank)
        if comm.rank == 0:
            comm.Revoke()
            die()
        return error_class(lambda: comm.Recv(bytearray(1), source=comm.rank % 3 + 1))

    assert run(4, body) == [DEAD, REVOKED, REVOKED, REVOKED]


def recovers(comm: Any, _: Die) -> Any:
    """Revoke, Agree and Shrink, wherever a rank meets the error."""
    try:
        comm.Barrier()
    except MPI.Exception as problem:
        assert problem.Get_error_class() in {FAILED, REVOKED}, problem
        comm.Revoke()
    found = []
    while "agreed" not in found:
        try:
            assert comm.Agree(-1) == -1
            found.append("agreed")
        except MPI.Exception as problem:
            assert problem.Get_error_class() == FAILED, problem
            found.append("failed")
            comm.Ack_failed()
    return shrinks(comm, _)


def agrees(comm: Any, _: Die) -> Any:
    """Agree, twice: the second is right when all have acknowledged what the first has said."""
    found: list[Any] = []
    for number in (1, 2):
        try:
            found.append(comm.Agree(comm.rank << 4 | number))
        except MPI.Exception as problem:
            assert problem.Get_error_class() == FAILED
            found.append("failed")
            comm.Ack_failed()
    return found


class Members(NamedTuple):
    """Who is in a communicator that was made of the survivors."""

    ranks: list[int]


def shrinks(comm: Any, _: Die) -> Any:
    made = comm.Shrink()
    members = Members([proc.rank for proc in made.group._state().procs])
    assert made.size == len(members.ranks)
    return members


def revokes(comm: Any, _: Die) -> Any:
    if comm.rank == comm.size - 1:
        comm.Revoke()
    found = error_class(lambda: comm.Recv(bytearray(1), source=(comm.rank + 1) % comm.size))
    if comm.rank == comm.size - 1 or found == REVOKED:
        return found
    comm.Revoke()  # what it waited for has died
    return REVOKED if comm.Is_revoked() and found == FAILED else found


STEPS = [agrees, shrinks, revokes, recovers]


def turns_of(ranks: int, body: Body, seed: int) -> list[int]:
    """How many turns each rank has, until it has ended."""
    counted = [0] * ranks

    def count(engine: Any) -> bool:
        counted[engine.rank] += 1
        return False

    job = VirtualJob(ranks, registry(btl=BTL, mpi_ft_enable=1), seed=seed)
    job.scheduler.dies = count
    job.run(lambda process: body(world_of(process), lambda: None))
    return counted


def check_survivors(job: VirtualJob, results: list[Any]) -> None:
    """All who live have returned, and the same."""
    living = [rank for rank, result in enumerate(results) if result != DEAD]
    assert len(living) == len(results) - len(job.killed)
    found = [results[rank] for rank in living]
    assert all(result == found[0] for result in found), results
    if isinstance(found[0], Members):
        assert set(living) <= set(found[0].ranks)


@pytest.mark.parametrize("body", STEPS)
@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_every_death_at_every_step(ranks: int, body: Body) -> None:
    """Of four and five ranks a share of the steps; `OMPY_EVERY_STEP=1` takes all, for minutes."""
    turns = turns_of(ranks, body, 1)
    step = 1 if EVERY_STEP else (EVERY if THOROUGH else EVERY_IN_CI)[ranks]
    for victim, most in enumerate(turns):
        for turn in range(victim % step, most, step):
            job, results = world(ranks, body, deaths={victim: turn}, seed=1)
            assert job.killed == [victim]
            check_survivors(job, results)


@pytest.mark.parametrize("body", STEPS)
def test_several_deaths(body: Body) -> None:
    for seed in range(effort(60)):
        chance = Random(seed)
        ranks = chance.randint(3, 5)
        victims = chance.sample(range(ranks), chance.randint(1, ranks - 1))
        deaths = {victim: chance.randrange(60) for victim in victims}
        check_survivors(*world(ranks, body, deaths=deaths, seed=seed))


@pytest.mark.parametrize("victim", range(4))
def test_between_two_groups(victim: int) -> None:
    """Agree and Shrink of both groups, and of a duplicate that was made in the background."""

    def body(comm: Any, die: Die) -> Any:
        half = comm.Split(comm.rank % 2)
        between = half.Create_intercomm(0, comm, 1 - comm.rank % 2)
        other, request = between.Idup()
        request.Wait()
        if comm.rank == victim:
            die()
        found = [error_class(partial(made.Agree, 1)) for made in (between, other)]
        for made in (between, other):
            made.Ack_failed()
            found.append(made.Agree(8 | comm.rank))
        shrunk, again = between.Shrink(), other.Shrink()
        assert again.size + again.remote_size == 3
        other.Revoke()
        found.append(error_class(lambda: other.recv(source=0)))
        return found, shrunk.size + shrunk.remote_size, shrunk.Merge().allreduce(1)

    both = 15
    for rank in set(range(4)) - {victim}:
        both &= 8 | rank
    expected = ([FAILED, FAILED, both, both, REVOKED], 3, 3)
    results = run(4, body)
    assert results == [DEAD if rank == victim else expected for rank in range(4)]


def test_a_member_that_leaves_is_not_waited_for() -> None:
    """It counts as one that died: the others agree without it, and it ends when they do."""

    def body(comm: Any, die: Die) -> Any:
        if comm.rank == 0:
            return "left"
        found = [error_class(partial(comm.Agree, 1)), comm.Ack_failed(), comm.Agree(3)]
        return found, comm.Shrink().allreduce(1)

    assert run(3, body) == ["left", ([FAILED, 1, 3], 2), ([FAILED, 1, 3], 2)]


@pytest.mark.parametrize("others", ["Agree", "Iagree"])
def test_members_that_do_not_make_the_same_call_are_told(others: str) -> None:
    """After a death one may go on and another recover: the program is wrong, and hears why."""

    def body(comm: Any, die: Die) -> Any:
        if comm.rank == 1:
            call: Callable[[], object] = comm.Shrink
        elif others == "Agree":
            call = partial(comm.Agree, 1)
        else:
            call = comm.Iagree(array("i", [1])).Wait
        with pytest.raises(MPI.Exception) as caught:
            call()
        return caught.value.Get_error_class(), str(caught.value)

    results = run(3, body)
    assert {code for code, _ in results} == {MPI.ERR_OTHER}
    assert "rank 1 on host0 calls Shrink or Ishrink of MPI_COMM_WORLD" in results[0][1]
    assert "rank 0 on host0 calls Agree or Iagree of MPI_COMM_WORLD" in results[1][1]
