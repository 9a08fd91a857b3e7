"""Epochs: when others see what was stored, who has to wait, and how a window ends."""

from __future__ import annotations

from array import array
from typing import ClassVar, Final

import pytest

from ompy.conformance.kept_by_engine import kept_by_engine
from ompy.conformance.mpi_worlds import SECOND, Rank
from ompy.conformance.osc.operations import every_kind, every_window
from ompy.conformance.osc.osc_suite import KINDS, OscSuite, OscWorlds, element, numbers
from ompy.data.errors import ERR_PROC_FAILED
from ompy.mpi.communicators.group import Group
from ompy.mpi.constants import LOCK_EXCLUSIVE, LOCK_SHARED
from ompy.mpi.errors import MPIException
from ompy.mpi.windows.windows import Win

TURNS: Final = 8  # arbitrary
DELAY: Final = 50_000  # ns; arbitrary: several messages long
LONG: Final = SECOND // 100  # ns; arbitrary: a thousand times a message's way
BOUND: Final = 20 * SECOND  # ns; arbitrary: well above what a window waits for who has ended
PATIENCE_MS: Final = 50  # arbitrary: little of a PML's patience with who has left


class EpochSuite(OscSuite):
    """Fences, groups, locks, flushes, the end."""

    title: ClassVar[str] = "epochs"

    @every_window
    @every_kind
    def test_fence(self, worlds: OscWorlds, kind: str, place: str, seed: int) -> None:
        """Behind a fence all that was stored before it is there, at all ranks."""

        def program(rank: Rank, win: Win) -> None:
            me, size = rank.comm.rank, rank.comm.size
            win.Fence()
            for turn in range(TURNS):
                rank.compute(DELAY)
                for target in range(size):
                    win.Put(numbers(turn * size + me), target, me)
                win.Fence()
                found = [element(win, other) for other in range(size)]
                assert found == [turn * size + other for other in range(size)], f"fence {turn}"
                win.Fence()

        worlds.play_windows(kind, program, place=place, seed=seed)

    @every_window
    @every_kind
    def test_groups(self, worlds: OscWorlds, kind: str, place: str, seed: int) -> None:
        """Post, Start, Complete and Wait: access begins and ends when both sides say so."""

        def program(rank: Rank, win: Win) -> None:
            group = rank.comm.Get_group()
            others: Group = group.Excl([0])
            owner: Group = group.Incl([0])
            for turn in range(TURNS):
                rank.compute(DELAY)
                if rank.comm.rank == 0:
                    for other in (1, 2):
                        _store_own(win, other, -1)
                    win.Post(others)
                    win.Wait()
                    found = [element(win, 1), element(win, 2)]
                    assert found == [turn + 1, turn + 2], f"epoch {turn}"
                else:
                    win.Start(owner)
                    win.Put(numbers(turn + rank.comm.rank), 0, rank.comm.rank)
                    win.Complete()

        worlds.play_windows(kind, program, place=place, seed=seed)

    @every_window
    @every_kind
    def test_locks_exclude(self, worlds: OscWorlds, kind: str, place: str, seed: int) -> None:
        """Under exclusive locks what is read, changed and written back is never lost."""

        def program(rank: Rank, win: Win) -> None:
            for _ in range(TURNS):
                found = numbers(0)
                win.Lock(0, LOCK_EXCLUSIVE)
                win.Get(found, 0)
                win.Flush(0)
                rank.compute(DELAY)
                win.Put(numbers(found[0] + 1), 0)
                win.Unlock(0)
            rank.comm.Barrier()
            if rank.comm.rank == 0:
                win.Lock(0, LOCK_SHARED)
                assert element(win, 0) == 3 * TURNS, "two ranks had an exclusive lock at once"
                win.Unlock(0)

        worlds.play_windows(kind, program, place=place, seed=seed)

    @every_kind
    def test_shared_locks_are_shared(self, worlds: OscWorlds, kind: str) -> None:
        """Several ranks have a shared lock at once: each waits in it for the others."""

        def program(rank: Rank, win: Win) -> None:
            win.Lock(0, LOCK_SHARED)
            rank.comm.Barrier()
            win.Unlock(0)

        worlds.play_windows(kind, program)

    @every_window
    @every_kind
    def test_flush(self, worlds: OscWorlds, kind: str, place: str) -> None:
        """What is flushed is in its target's memory, though the target has made no call."""
        flushed = [0]

        def program(rank: Rank, win: Win) -> None:
            win.Lock_all()
            if rank.comm.rank == 1:
                for turn in range(1, TURNS + 1):
                    win.Put(numbers(turn), 0, 3)
                    win.Flush(0)
                    flushed[0] = turn
                    rank.pass_time(DELAY)
            while rank.comm.rank == 0 and flushed[0] < TURNS:
                rank.engine.spend(4 * DELAY)
                due, found = flushed[0], element(win, 3)
                assert found >= due, f"put {due} was flushed, and the memory has put {found}"
                rank.pass_time(DELAY)
            win.Unlock_all()

        flushed[0] = 0
        worlds.play_windows(kind, program, place=place)

    @every_window
    @every_kind
    def test_target_need_not_call(self, worlds: OscWorlds, kind: str, place: str) -> None:
        """A target that waits for a message only, in a call that is not about the window."""

        def program(rank: Rank, win: Win) -> None:
            comm = rank.comm
            if comm.rank == 0:
                comm.Recv(bytearray(0), 1, 5)
                return
            if comm.rank == 1:
                win.Lock(0)
                win.Put(numbers(8), 0)
                win.Unlock(0)
                comm.Send(b"", 0, 5)

        worlds.play_windows(kind, program, place=place)

    @every_kind
    def test_two_windows(self, worlds: OscWorlds, kind: str, seed: int) -> None:
        """Operations of one window do not reach another one."""

        def program(rank: Rank, win: Win) -> None:
            comm = rank.comm
            other = KINDS[kind](comm)
            after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            for turn in range(TURNS):
                win.Fence()
                other.Fence()
                win.Put(numbers(comm.rank + turn), after)
                other.Put(numbers(-comm.rank - turn), after)
                other.Fence()
                win.Fence()
                assert (element(win, 0), element(other, 0)) == (before + turn, -before - turn)
            other.Free()

        worlds.play_windows(kind, program, seed=seed)

    @every_kind
    def test_a_rank_has_left(self, worlds: OscWorlds, kind: str) -> None:
        """A lock at a rank that has ended: MPI_ERR_PROC_FAILED, and nobody hangs."""

        def body(rank: Rank) -> None:
            win = KINDS[kind](rank.comm)
            win.Fence()
            rank.comm.Barrier()
            if rank.comm.rank == 1:
                return
            began = rank.engine.now()
            with pytest.raises(MPIException) as caught:
                _put_for_ever(win, 1)
            assert caught.value.Get_error_class() == ERR_PROC_FAILED, caught.value
            assert rank.engine.now() - began < BOUND, "the error came late"

        told = {"pml_ob1_leave_patience_ms": PATIENCE_MS}
        if not worlds.play(body, 3, failing=(1,), hosts=(0, 1, 2), settings=told).used:
            pytest.skip(f"capability off: {kind} windows, several hosts")

    @every_kind
    def test_freed(self, worlds: OscWorlds, kind: str) -> None:
        """A window that is freed leaves no poller and no timer behind."""

        def body(rank: Rank) -> None:
            kept = []
            for _ in range(3):
                win = KINDS[kind](rank.comm)
                win.Fence()
                win.Put(numbers(1), (rank.comm.rank + 1) % rank.comm.size)
                win.Fence()
                win.Free()
                rank.comm.Barrier()
                rank.pass_time(SECOND)
                kept.append(kept_by_engine(rank.engine))
            assert kept[1] == kept[2], f"pollers and timers grow: {kept}"

        if not worlds.play(body, 3).used:
            pytest.skip(f"capability off: {kind} windows, one host")

    @every_kind
    def test_same_seed_same_trace(self, worlds: OscWorlds, kind: str, seed: int) -> None:
        """What it does depends on the seed alone."""

        def body(rank: Rank) -> None:
            win = KINDS[kind](rank.comm)
            for _ in range(TURNS):
                win.Fence()
                win.Accumulate(array("q", [1]) * 40, 0)
                win.Fence()
                win.Lock(0)
                win.Get(array("q", [0]) * 40, 0)
                win.Unlock(0)
            win.Free()

        first, second = (worlds.play(body, 3, seed=seed, trace=True) for _ in range(2))
        if not first.used:
            pytest.skip(f"capability off: {kind} windows, one host")
        pairs = zip(first.lines(), second.lines(), strict=True)
        for number, (one, other) in enumerate(pairs, 1):
            assert one == other, f"seed {seed}: a second run differs from event {number} on"


def _put_for_ever(win: Win, target: int) -> None:
    while True:
        win.Lock(target, LOCK_SHARED)
        win.Put(numbers(1), target)
        win.Unlock(target)


def _store_own(win: Win, index: int, value: int) -> None:
    memoryview(win.tomemory()).cast("B").cast("q")[index] = value
