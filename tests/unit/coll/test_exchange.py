"""What a blocking call leaves behind when a step fails."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from ompy.data.convertor import Convertor
from ompy.data.errors import ERR_OTHER, ERR_TRUNCATE, MPIError
from ompy.data.request import Request
from ompy.frameworks.collectives.call_order import CallOrder
from ompy.frameworks.collectives.exchange import WITHDRAWAL_TIMEOUT, Exchange
from ompy.frameworks.collectives.patience import PATIENCE
from ompy.frameworks.collectives.schedule import Schedule, complete_schedule
from ompy.frameworks.pml import STANDARD

from tests.support.forms import interpreted_only

pytestmark = interpreted_only  # what is below is played

MATCHED = 99  # source of a request that can no longer be cancelled


class FakePml:
    """Keeps what is asked for; requests complete when the test says so."""

    def __init__(self) -> None:
        self.log: list[tuple[object, ...]] = []
        self.requests: list[Request] = []
        self.abandoned: list[tuple[int, int]] = []
        self.unreachable = False

    def _request(self, *entry: object) -> Request:
        self.log.append(entry)
        self.requests.append(Request())
        return self.requests[-1]

    def irecv(self, communicator: object, convertor: Convertor, source: int, tag: int) -> Request:
        return self._request("irecv", convertor.size, source, tag)

    def isend(
        self, communicator: object, convertor: Convertor, target: int, tag: int, mode: int
    ) -> Request:
        assert mode == STANDARD
        if self.unreachable:
            raise MPIError(ERR_OTHER, "unreachable")
        return self._request("isend", convertor.size, target, tag)

    def abandon(self, communicator: object, tag: int, code: int) -> None:
        self.abandoned.append((tag, code))

    def unreceived(self, communicator: object) -> list[tuple[int, int]]:
        return []

    def cancel(self, request: Request) -> None:
        self.log.append(("cancel", self.requests.index(request)))
        if request.source != MATCHED:
            request.finish()


class FakeEngine:
    """What is waited for for a moment comes, what is withdrawn does not."""

    def __init__(self) -> None:
        self.waited: list[tuple[Request, int]] = []

    def wait(self, request: Request, timeout: int) -> bool:
        self.waited.append((request, timeout))
        if timeout == PATIENCE:
            request.finish()
        return request.complete


class FakeCommunicator:
    rank, size = 0, 9

    def __init__(self) -> None:
        self.pml = FakePml()
        self.context = self
        self.engine = FakeEngine()
        self.order = CallOrder()


@pytest.fixture
def comm() -> FakeCommunicator:
    return FakeCommunicator()


def view(size: int) -> memoryview:
    return memoryview(bytearray(size))


def test_receives_are_posted_and_waited_for_first(comm: FakeCommunicator) -> None:
    exchange = Exchange(comm, -7)

    def steps() -> Schedule:
        exchange.receive(view(1), 2)
        exchange.send(view(3), 4)
        exchange.receive(view(5), 6)
        yield

    complete_schedule(exchange, steps())
    assert comm.pml.log == [("irecv", 1, 2, -7), ("isend", 3, 4, -7), ("irecv", 5, 6, -7)]
    first, sent, second = comm.pml.requests
    assert comm.engine.waited == [(each, PATIENCE) for each in (first, second, sent)]


def test_finish_forgets_what_it_waited_for(comm: FakeCommunicator) -> None:
    exchange = Exchange(comm, -7)

    def steps() -> Schedule:
        exchange.receive(view(1), 2)
        yield
        comm.pml.requests[0].complete = False  # who looks at it again would wait for it
        yield

    complete_schedule(exchange, steps())
    assert comm.engine.waited == [(comm.pml.requests[0], PATIENCE)]


def failing(comm: FakeCommunicator, error: type[BaseException], *steps: Callable) -> BaseException:
    """What comes out of an exchange in which the steps are taken."""

    exchange = Exchange(comm, -7)

    def schedule() -> Schedule:
        for step in steps:
            step(exchange)
        yield

    with pytest.raises(error) as caught:
        complete_schedule(exchange, schedule())
    return caught.value


def post(exchange: Exchange) -> None:
    exchange.receive(view(1), 0)


def send(exchange: Exchange) -> None:
    exchange.send(view(1), 0)


def matched(comm: FakeCommunicator) -> Callable[[Exchange], None]:
    def step(exchange: Exchange) -> None:
        comm.pml.requests[0].source = MATCHED

    return step


def test_a_failed_receive_takes_the_others_back(comm: FakeCommunicator) -> None:
    def arrive(exchange: Exchange) -> None:
        comm.pml.requests[0].finish()
        comm.pml.requests[1].fail(ERR_TRUNCATE, "too long")

    problem = failing(comm, MPIError, post, post, post, arrive)
    assert problem.code == ERR_TRUNCATE
    assert [entry for entry in comm.pml.log if entry[0] == "cancel"] == [("cancel", 2)]
    assert comm.pml.abandoned == [(-7, ERR_TRUNCATE)]
    assert not comm.engine.waited


def test_a_send_that_cannot_begin_takes_receives_back(comm: FakeCommunicator) -> None:
    comm.pml.unreachable = True
    failing(comm, MPIError, post, send)
    assert comm.pml.log[-1] == ("cancel", 0)
    assert not comm.engine.waited


def test_a_message_under_way_gets_a_while_to_end(comm: FakeCommunicator) -> None:
    comm.pml.unreachable = True
    failing(comm, MPIError, post, matched(comm), send)
    assert comm.engine.waited == [(comm.pml.requests[0], WITHDRAWAL_TIMEOUT)]


def test_an_interrupt_does_not_wait(comm: FakeCommunicator) -> None:
    def interrupt(exchange: Exchange) -> None:
        raise KeyboardInterrupt

    failing(comm, KeyboardInterrupt, post, matched(comm), interrupt)
    assert comm.pml.log[-1] == ("cancel", 0)
    assert not comm.engine.waited
