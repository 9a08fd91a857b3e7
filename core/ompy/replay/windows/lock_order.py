"""In which order locks of windows were granted, and who has to have unlocked before whom. Pure.

`Lock` returns when the lock is held (`frameworks/osc_base/README.md`), and `Unlock` gives it back.
So of two locks that exclude each other one was given back before the other was had, and the clock
of the host says which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ompy.replay.events import Locked, Unlocked
from ompy.replay.recording import RankRecording


class Epoch(NamedTuple):
    """A lock that was held.

    Attributes:
        since: when it was had, in nanoseconds.
        rank: who had it.
        number: the how-manieth lock of that rank.
        unlocks: how many that rank has given back when this one is; 0 if it never was.
        exclusive: no other one is held meanwhile.
    """

    since: int
    rank: int
    number: int
    unlocks: int
    exclusive: bool


# by rank: how many it has to have given back
Waits = dict[int, int]


def epochs_of(recording: RankRecording) -> dict[tuple[int, int], list[Epoch]]:
    """The locks of a rank, by context id of the window and rank of the target."""
    found: dict[tuple[int, int], list[Epoch]] = {}
    held: dict[tuple[int, int], Locked] = {}
    numbers: dict[tuple[int, int], int] = {}
    locks = unlocks = 0
    for event in recording.events:
        if isinstance(event, Locked):
            locks += 1
            key = (event.context, event.target)
            held[key], numbers[key] = event, locks
        elif isinstance(event, Unlocked):
            unlocks += 1
            key = (event.context, event.target)
            if key in held:
                _close(found, key, held.pop(key), recording.rank, numbers[key], unlocks)
    for key, lock in held.items():
        _close(found, key, lock, recording.rank, numbers[key], 0)
    return found


def _close(
    found: dict[tuple[int, int], list[Epoch]],
    key: tuple[int, int],
    lock: Locked,
    rank: int,
    number: int,
    unlocks: int,
) -> None:
    epoch = Epoch(lock.since, rank, number, unlocks, bool(lock.exclusive))
    found.setdefault(key, []).append(epoch)


def waits_of(recordings: Mapping[int, RankRecording], rank: int) -> dict[int, Waits]:
    """What each lock of a rank waits for, by its number: empty where it waits for nobody.

    Args:
        recordings: of all ranks.
        rank: whose locks.
    """
    every: dict[tuple[int, int], list[Epoch]] = {}
    for recording in recordings.values():
        for key, epochs in epochs_of(recording).items():
            every.setdefault(key, []).extend(epochs)
    found: dict[int, Waits] = {}
    for epochs in every.values():
        _add_waits(found, sorted(epochs), rank)
    return found


def _add_waits(found: dict[int, Waits], epochs: list[Epoch], rank: int) -> None:
    """Of one target: each epoch waits for those before it that exclude it."""
    any_before: Waits = {}
    exclusive_before: Waits = {}
    for epoch in epochs:
        if epoch.rank == rank:
            before = any_before if epoch.exclusive else exclusive_before
            found[epoch.number] = {other: n for other, n in before.items() if other != rank}
        if epoch.unlocks:
            any_before[epoch.rank] = epoch.unlocks
            if epoch.exclusive:
                exclusive_before[epoch.rank] = epoch.unlocks
