"""Who has to have unlocked before whom, from when each had its lock."""

from __future__ import annotations

from ompy.replay.entries import EVENTS, Entries, Header
from ompy.replay.events import Locked, Prefix, Unlocked, bytes_of
from ompy.replay.recording import RankRecording
from ompy.replay.windows.lock_order import waits_of

P = Prefix(0, 0, 0)


def of_rank(rank: int, *locks: tuple[int, int, int], left: bool = False) -> RankRecording:
    """A rank that had locks one after the other: since when, of whom, exclusive."""
    events: list[Locked | Unlocked] = []
    for since, target, exclusive in locks:
        events += [Locked(P, 7, target, exclusive, since), Unlocked(P, 7, target)]
    bodies = [memoryview(bytes_of(event)) for event in (events[:-1] if left else events)]
    return RankRecording(Entries(Header(EVENTS, rank, 3, b"12345678"), bodies, True), "")


def test_exclusive_locks_wait_for_all_before_them() -> None:
    ranks = {0: of_rank(0, (10, 1, 1), (40, 1, 1)), 1: of_rank(1, (20, 1, 1))}
    ranks[2] = of_rank(2, (30, 1, 1))
    assert waits_of(ranks, 0) == {1: {}, 2: {1: 1, 2: 1}}
    assert waits_of(ranks, 1) == {1: {0: 1}}
    assert waits_of(ranks, 2) == {1: {0: 1, 1: 1}}


def test_shared_locks_wait_for_exclusive_ones_alone() -> None:
    ranks = {0: of_rank(0, (10, 1, 0)), 1: of_rank(1, (20, 1, 0)), 2: of_rank(2, (30, 1, 1))}
    assert waits_of(ranks, 1) == {1: {}}
    assert waits_of(ranks, 2) == {1: {0: 1, 1: 1}}
    ranks[0] = of_rank(0, (10, 1, 0), (40, 1, 0))
    assert waits_of(ranks, 0) == {1: {}, 2: {2: 1}}


def test_targets_are_apart() -> None:
    ranks = {0: of_rank(0, (10, 1, 1)), 1: of_rank(1, (20, 2, 1), (25, 1, 1))}
    assert waits_of(ranks, 1) == {1: {}, 2: {0: 1}}


def test_a_lock_that_was_never_given_back_is_waited_for_by_nobody() -> None:
    ranks = {0: of_rank(0, (10, 1, 1), left=True), 1: of_rank(1, (20, 1, 1))}
    assert waits_of(ranks, 1) == {1: {}}
