"""Ranks that wait in windows: at every moment, who is said never to go on never does.

At the end, when nothing can happen any more, all that wait are found.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest
from ompy.engine.virtual_engine import Deadlock, VirtualEngine
from ompy.mpi import constants
from ompy.mpi.communicators.predefined_comms import world_of
from ompy.mpi.windows.windows import Win
from ompy.runtime.diagnosis.autopsy import autopsy_lines
from ompy.runtime.machines.diagnosis.deadlock import Said, find_deadlock
from ompy.runtime.ranks.process import RankProcess
from ompy.runtime.simulation.virtual_job import VirtualJob

from tests.support.effort import effort
from tests.support.standings import alone_in_process, standings
from tests.support.worlds import registry

SEEDS = effort(6)
EVERY = 7  # steps; arbitrary: how the ranks stand is looked at so often
KINDS: dict[str, dict[str, object]] = {
    "words": {"btl": "self,sm", "osc": "sm,pt2pt"},
    "kernel": {"btl": "self,sm", "osc": "sm,pt2pt", "osc_sm_word_locks": 0},
    "messages": {"btl": "self,tcp", "osc": "pt2pt"},
    "rdma": {"btl": "self,sm", "osc": "rdma,pt2pt"},
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    alone_in_process(monkeypatch)


class World:
    """Runs a program on all ranks, and looks at them now and then."""

    def __init__(self, ranks: int, seed: int, **settings: object) -> None:
        self.job = VirtualJob(ranks, registry(**settings), seed=seed)
        self.processes: dict[int, RankProcess] = {}
        self.moves = [0] * ranks  # calls of MPI that have ended, as programs count them
        self.lost: dict[int, int] = {}  # who never goes on, and how many calls of his had ended
        self.steps = 0
        self.end: dict[int, Said] = {}  # how they stood when nothing could happen any more
        self.job.scheduler.dies = self._look
        self._step = self.job.scheduler._step
        self.job.scheduler._step = self._watched_step  # type: ignore[method-assign]

    def _watched_step(self) -> None:
        try:
            self._step()
        except Deadlock:
            self.end = standings(self.job, self.processes)
            raise

    def _look(self, _engine: VirtualEngine) -> bool:
        self.steps += 1
        if self.steps % EVERY == 0:
            found = find_deadlock(standings(self.job, self.processes))
            for rank in found.ranks if found is not None else ():
                self.lost.setdefault(rank, self.moves[rank])
        return False

    def run(self, program: Callable[[Any, Callable[[], None]], None]) -> set[int]:
        """Who waits for ever. Whoever was said to has moved no more."""

        def body(process: RankProcess) -> None:
            rank = process.context.rank
            self.processes[rank] = process

            def moved() -> None:
                self.moves[rank] += 1

            program(world_of(process), moved)
            self.moves[rank] += 1

        try:
            self.job.run(body)
        except Deadlock as problem:
            waits = set(problem.waits)
        else:
            waits = set()
        assert set(self.lost) <= waits
        assert all(self.moves[rank] == moves for rank, moves in self.lost.items())
        return waits

    def story(self) -> str:
        """Of the end."""
        lost = find_deadlock(self.end)
        return "\n".join(autopsy_lines(lost, self.end)) if lost is not None else ""


def made(comm: Any) -> Win:
    win = Win.Allocate(64, 1, comm=comm)
    win.Fence()
    return win


def crossed_locks(comm: Any, _: Any) -> None:
    win = made(comm)
    if comm.rank < 2:
        win.Lock(comm.rank)
    comm.Barrier()
    if comm.rank < 2:
        win.Lock(1 - comm.rank)
    else:
        comm.recv(source=0)


def lock_and_message(comm: Any, _: Any) -> None:
    win = made(comm)
    if comm.rank == 0:
        win.Lock(2, constants.LOCK_SHARED)
        comm.Barrier()
        comm.recv(source=1)
    elif comm.rank == 1:
        comm.Barrier()
        win.Lock(2)
    else:
        comm.Barrier()
        comm.Barrier()


def own_lock(comm: Any, _: Any) -> None:
    win = made(comm)
    if comm.rank == 1:
        win.Lock(0)
    comm.Barrier()
    if comm.rank == 1:
        comm.recv(source=0)
    elif comm.rank == 0:
        win.Lock(0, constants.LOCK_SHARED)
    else:
        comm.recv(source=1)


def all_locks(comm: Any, _: Any) -> None:
    win = made(comm)
    if comm.rank == 0:
        win.Lock_all()
        win.Put(bytes(8), 1)  # over messages the lock is taken here
        comm.Barrier()
        comm.recv(source=1)
    else:
        comm.Barrier()
        if comm.rank == 1:
            win.Lock(1)
        comm.recv(source=1)


def both_start(comm: Any, _: Any) -> None:
    win = made(comm)
    others = comm.Get_group().Excl([comm.rank])
    win.Start(others)
    win.Put(bytes(8), (comm.rank + 1) % comm.size)
    win.Complete()
    win.Post(others)
    win.Wait()


def nobody_completes(comm: Any, _: Any) -> None:
    win = made(comm)
    first = comm.Get_group().Incl([0])
    if comm.rank == 0:
        win.Post(comm.Get_group().Incl([1, 2]))
        win.Wait()
    elif comm.rank == 1:
        win.Start(first)
        win.Put(bytes(8), 0)
        win.Complete()
        comm.recv(source=0)
    else:
        comm.recv(source=0)


def fence_and_barrier(comm: Any, _: Any) -> None:
    win = made(comm)
    if comm.rank == 0:
        win.Fence()
    else:
        comm.recv(source=0)


PROGRAMS: dict[str, tuple[Callable[[Any, Any], None], str]] = {
    "crossed locks": (crossed_locks, "the lock of rank 1 of window 2, which rank 1 holds"),
    "lock and message": (lock_and_message, "the lock of rank 2 of window 2, which rank 0 holds"),
    "own lock": (own_lock, "the lock of rank 0 of window 2, which rank 1 holds"),
    "all locks": (all_locks, "the lock of rank 1 of window 2, which rank 0 holds"),
    "both start": (both_start, "Win.Post of window 2 by rank 0"),
    "nobody completes": (nobody_completes, "Win.Complete of window 2 by rank 2"),
    "fence and barrier": (fence_and_barrier, "Win.Fence, collective call 2 of window 2"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_that_never_go_on_are_found(name: str, kind: str) -> None:
    program, says = PROGRAMS[name]
    world = World(3, 1, **KINDS[kind])
    assert world.run(program) == {0, 1, 2}
    story = world.story()
    assert story.startswith("deadlock: ranks 0-2 can never go on"), story
    assert says in story


def drawn(seed: int, comm: Any, moved: Callable[[], None]) -> None:
    """Locks, posts and messages in an order that may or may not come to an end."""
    win, chance = made(comm), Random(f"{seed}/{comm.rank}")
    shared = Random(seed)
    held: set[int] = set()
    for turn in range(6):
        pair = shared.sample(range(comm.size), 2)  # the same in all ranks
        what = chance.random()
        if comm.rank in pair and shared_turn(seed, turn):
            other = pair[1 - pair.index(comm.rank)]
            exchange(win, comm, other, first=comm.rank == pair[0], way=seed % 3)
        elif what < 0.6:
            target = chance.randrange(comm.size)
            if target in held:
                win.Unlock(target)
                held.discard(target)
            else:
                kinds = constants.LOCK_EXCLUSIVE, constants.LOCK_SHARED
                win.Lock(target, chance.choice(kinds))
                held.add(target)
                win.Put(bytes(8), target)
        moved()
    for target in sorted(held):
        win.Unlock(target)
        moved()
    win.Free()


def shared_turn(seed: int, turn: int) -> bool:
    """Whether two ranks have something to do with each other; all ranks draw alike."""
    return Random(f"{seed} {turn}").random() < 0.5


def exchange(win: Win, comm: Any, other: int, *, first: bool, way: int) -> None:
    """A message, or one of two bytes that come the other way."""
    if way == 0 and first:
        comm.Ssend(array("i", [1]), other)
    elif way == 0:
        comm.Recv(array("i", [0]), other)
    elif way == 1:
        comm.Sendrecv(bytes(8), other, 0, bytearray(8), other, 0)
    elif first:
        comm.Send(bytes(20_000), other)
    else:
        comm.Probe(other)
        comm.Recv(bytearray(20_000), other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_locks(seed: int, kind: str) -> None:
    world = World(3, seed, **KINDS[kind])
    waits = world.run(partial(drawn, seed))
    lost = find_deadlock(world.end)
    assert (set(lost.ranks) if lost is not None else set()) == waits


def test_random_locks_end_and_do_not() -> None:
    """What is drawn has both."""
    found = {bool(World(3, seed, **KINDS["words"]).run(partial(drawn, seed))) for seed in range(8)}
    assert found == {False, True}
