"""The rank's lock, in the form that is in use: re-entrant, one thread at a time."""

from __future__ import annotations

import threading

import pytest
from ompy.engine.lock import COMPILED, RankLock, rank_lock

THREADS = 4
TURNS = 400


def test_the_form_fits() -> None:
    assert isinstance(rank_lock(), RankLock) is COMPILED


@pytest.mark.parametrize("make", [RankLock, rank_lock])
def test_its_thread_takes_it_again(make) -> None:
    lock = make()
    with lock:
        assert lock.acquire(False)
        lock.release()
        assert tried_elsewhere(lock) is False
    assert tried_elsewhere(lock) is True


@pytest.mark.parametrize("make", [RankLock, rank_lock])
def test_only_its_owner_gives_it_back(make) -> None:
    lock = make()
    with pytest.raises(RuntimeError):
        lock.release()
    lock.acquire()
    lock.release()
    with pytest.raises(RuntimeError):
        lock.release()


def test_threads_take_turns() -> None:
    lock = rank_lock()
    inside = 0
    most = 0
    total = 0

    def work() -> None:
        nonlocal inside, most, total
        for turn in range(TURNS):
            with lock, lock:
                inside += 1
                most = max(most, inside)
                total += 1
                if turn % 50 == 0:
                    threading.Event().wait(0.0005)  # others run into it
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert (most, total) == (1, THREADS * TURNS)


def tried_elsewhere(lock) -> bool:
    """Whether another thread gets it at once."""
    got = []

    def attempt() -> None:
        got.append(lock.acquire(False))
        if got[0]:
            lock.release()

    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join(10)
    return got[0]
