"""Memory that a sender offers to be read, and takes back while the offer waits at the receiver.

It waits for its receive, or the get for room. The rails assert that nothing is read which is not
registered any more (`tests/support/rdma_btl.py`); where a message is given up they refuse it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from ompy.data.errors import ERR_OTHER, ERR_PROC_FAILED, MPIError
from ompy.frameworks.btl import GET
from ompy.frameworks.pml import STANDARD
from ompy_components.pml.bfo.gets import BfoGets

from tests.sim.p2p.programs import buffer, pattern, send, world
from tests.support.failing_rails import US, FailingRail, Fault, failing_world
from tests.support.forms import interpreted_only

SIZE = 9_000
LATE = 1_000 * US  # by then the sender has done what it does about its rails
RAIL = FailingRail(flags=GET)
NARROW = FailingRail(flags=GET, descriptors=1, bandwidth=100)  # a message takes 720 us


def _pass(process: Any, time: int) -> None:
    end = process.context.engine.now() + time
    while process.context.engine.now() < end:
        process.context.engine.progress()


def _result(work: Any) -> int:
    try:
        work()
    except MPIError as error:
        return error.code
    return 0


def _sender(messages: int) -> Any:
    """Sends, and writes into the memory of what has ended, well or not."""

    def program(process: Any) -> list[int]:
        comm, pml = world(process), process.pml
        begun = []
        for tag in range(messages):
            data = bytearray(pattern(SIZE, tag))
            begun.append((data, pml.isend(comm, send(data), 1, tag, STANDARD)))
        found = []
        for data, request in begun:
            found.append(_result(lambda request=request: pml.wait(comm, request)))
            data[:] = b"\xaa" * SIZE
        _pass(process, 3 * LATE)
        return found

    return program


def _receiver(messages: int, late: int) -> Any:
    def program(process: Any) -> list[tuple[int, str]]:
        comm, pml = world(process), process.pml
        _pass(process, late)
        begun = []
        for tag in range(messages):
            memory, room = buffer(SIZE)
            begun.append((bytes(memory), memory, pml.irecv(comm, room, 0, tag)))
        found = []
        for tag, (before, memory, request) in enumerate(begun):
            code = _result(lambda request=request: pml.wait(comm, request))
            now = {pattern(SIZE, tag): "whole", before: "as it was"}.get(bytes(memory), "changed")
            found.append((code, now))
        return found

    return program


@pytest.mark.parametrize("what", ["error", "late"])
@pytest.mark.parametrize("times", [1, 2])
def test_an_offer_in_the_queue_is_replaced_by_the_next(what: str, times: int) -> None:
    faults = [Fault(what, "RGET", nth) for nth in range(1, times + 1)]
    job = failing_world([_sender(1), _receiver(1, LATE)], [RAIL] * 3, faults)
    assert job.results == [[0], [(0, "whole")]]
    reads = [index for index, (name, *_) in enumerate(job.net.log) if name == "RDMA read"]
    offers = [index for index, (name, *_) in enumerate(job.net.log) if name == "RGET"]
    assert len(offers) == times + 1
    assert offers[-1] < reads[0], "nothing was read before all had been offered"


@interpreted_only
def test_a_get_that_waits_for_room_ends_with_its_offer(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: Counter[bool] = Counter()
    again = BfoGets._again

    def noted(self: BfoGets, request: Any, number: int, remote: Any) -> bool:
        waited[request.id != number] += 1
        return again(self, request, number, remote)

    monkeypatch.setattr(BfoGets, "_again", noted)
    faults = [Fault("error", "RGET", 2)]
    job = failing_world([_sender(2), _receiver(2, 0)], [NARROW] * 3, faults)
    assert job.results == [[0, 0], [(0, "whole"), (0, "whole")]]
    assert waited[False], "no get waited for room"
    assert waited[True], "no get waited for the memory of an older offer"


@pytest.mark.parametrize("times", [1, 2])
def test_what_was_given_up_is_not_read(times: int) -> None:
    """The receive ends when its sender leaves, and nothing was written into its memory."""
    faults = [Fault("error", "RGET", nth) for nth in range(1, times + 1)]
    job = failing_world(
        [_sender(1), _receiver(1, LATE)],
        [RAIL] * 3,
        faults,
        parameters={"restarts_max": times - 1 or 1},
        lossy=True,
    )
    given_up = times == 2
    assert job.results[0] == [ERR_OTHER if given_up else 0]
    assert job.results[1] == [(ERR_PROC_FAILED, "as it was") if given_up else (0, "whole")]


def test_a_get_that_waits_for_room_ends_with_its_peer() -> None:
    """It stands behind another one's in the line when its message is stopped, and its peer lost."""

    def program(process: Any) -> None:
        comm, pml = world(process), process.pml
        if comm.rank:
            for tag in range(3):
                _result(lambda tag=tag: pml.send(comm, send(pattern(SIZE, 1)), 0, tag, STANDARD))
            return
        pairs = [(tag, source) for tag in range(3) for source in (1, 2)]
        begun = [pml.irecv(comm, buffer(SIZE)[1], source, tag) for tag, source in pairs]
        for request in begun:
            _result(lambda request=request: pml.wait(comm, request))

    rails = [
        FailingRail(flags=GET, descriptors=2, bandwidth=100, get_limit=2_000, other_end=5 * US),
        FailingRail(flags=GET, descriptors=1, get_limit=1_000, other_end=5 * US),
    ]
    faults = [Fault("error", "RGET", 3), Fault("error", "", 2)]
    job = failing_world([program] * 3, rails, faults, lossy=True)
    assert any(process.pml.lost for process in job.processes)
