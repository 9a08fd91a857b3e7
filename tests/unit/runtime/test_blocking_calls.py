"""Calls that wait: the loop goes on meanwhile, and hears what came of them."""

import threading

import pytest
from ompy.engine.reactor import Reactor
from ompy.runtime.connections.blocking_calls import THREADS, BlockingCalls

from tests.support.turns import run_until


@pytest.fixture
def reactor():
    made = Reactor()
    yield made
    made.close()


def test_the_loop_goes_on_while_a_call_waits(reactor):
    calls, registration, ended = BlockingCalls(reactor), threading.Event(), []
    calls.start_call(ended.append, registration.wait, 30)
    assert ended == []
    reactor.call_soon(registration.set)  # only a loop that turns opens it
    run_until(reactor, lambda: ended)
    assert ended[0].result() is True


def test_what_a_call_raises_is_told(reactor):
    calls, ended = BlockingCalls(reactor), []
    calls.start_call(ended.append, int, "x")
    run_until(reactor, lambda: ended)
    with pytest.raises(ValueError, match="invalid literal"):
        ended[0].result()


def test_ends_are_told_in_the_loops_thread_and_all_of_them(reactor):
    calls, seen = BlockingCalls(reactor), []

    def ended(future):
        seen.append((future.result(), threading.current_thread()))

    for number in range(5 * THREADS):
        calls.start_call(ended, abs, -number)
    run_until(reactor, lambda: len(seen) == 5 * THREADS)
    assert sorted(value for value, _ in seen) == list(range(5 * THREADS))
    assert {thread for _, thread in seen} == {threading.current_thread()}


def test_no_more_at_a_time_than_there_are_threads(reactor):
    calls, ended, registration = BlockingCalls(reactor), [], threading.Event()
    most, now, lock = 0, 0, threading.Lock()

    def work():
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        registration.wait(30)
        with lock:
            now -= 1

    for _ in range(3 * THREADS):
        calls.start_call(ended.append, work)
    run_until(reactor, lambda: now == THREADS)
    registration.set()
    run_until(reactor, lambda: len(ended) == 3 * THREADS)
    assert most == THREADS


def test_an_error_of_one_end_is_not_the_next_ones(reactor):
    """Each is told in a call of its own."""
    calls, seen = BlockingCalls(reactor), []
    registration = threading.Event()

    def fails(_future):
        raise ValueError("of this one")

    calls.start_call(fails, registration.wait, 30)
    calls.start_call(seen.append, registration.wait, 30)
    reactor.call_soon(registration.set)
    with pytest.raises(ValueError, match="of this one"):
        run_until(reactor, lambda: False)
    run_until(reactor, lambda: seen)
