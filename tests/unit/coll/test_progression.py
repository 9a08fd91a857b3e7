"""A schedule run by completions: what is posted when, and what is left when a step fails."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock

import pytest
from ompy.data.errors import ERR_OTHER, ERR_TRUNCATE
from ompy.engine.base import Poller
from ompy.engine.timers import Timer
from ompy.frameworks.collectives.exchange import WITHDRAWAL_TIMEOUT, Exchange
from ompy.frameworks.collectives.schedule import CollectiveRequest, Progression, Schedule

from tests.support.forms import interpreted_only
from tests.unit.coll.test_exchange import MATCHED, FakeCommunicator, view

pytestmark = interpreted_only  # what is below is played


class FakeEngine:
    """Polls when the test says so."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.pollers: list[Poller] = []
        self.timers: list[tuple[int, Timer]] = []

    def poll_soon(self, poller: Poller) -> None:
        self.pollers.append(poller)

    def call_later(self, delay: int, callback: Callable[[], object]) -> Timer:
        self.timers.append((delay, Timer(delay, callback)))
        return self.timers[-1][1]

    def poll(self) -> int:
        pollers, self.pollers = self.pollers, []
        return sum(poller.poll() for poller in pollers)


@pytest.fixture
def comm() -> FakeCommunicator:
    made = FakeCommunicator()
    made.engine = FakeEngine()
    return made


def begin(comm: FakeCommunicator, steps: Callable[[Exchange], Schedule]) -> CollectiveRequest:
    exchange = Exchange(comm, -7)
    return Progression(exchange, steps(exchange)).begin()


def two_steps(exchange: Exchange) -> Schedule:
    exchange.receive(view(1), 2)
    exchange.send(view(3), 4)
    yield
    exchange.receive(view(5), 6)
    yield


def test_a_step_is_taken_when_the_last_one_is_complete_and_the_engine_polls(
    comm: FakeCommunicator,
) -> None:
    request = begin(comm, two_steps)
    first, second = comm.pml.requests
    first.finish()
    assert not comm.engine.pollers, "one of two messages is missing"
    second.finish()
    assert len(comm.pml.log) == 2, "nothing is posted from within a completion"
    assert comm.engine.pollers, "it must not sleep now"
    assert comm.engine.poll() == 1
    assert comm.pml.log[-1] == ("irecv", 5, 6, -7)
    assert not comm.engine.pollers
    assert not request.complete
    comm.pml.requests[2].finish()
    comm.engine.poll()
    assert request.complete
    assert request.error == 0


def test_what_is_complete_at_once_is_not_waited_for(comm: FakeCommunicator) -> None:
    def steps(exchange: Exchange) -> Schedule:
        for _ in range(3):
            exchange.send(view(1), 1)
            comm.pml.requests[-1].finish()
            yield

    assert begin(comm, steps).complete
    assert len(comm.pml.log) == 3


def test_a_failure_takes_the_other_receives_back_at_once(comm: FakeCommunicator) -> None:
    def steps(exchange: Exchange) -> Schedule:
        for _ in range(3):
            exchange.receive(view(1), 0)
        yield
        raise AssertionError("no step follows a failure")

    request = begin(comm, steps)
    comm.pml.requests[1].fail(ERR_TRUNCATE, "too long")
    assert comm.engine.poll() == 1
    assert [entry for entry in comm.pml.log if entry[0] == "cancel"] == [
        ("cancel", 0),
        ("cancel", 2),
    ]
    assert (request.complete, request.error, request.detail) == (True, ERR_TRUNCATE, "too long")
    assert comm.engine.poll() == 0


def matched_and_failed(comm: FakeCommunicator) -> CollectiveRequest:
    def steps(exchange: Exchange) -> Schedule:
        exchange.receive(view(1), 0)
        exchange.receive(view(1), 0)
        yield

    request = begin(comm, steps)
    comm.pml.requests[0].source = MATCHED
    comm.pml.requests[1].fail(ERR_TRUNCATE, "too long")
    comm.engine.poll()
    return request


def test_it_fails_when_nothing_comes_into_the_memory_any_more(comm: FakeCommunicator) -> None:
    request = matched_and_failed(comm)
    assert not request.complete
    comm.pml.requests[0].finish()
    assert request.error == ERR_TRUNCATE
    assert [timer.pending for _, timer in comm.engine.timers] == [False]


def test_it_does_not_wait_for_ever(comm: FakeCommunicator) -> None:
    request = matched_and_failed(comm)
    ((delay, timer),) = comm.engine.timers
    assert delay == WITHDRAWAL_TIMEOUT
    assert timer.callback is not None
    timer.callback()
    assert request.error == ERR_TRUNCATE


def test_what_a_users_function_raises_is_kept(comm: FakeCommunicator) -> None:
    problem = ZeroDivisionError("mine")

    def steps(exchange: Exchange) -> Schedule:
        exchange.receive(view(1), 0)
        yield
        raise problem

    request = begin(comm, steps)
    comm.pml.requests[0].finish()
    comm.engine.poll()
    assert request.problem is problem
    assert comm.pml.abandoned == [(-7, ERR_OTHER)]
    assert request.error == ERR_OTHER
