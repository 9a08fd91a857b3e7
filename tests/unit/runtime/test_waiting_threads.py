"""Which threads wait for others of the process."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from ompy.runtime.diagnosis.waiting_threads import waits_for_threads, when_nobody_is_left


def _settled(thread: threading.Thread) -> bool:
    """Whether it comes to wait for others within a moment."""
    for _ in range(200):
        if waits_for_threads(thread, threading.enumerate()):
            return True
        time.sleep(0.005)
    return False


@contextmanager
def _running(target: Callable[[], object]) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    yield thread
    thread.join(5)
    assert not thread.is_alive()


def test_an_event() -> None:
    event = threading.Event()
    with _running(event.wait) as thread:
        assert _settled(thread)
        event.set()
        # it may not have run yet, and waits no longer
        assert not waits_for_threads(thread, threading.enumerate())


def test_a_queue() -> None:
    box: queue.Queue[int] = queue.Queue()
    with _running(box.get) as thread:
        assert _settled(thread)
        box.put(1)
        assert not waits_for_threads(thread, threading.enumerate())


def test_a_thread_that_is_joined() -> None:
    event = threading.Event()
    with _running(event.wait) as first, _running(first.join) as second:
        assert _settled(second)
        others = [each for each in threading.enumerate() if each is not first]
        assert not waits_for_threads(second, others), "it has ended"
        event.set()


@pytest.mark.parametrize("limited", [True, False])
def test_what_goes_on_by_itself(limited: bool) -> None:
    event, lock = threading.Event(), threading.Lock()
    lock.acquire()
    target = (lambda: event.wait(1)) if limited else lock.acquire
    with _running(target) as thread:
        time.sleep(0.1)
        assert not waits_for_threads(thread, threading.enumerate())
        lock.release()
        event.set()


def test_nobody_is_left_only_once_all_wait() -> None:
    called, over = threading.Event(), threading.Event()
    when_nobody_is_left(called.set, over.is_set)
    assert not called.wait(0.5), "this thread has a time limit"
    over.set()
