"""Members that make different collective calls: every pair of calls there is.

Never wrong data, never all of it as if nothing were wrong: a member gets an error, or the accounts
that the launcher compares differ. The calls come from the API's own list of them, so that a new one
enters by itself.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
from ompy import MPI
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.runtime.diagnosis.call_account import account, complaint
from ompy.runtime.ranks.process import RankProcess

from tests.sim.coll.every_call import IN_WINDOWS, every_call, pairs
from tests.support.effort import THOROUGH
from tests.support.worlds import virtual

CALLS = every_call()
WAYS = {
    "sm": {"btl": "self,sm"},
    "tuned": {"btl": "self,sm", "coll": "tuned,basic"},
    "basic-tcp": {"btl": "self,tcp", "coll": "basic"},
}
# a world each: all pairs in one would keep thousands of communicators
SHARES = 40 if THOROUGH else 80
TAKEN = range(SHARES) if THOROUGH else range(1)  # the nightly run has all pairs
LATE = 2_000_000  # ns; arbitrary: long after the other has made its call


def _attempt(process: RankProcess, name: str, comm: Any) -> tuple[str, Any]:
    try:
        return "ok", CALLS[name](comm)
    except MPI.Exception as problem:
        return "error", str(problem)


def run(way: str, chosen: list[tuple[str, str]], late: int) -> list[list[tuple]]:
    """Make each pair of calls in a communicator of its own; what came of it, and the accounts."""

    def program(process: RankProcess) -> list[tuple]:
        world, found = world_of(process), []
        for pair in chosen:
            comm = world.Create_cart([2])
            if world.rank == late:
                process.context.engine.spend(LATE)
            outcome = _attempt(process, pair[world.rank], comm)
            world.Barrier()  # who is done answers here who is not
            inner = comm._state().communicator
            found.append((*outcome, account([inner], 0)))
        return found

    return virtual(2, program, **WAYS[way]).results


@cache
def matched(way: str) -> dict[str, list[Any]]:
    """What each call gives when all members make it."""
    names = list(CALLS)
    results = run(way, [(name, name) for name in names], 0)
    for outcomes in zip(names, *results, strict=True):
        assert {each[0] for each in outcomes[1:]} == {"ok"}, outcomes
        said = complaint({rank: each[2] for rank, each in enumerate(outcomes[1:])})
        assert not said, outcomes
    return {
        name: [each[1] for each in outcomes]
        for name, *outcomes in zip(names, *results, strict=True)
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("share", TAKEN)
def test_every_pair(way: str, late: int, share: int) -> None:
    chosen = pairs()
    Random(f"{way} {late}").shuffle(chosen)
    chosen = chosen[share::SHARES]
    right = matched(way)
    for pair, *outcomes in zip(chosen, *run(way, chosen, late), strict=True):
        errors = [each[1] for each in outcomes if each[0] == "error"]
        said = complaint({rank: each[2] for rank, each in enumerate(outcomes)})
        assert errors or said, f"{pair}: nobody was told"
        for rank, (how, what, _) in enumerate(outcomes):
            if how == "ok":
                assert what == right[pair[rank]][rank], f"{pair}: wrong data at rank {rank}"
        names = [name.removesuffix(" from 1") for name in pair]
        for text in [*errors, said]:
            if text and "in all members" in text:
                assert all(name.removeprefix("Win.") in text for name in names), (pair, text)


def run_once(way: str, pair: tuple[str, str], late: int) -> list[tuple]:
    """Make a pair of calls and leave MPI at once; what came of it, and the accounts."""

    def program(process: RankProcess) -> tuple:
        world = world_of(process)
        comm = world.Create_cart([2])
        if world.rank == late:
            process.context.engine.spend(LATE)
        outcome = _attempt(process, pair[world.rank], comm)
        return (*outcome, account([comm._state().communicator], 0))

    return virtual(2, program, **WAYS[way]).results


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("share", TAKEN)
def test_who_leaves_after_its_call(way: str, late: int, share: int) -> None:
    """It answers nobody any more: what it sent says which call it made."""
    chosen = pairs()
    Random(f"{way} {late}").shuffle(chosen)
    for pair in chosen[share :: 2 * SHARES]:
        outcomes = run_once(way, pair, late)
        errors = [each[1] for each in outcomes if each[0] == "error"]
        said = complaint({rank: each[2] for rank, each in enumerate(outcomes)})
        # the accounts are of this communicator; a window has one of its own
        assert said or (errors and set(pair) <= IN_WINDOWS), f"{pair}: the accounts are the same"
        assert not errors or any("in all members" in each for each in errors), (pair, errors)
        for rank, (how, what, _) in enumerate(outcomes):
            if how == "ok":
                assert what == matched(way)[pair[rank]][rank], f"{pair}: wrong data at rank {rank}"


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize("pair", [("Reduce from 1", "Bcast"), ("Bcast from 1", "Reduce")])
def test_who_has_gone_on_after_another_call(pair: tuple[str, str], late: int) -> None:
    """It has shown its data and waits for nobody; who waits for it has to see that."""
    outcomes = [found[0] for found in run("sm", [pair], late)]
    assert "in all members" in next(each[1] for each in outcomes if each[0] == "error")


def test_calls_that_are_the_same() -> None:
    """mpi4py makes the same call of MPI of both."""

    def program(process: RankProcess) -> str:
        world = world_of(process)
        first = world.rank == 0
        (world.Barrier if first else world.barrier)()
        (world.Dup if first else world.Clone)().Free()
        one = np.int64(1) if first else 1  # a root may be an integer of any type
        room = np.zeros(1)
        world.Bcast(room, root=one)
        world.Reduce(np.ones(1), room, root=one)
        world.Ibcast(room, root=one).Wait()
        world.gather(0, root=one)
        inner = world._state().communicator
        return account([inner], process.calls_ended)

    assert complaint(dict(enumerate(virtual(2, program, btl="self,sm").results))) == ""


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["Allreduce", "Reduce", "Scan", "Iallreduce"])
def test_members_that_give_different_amounts_to_a_reduction(way: str, name: str) -> None:
    """Nobody combines what was in memory before with what came."""

    def program(process: RankProcess) -> tuple[str, Any]:
        comm = world_of(process)
        mine = np.ones(3 - comm.rank)
        room = np.zeros_like(mine)
        if name == "Scan":
            mine, room = np.ones(2 + comm.rank), np.zeros(2 + comm.rank)
        try:
            request = getattr(comm, name)(mine, room)
            if request is not None:
                request.Wait()
        except MPI.Exception as problem:
            return "error", str(problem)
        return "ok", room.tolist()

    results = virtual(2, program, **WAYS[way]).results
    assert "error" in {how for how, _ in results}, results


def _wrong(comm: Any) -> None:
    comm.Allreduce(np.zeros(1), np.zeros(2))


MISTAKES: dict[str, Any] = {
    **{
        name: CALLS[name]
        for name in ("Bcast", "Allgather", "Alltoall", "Allreduce", "Barrier", "bcast", "scan")
    },
    "wrong": _wrong,
}


@pytest.mark.parametrize("way", ["tuned", "basic-tcp"])
@pytest.mark.parametrize("seed", range(200 if THOROUGH else 20))
def test_one_mistake_after_another(way: str, seed: int) -> None:
    """Of members that go on after errors none waits for ever: the world would say so."""
    chance, names = Random(f"{way} {seed}"), list(MISTAKES)
    calls = []
    for _ in range(5):
        most = chance.choice(names)
        calls.append([chance.choice(names) if chance.random() < 0.4 else most for _ in range(3)])

    def program(process: RankProcess) -> int:
        comm, done = world_of(process), 0
        for each in calls:
            with suppress(MPI.Exception, ValueError):
                MISTAKES[each[comm.rank]](comm)
            done += 1
        return done

    assert virtual(3, program, **WAYS[way]).results == [5, 5, 5]
